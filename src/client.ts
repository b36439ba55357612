/** The endpoints of the Admin API (admin-api.md, section 4), one method each. */
import type { FailureCode } from './errors.ts'
import type { Http } from './http.ts'
import type {
  AgentJobReply,
  BundleReply,
  ExportJobReply,
  StartedExportJobReply,
} from './schemas.ts'

export interface ExportRequest {
  readonly domain: string
  readonly version: string | undefined
  readonly paths: readonly string[]
}

/** Methods reject with a Failure when the service cannot be asked or refuses. */
export interface Client {
  startExport(request: ExportRequest): Promise<StartedExportJobReply>
  /** @param justStarted whether a 404 may still mean that the job is not yet visible */
  readExport(jobId: string, justStarted: boolean): Promise<ExportJobReply>
  createBundle(jobId: string): Promise<BundleReply>
  /** @param patient whether to wait for as long as the service asks */
  readAgentJob(projectId: string, jobId: string, patient: boolean): Promise<AgentJobReply>
  /** The service's own time in epoch milliseconds. */
  serverWallMs(): number
}

const schemas = () => import('./schemas.ts')

const unknownJobAdvice =
  'There is no such job for this key: it may have been deleted, or belong to another organisation. Is `base-url` the root of the Admin API, without /v1?'

const busyAdvice = 'The service is busy with this job. Run again with `job-id` in a while.'

/** What may have been started unseen makes some ways out better than others. */
function startAdvice(code: FailureCode, unknownFates: number): string | undefined {
  const unseen =
    unknownFates > 0
      ? ' If an export was started unseen, its job id is known only to the service: a new one may run beside it.'
      : ''
  switch (code) {
    case 'bad-request':
      return 'Check `domain` (a host name of a site that this key may export), `paths` (page paths, one a line) and `version`.'
    case 'conflict':
      return unknownFates > 0
        ? 'Another export of this site is running, and the first request of this run probably started it. Wait until it has ended, then run again.'
        : 'Another export of this site is running. Find its job id in the run that started it and pass it as `job-id`, or wait until it has ended.'
    case 'rate-limited':
      return 'Exports are limited in number by the hour: wait, or attach to a finished export with `job-id`.'
    case 'timeout':
      return `Raise \`timeout-minutes\`, or find out why the Admin API is slow.${unseen}`
    case 'cancelled':
      return `Run again when you are ready.${unseen}`
    default:
      return undefined
  }
}

export function createClient(http: Http): Client {
  return {
    startExport: ({ domain, version, paths }) =>
      http.request({
        purpose: 'start the export',
        method: 'POST',
        path: ['v1', 'static-export', 'jobs'],
        body: {
          domain,
          ...(version === undefined ? {} : { version }),
          ...(paths.length === 0 ? {} : { paths }),
        },
        maxTryMs: 45_000,
        retry: { maxTries: 4, minPersistenceMs: 0, repeatable: false },
        decode: async (json) => (await schemas()).startedExportJob.parse(json),
        advice: startAdvice,
      }),

    readExport: (jobId, justStarted) =>
      http.request({
        purpose: 'read the status of the export',
        method: 'GET',
        path: ['v1', 'static-export', 'jobs', jobId],
        maxTryMs: 30_000,
        retry: {
          maxTries: 8,
          minPersistenceMs: 5 * 60_000,
          repeatable: true,
          ...(justStarted ? { notYet: { status: 404, graceMs: 30_000 } } : {}),
        },
        decode: async (json) => (await schemas()).exportJob.parse(json),
        advice: (code) => ({ 'not-found': unknownJobAdvice, conflict: busyAdvice })[code as string],
      }),

    createBundle: (jobId) =>
      http.request({
        purpose: 'get the download link of the bundle',
        method: 'POST',
        path: ['v1', 'static-export', 'jobs', jobId, 'bundle'],
        maxTryMs: 180_000, // packaging may happen while we wait
        retry: {
          maxTries: 5,
          minPersistenceMs: 0,
          repeatable: true, // "Calling it again returns a fresh link" (admin-api.md, section 4.4)
          notYet: { status: 409, graceMs: 60_000 },
        },
        decode: async (json) => (await schemas()).bundle.parse(json),
        advice(code) {
          if (code === 'not-found') return unknownJobAdvice
          if (code !== 'conflict') return undefined
          return 'The service says that the job has not finished, though its status was `completed`. Run again with `job-id` in a while.'
        },
      }),

    readAgentJob: (projectId, jobId, patient) =>
      http.request({
        purpose: 'read the agent job',
        method: 'GET',
        path: ['v2', 'agent', projectId, 'job', jobId],
        maxTryMs: 20_000,
        retry: {
          maxTries: 3,
          minPersistenceMs: 0,
          repeatable: true,
          // A side dish may not hold up the link.
          ...(patient ? {} : { maxTotalMs: 60_000 }),
        },
        decode: async (json) => (await schemas()).agentJob.parse(json),
        advice: (code) =>
          code === 'not-found'
            ? 'Check `agent-project-id` (the API keys page of the dashboard shows it) and `agent-job-id`.'
            : undefined,
      }),

    serverWallMs: () => http.serverWallMs(),
  }
}
