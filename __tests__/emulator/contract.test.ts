// openapi.yaml against the tables of the API's description, and the emulator against openapi.yaml.
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { Ajv, type ValidateFunction } from 'ajv'
import addFormats from 'ajv-formats'
import { load } from 'js-yaml'
import { OpenAPIBackend, type Document } from 'openapi-backend'
import { AgentJobs } from '../../emulator/agent-jobs.ts'
import { createApi } from '../../emulator/api.ts'
import { ExportJobs } from '../../emulator/export-jobs.ts'
import { operations } from '../../emulator/faults.ts'
import { startEmulator, type Emulator } from '../../emulator/index.ts'
import { defaults } from '../../emulator/options.ts'
import { Refusal } from '../../emulator/refusal.ts'
import { call, domain, exportSite, json, type Seen } from './client.ts'

type Schema = {
  $ref?: string
  type?: string
  format?: string
  nullable?: boolean
  enum?: string[]
  required?: string[]
  properties?: Record<string, Schema>
}
type Content = { content?: { 'application/json': { schema: Schema } } }
type Operation = {
  operationId: string
  parameters?: { $ref?: string; name?: string; in?: string; required?: boolean }[]
  requestBody?: Content & { required: boolean }
  responses: Record<string, Content & { $ref?: string }>
}
type Api = {
  openapi: string
  security: object[]
  paths: Record<string, Record<string, Operation>>
  components: {
    schemas: Record<string, Schema>
    parameters: Record<string, { name: string; in: string; required: boolean }>
    responses: Record<string, Content>
    securitySchemes: Record<string, object>
  }
}

const api = load(
  await readFile(new URL('../../emulator/openapi.yaml', import.meta.url), 'utf8'),
) as Api

const endpoints = Object.entries(api.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    endpoint: `${method.toUpperCase()} ${path}`,
    operation,
  })),
)

/** The schema of what an operation answers with a status. */
function answerSchema(id: string, status: string): Schema | undefined {
  const operation = endpoints.find(
    ({ operation: { operationId } }) => operationId === id,
  )?.operation
  const response = operation?.responses[status]
  const name = response?.$ref?.split('/').at(-1)
  const { content } = (name === undefined ? response : api.components.responses[name]) ?? {}
  return content?.['application/json'].schema
}

function resolve(schema: Schema | undefined): Schema {
  const name = schema?.$ref?.split('/').at(-1)
  return (name === undefined ? schema : api.components.schemas[name]) ?? {}
}

