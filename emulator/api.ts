import type { IncomingHttpHeaders } from 'node:http'
import { readFile } from 'node:fs/promises'
import addFormats from 'ajv-formats'
import { CORE_SCHEMA, load } from 'js-yaml'
import { OpenAPIBackend, type Context, type Document } from 'openapi-backend'
import type { AgentJobs } from './agent-jobs.ts'
import type { ExportJob, ExportJobs, StartRequest } from './export-jobs.ts'
import { operations, type Operation } from './faults.ts'
import { authorise } from './keys.ts'
import { jsonReply, pathOf, type Reply, type Request } from './message.ts'
import { Refusal } from './refusal.ts'

/** How a status is told. All but `full` are ways of the service that a client must put up with. */
export const reports = ['full', 'bare', 'backwards', 'unknown-status'] as const
export type Report = (typeof reports)[number]

type Services = {
  exportJobs: ExportJobs
  agentJobs: AgentJobs
  /** Puts an archive where it can be downloaded; a fresh link to it, at each call. */
  publish: (
    jobId: string,
    domain: string,
    archive: Buffer,
  ) => Promise<{ url: string; expiresAtMs: number }>
  report: Report
}

export type Api = {
  operationOf(request: Request): Operation | undefined
  answer(request: Request): Promise<Reply>
}

/** A request as openapi-backend hands it on. */
type Incoming<Params = unknown, Body = unknown> = Context<
  Body,
  Params,
  unknown,
  IncomingHttpHeaders
>

type Answer = { status: number; body: unknown; headers?: Record<string, string> }

const description = new URL('./openapi.yaml', import.meta.url)

/** The Admin API: openapi.yaml decides what comes in and what goes out, `services` do the rest. */
export async function createApi(services: Services): Promise<Api> {
  const { exportJobs, agentJobs, publish, report } = services
  const backend = new OpenAPIBackend({
    definition: load(await readFile(description, 'utf8'), { schema: CORE_SCHEMA }) as Document,
    strict: true,
    // Compiles each validator when it is first needed; a test checks the document itself.
    quick: true,
    ignoreTrailingSlashes: false,
    // `verbose` brings the descriptions of the schemas into the errors; see `explain`.
    ajvOpts: { verbose: true },
    customizeAjv: (ajv) => {
      addFormats.default(ajv)
      return ajv
    },
    securityHandlers: {
      adminApiKey: ({ request, operation }: Incoming) => {
        authorise(request.headers.authorization, {
          writes: operation.method === 'post',
          staticExport: operation.tags?.includes('static-export') ?? false,
        })
        return true
      },
    },
    handlers: {
      notFound: ({ request }: Incoming) => {
        throw new Refusal(404, `There is no ${request.method.toUpperCase()} ${request.path}.`)
      },
      methodNotAllowed: ({ request }: Incoming) => {
        throw new Refusal(405, `${request.path} does not answer ${request.method.toUpperCase()}.`)
      },
      unauthorizedHandler: ({ security }: Incoming) => {
        const { error } = security['adminApiKey'] as { error: unknown }
        throw error
      },
      validationFail: (context: Incoming) => {
        requireJson(context)
        throw new Refusal(400, explain(context.validation.errors?.[0]))
      },
      preOperationHandler: requireJson,
      start: async ({ request }: Incoming<unknown, StartRequest>): Promise<Answer> => ({
        status: 202,
        body: await exportJobs.start(request.requestBody),
      }),
      status: ({ request }: Incoming<{ jobId: string }>): Answer => ({
        status: 200,
        body: exportJobs.status(request.params.jobId),
      }),
      bundle: async ({ request }: Incoming<{ jobId: string }>): Promise<Answer> => {
        const { jobId } = request.params
        const { domain, archive } = await exportJobs.bundle(jobId)
        const { url, expiresAtMs } = await publish(jobId, domain, archive)
        return {
          status: 200,
          body: {
            jobId,
            bundleUrl: url,
            sizeBytes: archive.length,
            expiresAt: new Date(expiresAtMs).toISOString(),
          },
        }
      },
      agent: ({ request }: Incoming<{ projectId: string; id: string }>): Answer => ({
        status: 200,
        body: agentJobs.get(request.params.projectId, request.params.id),
      }),
    },
  })
  await backend.init()

  const parsed = ({ method, target, headers, body }: Request) => ({
    method,
    path: target,
    // The type allows an undefined header, but Node lists none.
    headers: headers as Record<string, string | string[]>,
    ...(body === '' ? {} : { body }),
  })

  const operationOf = (request: Request) =>
    operations.find((id) => id === backend.matchOperation(parsed(request))?.operationId)

  return {
    operationOf,
    async answer(request) {
      const operation = operationOf(request)
      let answer: Answer
      try {
        requireReadablePath(request)
        answer = (await backend.handleRequest(parsed(request))) as Answer
      } catch (error) {
        if (!(error instanceof Refusal)) return bug(request, error)
        answer = { status: error.status, body: { error: error.message }, headers: error.headers }
      }
      if (operation !== undefined) {
        const problem = problemWith(answer, operation, backend)
        if (problem !== undefined) return bug(request, problem)
      }
      const told = operation === 'start' || operation === 'status' ? retell(answer, report) : answer
      return jsonReply(told.status, told.body, told.headers)
    },
  }
}

