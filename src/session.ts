/** One export at the service, as every action meets it: waiting for it, its link, its archive. */
import { type Bundle, mintBundle } from './bundle.ts'
import { type Client, createClient } from './client.ts'
import { type Clock, type Deadline, deadlineIn, measured } from './clock.ts'
import type { DeliveryRequest } from './delivery.ts'
import type { Disk } from './disk.ts'
import type { Downloaded } from './download.ts'
import { type ExportJob, hasEnded, waitForExport } from './export-job.ts'
import { createHttp } from './http.ts'
import { describeLink } from './link.ts'
import type { Log } from './log.ts'
import type { Network, Storage } from './network.ts'
import { createProgress } from './progress.ts'
import type { Phase, Receipt } from './receipt.ts'
import { count, formatBytes, formatDuration, formatUtc } from './units.ts'

export interface SessionRequest {
  readonly apiKey: string
  readonly baseUrl: URL
  /** For everything that is asked of the service and its storage, together. */
  readonly timeoutMs: number
  readonly pollIntervalMs: number | undefined
  readonly maskBundleUrl: boolean
}

export interface SessionDependencies {
  readonly network: Network
  readonly storage: Storage
  readonly disk: Disk
  readonly platform: NodeJS.Platform
  /** A directory for what does not outlive the run. */
  readonly temporaryDirectory: string
  readonly clock: Clock
  /** From 0 to 1. */
  readonly random: () => number
  readonly log: Log
  /** Aborted when the run is cancelled, with the failure to report. */
  readonly signal: AbortSignal
  /** Makes the runner hide a value from now on. */
  readonly mask: (secret: string) => void
}

export interface Session {
  readonly client: Client
  readonly deadline: Deadline
  /** A client that gives up at a deadline of its own. */
  clientUntil(deadline: Deadline, signal: AbortSignal): Client
  /** Names what the run waits for now, when it is not the export: said once a minute. */
  waitFor(what: string): void
  /** Measures a phase of the run. */
  timed<T>(phase: Phase, work: () => Promise<T>): Promise<T>
  /**
   * Waits until the job has completed.
   *
   * @param started the job as the service answered to the start; undefined to ask at once
   */
  waitForEnd(jobId: string, started: ExportJob | undefined): Promise<void>
  /** Asks for a link and logs it. */
  mintLink(jobId: string): Promise<Bundle>
  /** Delivers to the disk; a link that was used up on the way is renewed. */
  deliver(jobId: string, bundle: Bundle, request: DeliveryRequest): Promise<void>
  /** Downloads the archive, whole and checked, to a file that must not exist. */
  fetchArchive(jobId: string, bundle: Bundle, file: string): Promise<Downloaded>
  /** Ends the progress lines. */
  close(): Promise<void>
}

/**
 * Opens a session; nothing is sent yet. Its methods note in the receipt what they learn, and reject with
 * a Failure, see errors.ts.
 */