describe('openapi.yaml says what the description says', () => {
  it('is a valid document', async () => {
    const backend = new OpenAPIBackend({
      // A copy, since references are resolved in place.
      definition: structuredClone(api) as unknown as Document,
      strict: true,
      customizeAjv: (ajv) => {
        addFormats.default(ajv)
        return ajv
      },
    })
    await expect(backend.init()).resolves.toBe(backend)
    expect(api.openapi).toBe('3.0.3')
  })

  it('section 4: endpoints, their bodies and path parameters', () => {
    const described = endpoints.map(({ endpoint, operation }) => [
      endpoint,
      operation.requestBody?.required ?? false,
      (operation.parameters ?? []).map(({ $ref, ...inline }) => {
        const parameter = $ref ? api.components.parameters[$ref.split('/').at(-1) ?? ''] : inline
        return `${String(parameter?.in)} ${String(parameter?.name)} ${String(parameter?.required)}`
      }),
    ])
    expect(described).toEqual([
      // 4.2
      ['POST /v1/static-export/jobs', true, []],
      // 4.3
      ['GET /v1/static-export/jobs/{jobId}', false, ['path jobId true']],
      // 4.4
      ['POST /v1/static-export/jobs/{jobId}/bundle', false, ['path jobId true']],
      // 4.1
      ['GET /v2/agent/{projectId}/job/{id}', false, ['path projectId true', 'path id true']],
    ])
    expect(endpoints.map(({ operation }) => operation.operationId)).toEqual(
      operations.filter((operation) => operation !== 'download'),
    )
  })

  it.each([
    ['4.2 and what is known beyond', 'start', ['202', '400', '401', '403', '409', '429']],
    ['4.3 and what is known beyond', 'status', ['200', '400', '401', '403', '404']],
    ['4.4 and what is known beyond', 'bundle', ['200', '400', '401', '403', '404', '409']],
    ['4.1: 200 and 404; section 5: 401', 'agent', ['200', '400', '401', '404']],
  ])('section %s: statuses of %s', (_, id, statuses) => {
    const { operation } = endpoints.find((one) => one.operation.operationId === id) ?? {}
    expect(Object.keys(operation?.responses ?? {})).toEqual(statuses)
    for (const status of statuses.filter((one) => one >= '400')) {
      expect(answerSchema(id, status)).toEqual({ $ref: '#/components/schemas/Error' })
    }
  })

  // Name, type, nullable, format, and the section that says so.
  it.each<[string, [string, string, boolean, string | undefined][]]>([
    // 2.1
    [
      'AgentJob',
      [
        ['id', 'string', false, undefined],
        ['status', 'string', false, undefined],
        ['source', 'object', false, undefined],
        ['model', 'string', false, undefined],
        ['prLink', 'string', true, 'uri'],
        ['createdAt', 'string', false, 'date-time'],
        ['archivedAt', 'string', true, 'date-time'],
      ],
    ],
    // 2.2
    ['Error', [['error', 'string', false, undefined]]],
    // 2.3 (jobId, status, progress, pageCount) and what is known beyond
    [
      'ExportJob',
      [
        ['jobId', 'string', false, undefined],
        ['status', 'string', false, undefined],
        ['progress', 'number', false, undefined],
        ['pageCount', 'integer', false, undefined],
        ['createdAt', 'string', false, 'date-time'],
        ['updatedAt', 'string', false, 'date-time'],
        ['error', 'string', true, undefined],
      ],
    ],
    // 2.4 (bundleUrl, expiresAt) and what is known beyond
    [
      'Bundle',
      [
        ['jobId', 'string', false, undefined],
        ['bundleUrl', 'string', false, 'uri'],
        ['sizeBytes', 'integer', false, undefined],
        ['expiresAt', 'string', false, 'date-time'],
      ],
    ],
    // 4.2 (domain) and what is known beyond
    [
      'StartRequest',
      [
        ['domain', 'string', false, undefined],
        ['version', 'string', false, undefined],
        ['paths', 'array', false, undefined],
      ],
    ],
  ])('section 2: the fields of %s', (name, fields) => {
    const { properties = {} } = api.components.schemas[name] ?? {}
    const described = Object.entries(properties).map(([field, schema]) => {
      const { type, nullable = false, format } = resolve(schema)
      return [field, type, nullable, format]
    })
    expect(described).toEqual(fields)
  })

  it('section 2.1: the source of an agent job', () => {
    const source = api.components.schemas['AgentJob']?.properties?.['source']
    expect(source?.properties).toEqual({
      repository: { type: 'string' },
      ref: { type: 'string', nullable: true },
    })
  })

  it('sections 2 and 4: what must be there', () => {
    const required = (name: string) => api.components.schemas[name]?.required
    expect(required('StartRequest')).toEqual(['domain'])
    expect(required('Error')).toEqual(['error'])
    expect(required('Bundle')).toEqual(expect.arrayContaining(['bundleUrl', 'expiresAt']))
    expect(required('ExportJob')).toEqual(expect.arrayContaining(['jobId', 'status']))
    const agentJob = api.components.schemas['AgentJob']
    expect(agentJob?.required).toEqual(Object.keys(agentJob?.properties ?? {}))
  })

  it('section 3: the statuses', () => {
    const statuses = (name: string) => api.components.schemas[name]?.properties?.['status']?.enum
    // 3.1
    expect(statuses('AgentJob')).toEqual(['active', 'completed', 'archived', 'failed'])
    // 3.2 names completed and failed; the others are known beyond it.
    expect(statuses('ExportJob')).toEqual(['queued', 'running', 'completed', 'failed'])
  })

  it('section 5: every endpoint needs a bearer key', () => {
    expect(api.security).toEqual([{ adminApiKey: [] }])
    expect(api.components.securitySchemes).toEqual({
      adminApiKey: { type: 'http', scheme: 'bearer' },
    })
    for (const { operation } of endpoints) expect(operation).not.toHaveProperty('security')
  })
})

