import { createHash, randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { AgentJobs, agentProject } from './agent-jobs.ts'
import { createApi, type Report } from './api.ts'
import { MovableClock, type Clock } from './clock.ts'
import { control, controlPrefix } from './control.ts'
import { ExportJobs, type Curve, type PlannedFailure } from './export-jobs.ts'
import { applyFault, checkFault, Faults, parseFault, type Fault, type Operation } from './faults.ts'
import { keys } from './keys.ts'
import { pathOf, type Delivery, type Reply, type Request } from './message.ts'
import { listen } from './server.ts'
import { ObjectStorage } from './storage.ts'

export type { Clock } from './clock.ts'
export type { Curve, PlannedFailure } from './export-jobs.ts'
export type { Fault, Operation } from './faults.ts'
export type { Report } from './api.ts'

export type EmulatorOptions = {
  /** Address to listen on; default 127.0.0.1. */
  host?: string
  /** Default 0: any free port. */
  port?: number
  storagePort?: number
  /** Origin under which clients reach the API, when it is not the address listened on. */
  publicUrl?: string
  /** The same for storage: links are signed for this host. */
  storagePublicUrl?: string
  /** Folder of Markdown to export; default the sample site. */
  siteDirectory?: string
  /** Default docs.example.com. */
  domains?: readonly string[]
  /** Default 2. */
  queueSeconds?: number
  /** Default 20. */
  jobSeconds?: number
  /** How the work goes on over that time; default linear. */
  curve?: Curve
  /** How the status tells it; default full. */
  report?: Report
  /** Lifetime of a link; default 3600, at most a week. */
  linkSeconds?: number
  /** Default no limit. */
  startsPerHour?: number
  /** Whether the 429 of that limit carries Retry-After; default false. */
  retryAfter?: boolean
  /** Whether a start is refused while an export of the same domain runs; default false. */
  oneExportPerSite?: boolean
  /** When the agent job that finishes does so, after the start of the emulator; default 20. */
  agentSeconds?: number
  /** As data, or in the words of the flag. */
  faults?: readonly (Fault | string)[]
  /** Makes job ids the same in each run; default random. */
  seed?: string
  /** Default the time of the machine. */
  clock?: Clock
  /** Called when a request has been answered, or left unanswered by a fault. */
  onRequest?: (request: RecordedRequest) => void
}

/** A request as it came in, without secrets: no query, no key. */
export type RecordedRequest = {
  method: string
  path: string
  /** Undefined for a path that is none of the API's. */
  operation: Operation | undefined
  /** Whether an Authorization header came along. */
  authorization: boolean
  range: string | undefined
  body: string
  /** What was answered; undefined while it is not, and when a fault left it so. */
  status: number | undefined
  /** The kind of the fault that it met. */
  fault: Fault['kind'] | undefined
}

export type Emulator = AsyncDisposable & {
  /** Root of the Admin API, without a slash at the end. */
  apiUrl: string
  storageUrl: string
  keys: typeof keys
  domains: readonly string[]
  agentProject: string
  agentJobs: readonly string[]
  /** All requests but those to control endpoints, in the order they came. */
  requests: readonly RecordedRequest[]
  /** Throws a FaultSyntaxError. */
  addFault(fault: Fault | string): void
  clearFaults(): void
  failNextJob(failure: PlannedFailure): void
  advanceClock(seconds: number): void
  close(): Promise<void>
}

export const sampleSite = fileURLToPath(new URL('./site', import.meta.url))

/** Starts an Admin API and its object storage. Rejects when a port cannot be had. */
export async function startEmulator(options: EmulatorOptions = {}): Promise<Emulator> {
  const { host = '127.0.0.1', domains = ['docs.example.com'], linkSeconds = 3600 } = options
  const clock = new MovableClock(options.clock)
  const faults = new Faults()
  const addFault = (fault: Fault | string) => {
    faults.add(typeof fault === 'string' ? parseFault(fault) : checkFault(fault))
  }
  options.faults?.forEach(addFault)

  const exportJobs = new ExportJobs(
    {
      siteDirectory: options.siteDirectory ?? sampleSite,
      stylesheetFile: `${sampleSite}/style.css`,
      domains,
      queueSeconds: options.queueSeconds ?? 2,
      jobSeconds: options.jobSeconds ?? 20,
      curve: options.curve ?? 'linear',
      startsPerHour: options.startsPerHour ?? Infinity,
      retryAfter: options.retryAfter ?? false,
      oneExportPerSite: options.oneExportPerSite ?? false,
    },
    clock,
    idSource('se_', options.seed),
  )
  const agentJobs = new AgentJobs(clock, options.agentSeconds ?? 20)
  const storage = new ObjectStorage(clock, idSource('', options.seed))
  let storageUrl = options.storagePublicUrl
  const api = await createApi({
    exportJobs,
    agentJobs,
    report: options.report ?? 'full',
    publish: (jobId, domain, archive) => {
      const key = `${jobId}/${domain}.tar.gz`
      if (!storage.has(key)) storage.put(key, archive)
      return storage.link(storageUrl ?? '', key, linkSeconds)
    },
  })

  const requests: RecordedRequest[] = []
  const serve = async (
    request: Request,
    operation: Operation | undefined,
    process: (request: Request) => Promise<Reply> | Reply,
  ): Promise<Delivery> => {
    const fault = faults.next(operation)
    const recorded: RecordedRequest = {
      method: request.method,
      path: pathOf(request),
      operation,
      authorization: request.headers.authorization !== undefined,
      range: request.headers.range,
      body: request.body,
      status: undefined,
      fault: fault?.kind,
    }
    requests.push(recorded)
    const delivery: Delivery = fault
      ? await applyFault(fault, request, operation, async (one) => process(one))
      : { reply: await process(request), ending: 'complete' }
    recorded.status = delivery.reply?.status
    options.onRequest?.(recorded)
    return delivery
  }

  const storageServer = await listen(
    (request) => serve(request, 'download', (one) => storage.answer(one)),
    { host, port: options.storagePort ?? 0, clock },
  )
  storageUrl ??= urlOf(host, storageServer.port)
  const apiServer = await listen(
    async (request) =>
      pathOf(request).startsWith(controlPrefix)
        ? {
            reply: control(request, { clock, faults, requests, exportJobs }),
            ending: 'complete',
          }
        : serve(request, api.operationOf(request), (one) => api.answer(one)),
    { host, port: options.port ?? 0, clock },
  ).catch(async (error: unknown) => {
    await storageServer.close()
    throw error
  })

  const close = async () => {
    await Promise.all([apiServer.close(), storageServer.close()])
  }
  return {
    apiUrl: options.publicUrl ?? urlOf(host, apiServer.port),
    storageUrl,
    keys,
    domains,
    agentProject,
    agentJobs: agentJobs.ids,
    requests,
    addFault,
    clearFaults: () => {
      faults.clear()
    },
    failNextJob: (failure) => {
      exportJobs.failNext(failure)
    },
    advanceClock: (seconds) => {
      clock.advance(seconds)
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** Identifiers with 24 hexadecimal digits; with a seed the same ones in each run. */
function idSource(prefix: string, seed: string | undefined): () => string {
  if (seed === undefined) return () => prefix + randomBytes(12).toString('hex')
  let count = 0
  return () => {
    count += 1
    return prefix + createHash('sha256').update(`${seed} ${count}`).digest('hex').slice(0, 24)
  }
}

/** Where this machine reaches what listens on a host, wildcards included. */
function urlOf(host: string, port: number): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`
}
