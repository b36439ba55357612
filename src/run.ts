/** The story of a run: start or attach, wait, look at the agent job, mint the link, deliver the bundle. */
import { type PullRequest, type PullRequestAddress, followAgentJob } from './agent-job.ts'
import { type Bundle, mintBundle } from './bundle.ts'
import { createClient } from './client.ts'
import { type Clock, type Deadline, deadlineIn } from './clock.ts'
import { type ExportJob, hasEnded, toStartedJob, waitForExport } from './export-job.ts'
import type { Disk } from './disk.ts'
import { createHttp } from './http.ts'
import type { Inputs } from './inputs.ts'
import { describeLink } from './link.ts'
import type { Log } from './log.ts'
import type { Network, Storage } from './network.ts'
import { createProgress } from './progress.ts'
import type { Phase, Receipt } from './receipt.ts'
import { targetsOf } from './targets.ts'
import { count, formatBytes, formatDuration, formatUtc } from './units.ts'

export interface RunDependencies {
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
  /** Called the moment the job id is known: it must survive whatever comes next. */
  readonly onJobId: (jobId: string) => void
  readonly serverUrl: URL
  readonly readPullRequest: (
    address: PullRequestAddress,
    signal: AbortSignal,
  ) => Promise<PullRequest>
}

/** The agent job may not use up the time that the link needs: so much is kept of it, or a quarter. */
const keptForLinkMs = 60_000

/**
 * Runs the whole export and notes in the receipt what it learns, so that a failure leaves it filled as far
 * as the run came.
 *
 * @throws Failure, see errors.ts
 */
export async function run(
  inputs: Inputs,
  dependencies: RunDependencies,
  receipt: Receipt,
): Promise<void> {
  const { clock, log } = dependencies
  const { pollIntervalMs } = inputs
  const startedMs = clock.nowMs()
  const deadline = deadlineIn(inputs.timeoutMs, clock)
  const progress = createProgress(log, clock)
  receipt.samples = progress.samples

  const ending = new AbortController() // ends what runs beside the export
  const signal = AbortSignal.any([dependencies.signal, ending.signal])
  const http = { ...dependencies, baseUrl: inputs.baseUrl, apiKey: inputs.apiKey }
  const client = createClient(createHttp({ ...http, deadline }))
  const keepAlive = progress.keepAlive(signal)

  const exportEnd = Promise.withResolvers<undefined>()
  let followed: Promise<void> | undefined
  try {
    const { id, started } = await startOrAttach()
    receipt.jobId = id
    receipt.job = started
    dependencies.onJobId(id)
    if (inputs.agentJob) {
      followed = followAgentJob(inputs.agentJob, exportEnd.promise, agentDependencies())
    }
    await waitForEnd(id, started)
    exportEnd.resolve(undefined)
    progress.waitFor('the agent job')
    await followed
    progress.waitFor('the link')
    receipt.bundle = await timed('link', () => mintLink(id))
    logLink(receipt.bundle)
    if (targetsOf(inputs.delivery).length > 0) await deliverTo(id, receipt.bundle)
  } finally {
    ending.abort()
    exportEnd.resolve(undefined)
    await Promise.all([followed, keepAlive])
  }

  async function startOrAttach(): Promise<{ id: string; started: ExportJob | undefined }> {
    const { domain = '', jobId, version, paths } = inputs
    if (jobId !== undefined) {
      log.info(`Attached to export job ${jobId}`)
      return { id: jobId, started: undefined }
    }
    const reply = await timed('start', () => client.startExport({ domain, version, paths }))
    const started = toStartedJob(reply, log)
    log.info(`Export of ${domain} started: job ${started.id}`)
    return { id: started.id, started }
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

  function mintLink(jobId: string): Promise<Bundle> {
    return mintBundle(jobId, {
      client,
      baseUrl: inputs.baseUrl,
      log,
      mask: inputs.maskBundleUrl ? dependencies.mask : undefined,
    })
  }

  function logLink({ url, sizeBytes, expiresAtMs }: Bundle): void {
    const size = sizeBytes === undefined ? '' : ` (${formatBytes(sizeBytes)})`
    const lifeMs = expiresAtMs - client.serverWallMs()
    log.info(
      `Bundle${size} at ${describeLink(url)}; the link works for ${formatDuration(lifeMs)}, until ${formatUtc(expiresAtMs)}`,
    )
  }

  async function deliverTo(jobId: string, first: Bundle): Promise<void> {
    let bundle = first
    // Loaded here: a run that only hands over the link has no use for it, and starts sooner without.
    const { deliver } = await import('./delivery.ts')
    await deliver(inputs.delivery, receipt.delivery, {
      ...dependencies,
      baseUrl: inputs.baseUrl,
      deadline,
      serverWallMs: () => client.serverWallMs(),
      currentBundle: () => bundle,
      async renewLink() {
        bundle = await mintLink(jobId)
        receipt.bundle = bundle
        return bundle
      },
      timed(phase, work) {
        progress.waitFor(phase === 'unpack' ? 'the pages to be unpacked' : 'the archive')
        return timed(phase, work)
      },
    })
  }

  function agentDependencies() {
    const keptMs = Math.min(keptForLinkMs, inputs.timeoutMs / 4)
    const sooner: Deadline = { remainingMs: () => Math.max(0, deadline.remainingMs() - keptMs) }
    return {
      ...dependencies,
      client: createClient(createHttp({ ...http, deadline: sooner, signal })),
      deadline: sooner,
      signal,
      pollIntervalMs,
      onAgentJob(agentJob: Receipt['agentJob']) {
        receipt.agentJob = agentJob
      },
    }
  }

  async function timed<T>(phase: Phase, work: () => Promise<T>): Promise<T> {
    const phaseStartedMs = clock.nowMs()
    try {
      return await work()
    } finally {
      receipt.phaseMs.set(phase, clock.nowMs() - phaseStartedMs)
    }
  }
}
