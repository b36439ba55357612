import { createHash, randomBytes } from 'node:crypto'
import { AgentJobs, agentProject } from './agent-jobs.ts'
import { createApi } from './api.ts'
import { MovableClock } from './clock.ts'
import { control, controlPrefix } from './control.ts'
import { ExportJobs, type PlannedFailure } from './export-jobs.ts'
import { checkFault, Faults, parseFault, type Fault } from './faults.ts'
import { keys } from './keys.ts'
import { pathOf } from './message.ts'
import { defaults, type EmulatorOptions } from './options.ts'
import { Recorder, type RecordedRequest } from './recorder.ts'
import { listen } from './server.ts'
import { ObjectStorage } from './storage.ts'

export type { Report } from './api.ts'
export type { Clock } from './clock.ts'
export type { Curve, PlannedFailure } from './export-jobs.ts'
export type { Fault, Operation } from './faults.ts'
export type { EmulatorOptions } from './options.ts'
export type { RecordedRequest } from './recorder.ts'

export type Emulator = AsyncDisposable & {
  /** Root of the Admin API, without a slash at the end. */
  apiUrl: string
  storageUrl: string
  keys: typeof keys
  domains: readonly string[]
  /** The one project that has agent jobs, and their ids. */
  agentProject: string
  agentJobs: readonly string[]
  /** All requests but those to control endpoints, in the order they came. */
  requests: readonly RecordedRequest[]
  /** Throws a FaultSyntaxError. */
  addFault: (fault: Fault | string) => void
  clearFaults: () => void
  failNextJob: (failure: PlannedFailure) => void
  advanceClock: (seconds: number) => void
  /** Stops at once: also connections that a fault keeps hanging. */
  close: () => Promise<void>
}

/**
 * Starts an Admin API and its object storage.
 * Rejects with the error of Node when a port cannot be had, with a FaultSyntaxError for a wrong fault.
 */
export async function startEmulator(options: EmulatorOptions = {}): Promise<Emulator> {
  const settings = { ...defaults, ...options }
  const { host, domains, linkSeconds, seed } = settings
  const clock = new MovableClock(settings.clock)
  const faults = new Faults()
  const addFault = (fault: Fault | string) => {
    faults.add(typeof fault === 'string' ? parseFault(fault) : checkFault(fault))
  }
  for (const fault of settings.faults) addFault(fault)

  const recorder = new Recorder(faults, settings.onRequest)
  const exportJobs = new ExportJobs(settings, clock, idSource('se_', seed))
  const agentJobs = new AgentJobs(clock, settings.agentSeconds)
  const storage = new ObjectStorage(clock, idSource('', seed))

  const storageServer = await listen(
    (request) => recorder.deliver(request, 'download', (one) => storage.answer(one)),
    { host, port: settings.storagePort, clock },
  )
  const storageUrl = settings.storagePublicUrl ?? urlOf(host, storageServer.port)

  const api = await createApi({
    exportJobs,
    agentJobs,
    report: settings.report,
    publish: (jobId, domain, archive) => {
      const key = `${jobId}/${domain}.tar.gz`
      storage.put(key, archive)
      return storage.link(storageUrl, key, linkSeconds)
    },
  })
  const apiServer = await listen(
    async (request) =>
      pathOf(request).startsWith(controlPrefix)
        ? { reply: control(request, { clock, faults, recorder, exportJobs }), ending: 'complete' }
        : recorder.deliver(request, api.operationOf(request), (one) => api.answer(one)),
    { host, port: settings.port, clock },
  ).catch(async (error: unknown) => {
    await storageServer.close()
    throw error
  })

  const close = async () => {
    await Promise.all([apiServer.close(), storageServer.close()])
  }
  return {
    apiUrl: settings.publicUrl ?? urlOf(host, apiServer.port),
    storageUrl,
    keys,
    domains,
    agentProject,
    agentJobs: agentJobs.ids,
    requests: recorder.requests,
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