export function openSession(
  request: SessionRequest,
  dependencies: SessionDependencies,
  receipt: Receipt,
): Session {
  const { clock, log, signal } = dependencies
  const { pollIntervalMs } = request
  const startedMs = clock.nowMs()
  const deadline = deadlineIn(request.timeoutMs, clock)
  const http = { ...dependencies, baseUrl: request.baseUrl, apiKey: request.apiKey }
  const client = createClient(createHttp({ ...http, deadline }))
  const progress = createProgress(log, clock)
  receipt.samples = progress.samples
  const closing = new AbortController()
  const keepAlive = progress.keepAlive(AbortSignal.any([signal, closing.signal]))

  return {
    client,
    deadline,
    clientUntil: (sooner, within) =>
      createClient(createHttp({ ...http, deadline: sooner, signal: within })),
    waitFor(what) {
      progress.waitFor(what)
    },
    timed,
    waitForEnd,
    async mintLink(jobId) {
      progress.waitFor('the link')
      const bundle = await timed('link', () => mint(jobId))
      logLink(bundle)
      return bundle
    },
    deliver,
    fetchArchive,
    close() {
      closing.abort()
      return keepAlive
    },
  }

  async function waitForEnd(id: string, started: ExportJob | undefined): Promise<void> {
    let phaseStartedMs = clock.nowMs()
    const endPhase = ({ status }: ExportJob) => {
      const phase = status === 'queued' ? 'queue' : 'rendering'
      const nowMs = clock.nowMs()
      receipt.phaseMs.set(phase, (receipt.phaseMs.get(phase) ?? 0) + nowMs - phaseStartedMs)
      phaseStartedMs = nowMs
    }
    try {
      const job = await waitForExport(id, started, {
        ...dependencies,
        client,
        deadline,
        pollIntervalMs,
        onJob(job) {
          if (receipt.job) endPhase(receipt.job)
          receipt.job = job
          progress.see(job)
        },
      })
      const pages = job.pageCount === undefined ? 'all pages' : count(job.pageCount, 'page')
      const duration = started ? ` in ${formatDuration(clock.nowMs() - startedMs)}` : ''
      log.info(`Export completed: ${pages}${duration} (job ${id})`)
      if (job.pageCount === 0) log.warning('The export has no page. Is anything published there?')
    } finally {
      if (receipt.job && !hasEnded(receipt.job)) endPhase(receipt.job)
    }
  }

  async function mint(jobId: string): Promise<Bundle> {
    const bundle = await mintBundle(jobId, {
      client,
      baseUrl: request.baseUrl,
      log,
      mask: request.maskBundleUrl ? dependencies.mask : undefined,
    })
    receipt.bundle = bundle
    return bundle
  }

  function logLink({ url, sizeBytes, expiresAtMs }: Bundle): void {
    const size = sizeBytes === undefined ? '' : ` (${formatBytes(sizeBytes)})`
    const lifeMs = expiresAtMs - client.serverWallMs()
    log.info(
      `Bundle${size} at ${describeLink(url)}; the link works for ${formatDuration(lifeMs)}, until ${formatUtc(expiresAtMs)}`,
    )
  }

  async function deliver(jobId: string, first: Bundle, what: DeliveryRequest): Promise<void> {
    let bundle = first
    // Loaded here: a run that only hands over the link has no use for it, and starts sooner without.
    const delivery = await import('./delivery.ts')
    await delivery.deliver(what, receipt.delivery, {
      ...downloadDependencies(),
      currentBundle: () => bundle,
      async renewLink() {
        bundle = await mint(jobId)
        return bundle
      },
      timed(phase, work) {
        progress.waitFor(phase === 'unpack' ? 'the pages to be unpacked' : 'the archive')
        return timed(phase, work)
      },
    })
  }

  async function fetchArchive(jobId: string, bundle: Bundle, file: string): Promise<Downloaded> {
    const { download } = await import('./download.ts')
    const archive = dependencies.disk.create(file, 0o600)
    progress.waitFor('the archive')
    try {
      const downloaded = await timed('download', () =>
        download(
          bundle,
          archive,
          { checkGzip: true },
          { ...downloadDependencies(), renewLink: () => mint(jobId) },
        ),
      )
      receipt.delivery.sizeBytes = downloaded.sizeBytes
      receipt.delivery.bundleSha256 = downloaded.sha256
      log.info(`Downloaded ${formatBytes(downloaded.sizeBytes)}, sha256 ${downloaded.sha256}`)
      return downloaded
    } finally {
      archive.close()
    }
  }

  function downloadDependencies() {
    return {
      ...dependencies,
      baseUrl: request.baseUrl,
      deadline,
      serverWallMs: () => client.serverWallMs(),
    }
  }

  function timed<T>(phase: Phase, work: () => Promise<T>): Promise<T> {
    return measured(phase, receipt.phaseMs, clock, work)
  }
}
