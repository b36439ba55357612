/** The endpoints of the Admin API (admin-api.md, section 4), one method each. */
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
  readAgentJob(projectId: string, jobId: string): Promise<AgentJobReply>
  /** The service's own time in epoch milliseconds. */
  serverWallMs(): number
}

const schemas = () => import('./schemas.ts')

const unknownJobAdvice =
  'There is no such job for this key: it may have been deleted, or belong to another organisation. Is `base-url` the root of the Admin API, without /v1?'

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
        advice: (code, unknownFates) =>
          code === 'conflict' && unknownFates > 0
            ? 'Another export of this site is running, and the first request of this run probably started it. Wait until it has ended, then run again.'
            : undefined,
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
        advice: (code) => (code === 'not-found' ? unknownJobAdvice : undefined),
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

    readAgentJob: (projectId, jobId) =>
      http.request({
        purpose: 'read the agent job',
        method: 'GET',
        path: ['v2', 'agent', projectId, 'job', jobId],
        maxTryMs: 20_000,
        retry: { maxTries: 3, minPersistenceMs: 0, repeatable: true },
        decode: async (json) => (await schemas()).agentJob.parse(json),
        advice: (code) =>
          code === 'not-found'
            ? 'Check `agent-project-id` (the API keys page of the dashboard shows it) and `agent-job-id`.'
            : undefined,
      }),

    serverWallMs: () => http.serverWallMs(),
  }
}