/** openapi-backend throws what looks like a bug when it cannot decode a path. */
function requireReadablePath(request: Request): void {
  try {
    decodeURIComponent(pathOf(request))
  } catch {
    throw new Refusal(400, 'The path is not percent-encoded UTF-8.')
  }
}

/** openapi-backend looks at a body of any type, and lets some that are not JSON pass. */
function requireJson({ request, operation }: Incoming): void {
  const type = request.headers['content-type'] ?? ''
  if (operation.requestBody !== undefined && !/^application\/json *(;|$)/i.test(type)) {
    throw new Refusal(400, `The body must be application/json, not ${type || 'untyped'}.`)
  }
}

/** Why an answer is not one that openapi.yaml describes. */
function problemWith(
  { status, body }: Answer,
  operationId: Operation,
  backend: OpenAPIBackend,
): string | undefined {
  // Without this, openapi-backend takes every status that is not described for a valid one.
  const described = backend.getOperation(operationId)?.responses ?? {}
  if (!Object.hasOwn(described, String(status))) return `status ${status} is not described`
  const { errors } = backend.validateResponse(body, operationId, status)
  return errors ? explain(errors[0]) : undefined
}

function bug(request: Request, cause: unknown): Reply {
  console.error(`emulator: a bug in the answer to ${request.method} ${pathOf(request)}:`, cause)
  return jsonReply(500, { error: 'The emulator has a bug: see its standard error.' })
}

/** Applied after validation: what it says is not what openapi.yaml promises. */
function retell(answer: Answer, report: Report): Answer {
  if (report === 'full' || answer.status >= 300) return answer
  const job = answer.body as ExportJob
  const { progress, pageCount, ...bare } = job
  if (report === 'bare') return { ...answer, body: bare }
  if (report === 'backwards') {
    const fallen = { progress: Math.floor(progress / 4), pageCount: Math.floor(pageCount / 4) }
    return { ...answer, body: progress >= 40 && progress < 70 ? { ...job, ...fallen } : job }
  }
  const odd = job.status === 'running' && progress >= 20 && progress < 70
  return { ...answer, body: odd ? { ...job, status: 'exporting' } : job }
}

type ValidationError = NonNullable<Context['validation']['errors']>[number]

/** An error of the validator as a sentence for whoever wrote the request. */
function explain(error: ValidationError | undefined): string {
  if (error === undefined) return 'invalid'
  const { keyword, message = 'invalid', parentSchema } = error
  const params = error.params as Record<string, unknown>
  const field = error.instancePath.replace(/^\/(requestBody|path)\/?/, '').replaceAll('/', '.')
  if (keyword === 'required') {
    const missing = String(params['missingProperty'])
    return `${missing === 'requestBody' ? 'The body' : missing} is missing.`
  }
  if (keyword === 'additionalProperties') {
    const kind = error.instancePath === '/query' ? 'parameter' : 'field'
    return `Unknown ${kind} "${String(params['additionalProperty'])}".`
  }
  if (keyword === 'parse') return `The body is not JSON: ${message}.`
  const expected: unknown = parentSchema?.['description']
  const rule = typeof expected === 'string' ? `must be ${expected}` : message
  return `${field || 'The body'} ${rule}.`
}