describe('the emulator says what openapi.yaml says', () => {
  const ajv = addFormats.default(new Ajv({ strict: false, allErrors: true }))
  ajv.addSchema(api, 'api')
  const validators = new Map<string, ValidateFunction>()
  const validatorOf = (schema: Schema) => {
    const ref = `api${schema.$ref ?? ''}`
    const validate = validators.get(ref) ?? ajv.compile({ $ref: ref })
    validators.set(ref, validate)
    return validate
  }

  let emulator: Emulator
  beforeAll(async () => {
    emulator = await startEmulator({ startsPerHour: 4 })
  })
  afterAll(() => emulator.close())

  /** An answer is as described when its schema accepts it and names each of its fields. */
  function check(id: string, seen: Seen): void {
    const schema = answerSchema(id, String(seen.status))
    if (schema === undefined) throw new Error(`${id}: ${String(seen.status)} is not described`)
    const body = json(seen)
    const validate = validatorOf(schema)
    expect({ body, valid: validate(body), errors: validate.errors }).toEqual({
      body,
      valid: true,
      errors: null,
    })
    expect(Object.keys(resolve(schema).properties ?? {})).toEqual(
      expect.arrayContaining(Object.keys(body as object)),
    )
    expect(seen.headers['content-type']).toBe('application/json')
  }

  it('in good answers and in refusals', async () => {
    const jobs = '/v1/static-export/jobs'
    const seen = new Set<string>()
    const ask = async (id: string, method: string, path: string, options?: object) => {
      const answer = await call(emulator, method, path, options)
      check(id, answer)
      seen.add(`${id} ${String(answer.status)}`)
      return json(answer) as { jobId: string }
    }
    const { expired, noExport, readOnly } = emulator.keys
    const { jobId } = await ask('start', 'POST', jobs, { body: { domain } })
    await ask('bundle', 'POST', `${jobs}/${jobId}/bundle`)
    await ask('status', 'GET', `${jobs}/${jobId}`)
    emulator.advanceClock(12)
    await ask('status', 'GET', `${jobs}/${jobId}`)
    emulator.advanceClock(12)
    await ask('status', 'GET', `${jobs}/${jobId}`)
    await ask('bundle', 'POST', `${jobs}/${jobId}/bundle`)
    emulator.failNextJob({ error: 'x', afterPages: 0 })
    const { jobId: failed } = await ask('start', 'POST', jobs, {
      body: { domain, version: 'v1', paths: ['/'] },
    })
    emulator.advanceClock(24)
    await ask('status', 'GET', `${jobs}/${failed}`)
    await exportSite(emulator)
    await exportSite(emulator)
    await ask('start', 'POST', jobs, { body: { domain } })
    await ask('start', 'POST', jobs, { body: {} })
    await ask('start', 'POST', jobs, { body: { domain }, key: expired })
    await ask('start', 'POST', jobs, { body: { domain }, key: readOnly })
    for (const [id, method, path] of [
      ['status', 'GET', `${jobs}/`],
      ['bundle', 'POST', `${jobs}/`],
    ] as const) {
      const rest = id === 'bundle' ? '/bundle' : ''
      await ask(id, method, `${path}none${rest}`)
      await ask(id, method, `${path}a.b${rest}`)
      await ask(id, method, `${path}none${rest}`, { key: expired })
      await ask(id, method, `${path}none${rest}`, { key: noExport })
    }
    for (const id of emulator.agentJobs)
      await ask('agent', 'GET', `/v2/agent/docs-project/job/${id}`)
    await ask('agent', 'GET', '/v2/agent/docs-project/job/none')
    await ask('agent', 'GET', '/v2/agent/docs-project/job/a.b')
    await ask('agent', 'GET', '/v2/agent/docs-project/job/none', { key: expired })

    const described = endpoints.flatMap(({ operation: { operationId, responses } }) =>
      Object.keys(responses).map((status) => `${operationId} ${status}`),
    )
    expect(described.filter((one) => !seen.has(one))).toEqual(['start 409'])
    await using strict = await startEmulator({ oneExportPerSite: true })
    await call(strict, 'POST', jobs, { body: { domain } })
    check('start', await call(strict, 'POST', jobs, { body: { domain } }))
  })

  it.each([
    ['an answer of another form', () => ({}), 'id is missing.'],
    [
      'a status that is not described',
      () => {
        throw new Refusal(418, 'x')
      },
      'status 418 is not described',
    ],
    [
      'an error',
      () => {
        throw new TypeError('x')
      },
      expect.objectContaining({ message: 'x' }) as unknown,
    ],
  ])('or owns up to a bug: %s', async (_, get, cause) => {
    const agentJobs = new AgentJobs(Date, 0)
    agentJobs.get = get as AgentJobs['get']
    const broken = await createApi({
      exportJobs: new ExportJobs(defaults, Date, () => 'se_1'),
      agentJobs,
      publish: () => Promise.reject(new Error('not asked for')),
      report: 'full',
    })
    const print = jest.spyOn(console, 'error').mockImplementation(() => undefined)
    const target = '/v2/agent/docs-project/job/x'
    const headers = { authorization: `Bearer ${emulator.keys.good}` }
    const reply = await broken.answer({ method: 'GET', target, headers, body: '' })
    const printed = print.mock.calls.slice()
    print.mockRestore()
    expect(reply.status).toBe(500)
    expect(printed).toEqual([[`emulator: a bug in the answer to GET ${target}:`, cause]])
  })
})
