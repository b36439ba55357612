import type { Socket } from 'node:net'
import { beforeAll, describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import nock from 'nock'
import { type Client, createClient } from '../src/client.ts'
import { deadlineIn } from '../src/clock.ts'
import { Failure, failureCodes } from '../src/errors.ts'
import { createHttp } from '../src/http.ts'
import {
  type Network,
  NetworkFault,
  type NetworkReply,
  type NetworkRequest,
  systemNetwork,
} from '../src/network.ts'
import { FakeClock } from './support/fake-clock.ts'
import { RecordingLog } from './support/recording-log.ts'
import { commandsIn } from './support/runner-parser.ts'
import { type Answer, closedPort, listen, reply as wireReply } from './support/wire.ts'

const key = 'mint_0123456789abcdef'

/** What the network does with a request: answers, fails, or keeps silent until it is aborted. */
type Step = Partial<NetworkReply> | NetworkFault | { readonly silentForMs: number }

interface Options {
  readonly baseUrl?: string
  readonly apiKey?: string
  readonly timeoutMs?: number
  readonly network?: Network
  readonly signal?: AbortSignal
  readonly onRequest?: (count: number, clock: FakeClock) => void
}

type Call = (client: Client) => Promise<unknown>

const start: Call = (client) =>
  client.startExport({ domain: 'docs.example.com', version: undefined, paths: [] })
const look: Call = (client) => client.readExport('se_1', false)
const firstLook: Call = (client) => client.readExport('se_1', true)
const bundle: Call = (client) => client.createBundle('se_1')
const agent: Call = (client) => client.readAgentJob('p1', 'aj_1', false)

/** Sends something for as long as anybody listens. */
function drip(socket: Socket, first: string): void {
  socket.write(first, () => {
    if (!socket.destroyed) setImmediate(drip, socket, 'x')
  })
}

beforeAll(() => {
  nock.restore() // it would put sockets of its own in place of the real ones
})

const calls = { start, look, bundle, agent }

/** One answer per operation that it can go on with. */
const answers = new Map<Call, object>([
  [start, { jobId: 'se_1', status: 'queued' }],
  [look, { jobId: 'se_1', status: 'running' }],
  [firstLook, { jobId: 'se_1', status: 'running' }],
  [bundle, { jobId: 'se_1', bundleUrl: 'https://s3.example/x' }],
  [agent, { status: 'active' }],
])

/** Makes a call with a network that takes these steps, and the last of them for ever. */
async function perform(call: Call, steps: readonly Step[], options: Options = {}) {
  const clock = new FakeClock()
  const log = new RecordingLog()
  const requests: NetworkRequest[] = []
  const atMs: number[] = []
  const network: Network = (request, signal) => {
    requests.push(request)
    atMs.push(clock.nowMs())
    options.onRequest?.(requests.length, clock)
    if (options.network) return options.network(request, signal)
    const step = steps[Math.min(requests.length, steps.length) - 1] ?? {}
    if (step instanceof NetworkFault) return Promise.reject(step)
    if (!('silentForMs' in step)) {
      const { status = 200, headers = {}, body = '{}' } = step
      return Promise.resolve({ status, headers, body })
    }
    void clock.advance(step.silentForMs)
    return new Promise((_, reject) => {
      signal.addEventListener('abort', () => {
        reject(signal.reason as Error)
      })
    })
  }
  const http = createHttp({
    baseUrl: new URL(options.baseUrl ?? 'https://api.example.com'),
    apiKey: options.apiKey ?? key,
    network,
    clock,
    random: () => 1,
    log,
    deadline: deadlineIn(options.timeoutMs ?? 1_800_000, clock),
    signal: options.signal ?? new AbortController().signal,
  })
  const settled = await call(createClient(http)).then(
    (value) => ({ value, error: undefined }),
    (error: unknown) => ({ value: undefined, error }),
  )
  const failure = settled.error instanceof Failure ? settled.error : undefined
  const told = [log.text, failure?.message, failure?.serverSaid, failure?.tried, failure?.advice].join('\n') // prettier-ignore
  expect(told).not.toContain(key)
  expect(commandsIn(told)).toEqual([])
  expect(clock.pending).toBe(0)
  return { ...settled, failure, requests, atMs, log, clock, told, http }
}

async function failureOf(call: Call, steps: readonly Step[], options?: Options) {
  const result = await perform(call, steps, options)
  if (!result.failure) throw new Error('no failure', { cause: result.error })
  expect(failureCodes).toContain(result.failure.code)
  expect(result.failure.message).toMatch(/^Could not [a-z ]+: .*\.$/)
  return { ...result, failure: result.failure }
}

const good = (call: Call): Step => ({ body: JSON.stringify(answers.get(call)) })
const said = (error: unknown): string => JSON.stringify({ error })
const lost = (code = 'ECONNRESET', delivered = true) =>
  new NetworkFault('connection', code, 'the connection was closed before a reply', { delivered })
const cut = new NetworkFault('body-cut', 'ECONNRESET', 'the reply was cut off after 4 of 9 bytes', {
  delivered: true,
})

describe('the requests', () => {
  test.each([
    ['start', 'POST', '/v1/static-export/jobs', '{"domain":"docs.example.com"}'],
    ['look', 'GET', '/v1/static-export/jobs/se_1', undefined],
    ['bundle', 'POST', '/v1/static-export/jobs/se_1/bundle', undefined],
    ['agent', 'GET', '/v2/agent/p1/job/aj_1', undefined],
  ] as const)('%s: %s %s', async (name, method, path, body) => {
    const call = calls[name]
    const { requests, value } = await perform(call, [good(call)], {
      baseUrl: 'https://api.example.com/admin/',
    })
    expect(value).toMatchObject(answers.get(call) ?? {})
    expect(requests).toHaveLength(1)
    expect(requests[0]).toMatchObject({ method, url: { href: `https://api.example.com/admin${path}` } }) // prettier-ignore
    expect(requests[0]?.body).toBe(body)
    expect(requests[0]?.headers).toEqual({
      authorization: `Bearer ${key}`,
      accept: 'application/json',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    })
  })

  test('version and paths are sent when they are set', async () => {
    const { requests } = await perform(
      (client) => client.startExport({ domain: 'd.example', version: '1.10', paths: ['a', 'ä'] }),
      [good(start)],
    )
    expect(requests[0]?.body).toBe('{"domain":"d.example","version":"1.10","paths":["a","ä"]}')
  })

  test('no id leaves its place in the path', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string().filter((id) => id !== '.' && id !== '..'),
        async (id) => {
          const { requests } = await perform(
            (client) => client.readAgentJob('p1', id, false),
            [good(agent)],
          )
          expect(requests[0]?.url.href.startsWith('https://api.example.com/v2/agent/p1/job/')).toBe(true) // prettier-ignore
          expect(requests[0]?.url.pathname.split('/')).toHaveLength(6)
          expect(requests[0]?.url.search).toBe('')
        },
      ),
      { numRuns: 50 },
    )
  })

  test('headers are made anew for each try', async () => {
    const { requests } = await perform(look, [lost(), good(look)])
    expect(requests[0]?.headers).not.toBe(requests[1]?.headers)
  })
})

describe('a refusal ends the operation at once, with the words of the service', () => {
  test.each([
    ['start', 400, 'bad-request', /`domain`.*`paths`/],
    ['start', 401, 'auth', /wrong, revoked or expired/],
    ['look', 401, 'auth', /wrong, revoked or expired/],
    ['start', 403, 'forbidden', /not enabled.*`write` scope.*allowlist.*login/],
    ['bundle', 403, 'forbidden', /not enabled/],
    ['start', 404, 'not-found', /root of the Admin API, without \/v1/],
    ['look', 404, 'not-found', /no such job for this key/],
    ['bundle', 404, 'not-found', /no such job for this key/],
    ['agent', 404, 'not-found', /`agent-project-id`/],
    ['start', 409, 'conflict', /Another export of this site is running.*`job-id`/],
    ['look', 405, 'protocol', /base-url/],
    ['look', 410, 'protocol', /base-url/],
    ['look', 413, 'protocol', /base-url/],
    ['look', 415, 'protocol', /base-url/],
    ['look', 422, 'protocol', /base-url/],
    ['look', 299, 'protocol', /base-url/],
    ['look', 999, 'protocol', /base-url/],
    ['look', 501, 'server', /problem of its own/],
    ['look', 505, 'server', /problem of its own/],
  ] as const)('%s: HTTP %d is %s', async (name, status, code, advice) => {
    const { failure, requests } = await failureOf(calls[name], [{ status, body: said('Because.') }])
    expect(failure).toMatchObject({ code, serverSaid: 'Because.', tried: undefined })
    expect(failure.message).toMatch(new RegExp(`^Could not .*: HTTP ${status}\\.$`))
    expect(failure.advice).toMatch(advice)
    expect(requests).toHaveLength(1)
  })

  test('200, 201 and 202 are all a success', async () => {
    for (const status of [200, 201, 202]) {
      const { value } = await perform(start, [{ body: JSON.stringify(answers.get(start)), status }])
      expect(value).toMatchObject({ jobId: 'se_1' })
    }
  })
})

describe('a redirect', () => {
  test.each([
    ['https://login.example/x?token=secret', ' to login.example'],
    ['http://api.example.com/v1', ' to api.example.com'],
    ['https://me:secret@api.example.com:8443/', ' to api.example.com:8443'],
    ['/relative', ''],
    ['//[broken', ''],
    ['javascript:alert(1)', ''],
    [undefined, ''],
  ])('to %s is not followed', async (location, target) => {
    const { failure, requests, told } = await failureOf(look, [
      { status: 302, headers: location === undefined ? {} : { location } },
    ])
    expect(failure.code).toBe('protocol')
    expect(failure.message).toContain(`HTTP 302, a redirect${target}, which is not followed`)
    expect(failure.advice).toContain('`base-url`')
    expect(requests).toHaveLength(1)
    expect(told).not.toContain('secret')
  })
})

describe('what heals is tried again', () => {
  test.each([
    ['HTTP 500', { status: 500 }],
    ['HTTP 502 with a page', { status: 502, body: '<html>' }],
    ['HTTP 503', { status: 503 }],
    ['HTTP 504', { status: 504 }],
    ['HTTP 408', { status: 408 }],
    ['HTTP 425', { status: 425 }],
    ['HTTP 429', { status: 429 }],
    ['HTTP 522', { status: 522 }],
    ['a lost connection', lost()],
    ['a refused connection', lost('ECONNREFUSED', false)],
    ['a cut body', cut],
    ['a page instead of JSON', { body: '<!doctype html><title>Login</title>' }],
    ['nothing instead of JSON', { body: '' }],
    ['half of the JSON', { body: '{"status":"runn' }],
    ['another shape', { body: '{"status":["completed"]}' }],
    ['null', { body: 'null' }],
    ['silence', { silentForMs: 30_000 }],
  ] as [string, Step][])('%s', async (_, step) => {
    const { value, requests, log } = await perform(look, [step, good(look)])
    expect(value).toMatchObject({ status: 'running' })
    expect(requests).toHaveLength(2)
    expect(log.warnings).toEqual([])
    expect(log.lines[0]).toMatch(/^details: Could not read the status of the export yet: .*; next try in (?:1|5) s$/) // prettier-ignore
  })

  test('a job that was started a moment ago may be unknown for 30 s', async () => {
    const unknown = { status: 404, body: said('No such job') }
    const found = await perform(firstLook, [unknown, unknown, good(firstLook)])
    expect(found.value).toMatchObject({ status: 'running' })
    const { failure, clock } = await failureOf(firstLook, [unknown])
    expect(failure.code).toBe('not-found')
    expect(clock.nowMs()).toBeGreaterThanOrEqual(30_000)
    expect(clock.nowMs()).toBeLessThan(60_000)
  })

  test('a bundle that is not yet there is waited for, for a minute', async () => {
    const early = { status: 409, body: said('Not finished') }
    const found = await perform(bundle, [early, early, early, early, early, early, good(bundle)])
    expect(found.value).toMatchObject({ bundleUrl: 'https://s3.example/x' })
    const { failure, clock } = await failureOf(bundle, [early])
    expect(failure).toMatchObject({ code: 'conflict', serverSaid: 'Not finished' })
    expect(failure.advice).toContain('`job-id`')
    expect(clock.nowMs()).toBeGreaterThanOrEqual(60_000)
    expect(clock.nowMs()).toBeLessThan(120_000)
  })

  test('an outage of less than five minutes is survived, a longer one is not', async () => {
    const down = { status: 502, body: '<html>' }
    const survived = await perform(look, [...Array<Step>(11).fill(down), good(look)])
    expect(survived.value).toMatchObject({ status: 'running' })
    const { failure, clock } = await failureOf(look, [down])
    expect(failure.code).toBe('server')
    expect(failure.tried).toBe('15 tries in 5m 01s')
    expect(clock.nowMs()).toBeGreaterThanOrEqual(300_000)
  })

  test.each([
    ['bundle', { status: 502 }, 5, 'server'],
    ['agent', { status: 502 }, 3, 'server'],
    ['look', lost('ENOTFOUND', false), 3, 'network'],
    ['look', { body: '<html>' }, 3, 'protocol'],
    ['look', new NetworkFault('not-http', 'HPE_INVALID_CONSTANT', 'no HTTP', { delivered: true }), 2, 'protocol'],
    ['look', new NetworkFault('body-too-large', 'TOO_LARGE', 'too long', { delivered: true }), 1, 'protocol'],
    ['look', new NetworkFault('tls', 'CERT_HAS_EXPIRED', 'the TLS certificate has expired', { delivered: false }), 1, 'tls'],
    ['look', new NetworkFault('not-tls', 'EPROTO', 'no TLS', { delivered: false }), 1, 'tls'],
    ['look', new NetworkFault('proxy', '407', 'the proxy answered HTTP 407', { delivered: false }), 1, 'proxy'],
    ['agent', new NetworkFault('proxy', 'ECONNRESET', 'the proxy could not be reached', { delivered: false }), 3, 'proxy'],
    ['agent', cut, 3, 'network'],
  ] as [keyof typeof calls, Step, number, string][])('%s as often as it makes sense: %j', async (name, step, tries, code) => {
    const { failure, requests } = await failureOf(calls[name], [step])
    expect(failure.code).toBe(code)
    expect(requests).toHaveLength(tries)
    if (tries > 1) expect(failure.tried).toMatch(new RegExp(`^${tries} tries in `))
  }) // prettier-ignore
})

describe('a start of unknown fate', () => {
  const unknown: [string, Step][] = [
    ['HTTP 500', { status: 500 }],
    ['HTTP 502', { status: 502 }],
    ['HTTP 503', { status: 503 }],
    ['HTTP 504', { status: 504 }],
    ['HTTP 408', { status: 408 }],
    ['a lost connection', lost()],
    ['a cut body', cut],
    ['silence', { silentForMs: 45_000 }],
    ['a page', { body: '<html>' }],
    ['no body', { status: 202, body: '' }],
  ]

  test.each(unknown)('%s: repeated once, with one warning', async (_, step) => {
    const { value, requests, log } = await perform(start, [step, good(start)])
    expect(value).toMatchObject({ jobId: 'se_1' })
    expect(requests).toHaveLength(2)
    expect(log.warnings).toEqual([
      expect.stringMatching(/^It is not known whether .*: a second export may be running\.$/),
    ])
  })

  test.each(unknown)('%s: never more than twice, and the end says so', async (_, step) => {
    const { failure, requests, log } = await failureOf(start, [step])
    expect(requests).toHaveLength(2)
    expect(log.warnings).toHaveLength(1)
    expect(failure.message).toMatch(/\. The service may have carried it out all the same\.$/)
  })

  test('counts across faults: what was never sent does not', async () => {
    const never = lost('ECONNREFUSED', false)
    const { failure, requests } = await failureOf(start, [never, lost(), never, { status: 502 }])
    expect(requests).toHaveLength(4)
    expect(failure.code).toBe('server')
    const refused = await failureOf(start, [never])
    expect(refused.requests).toHaveLength(4)
    expect(refused.log.warnings).toEqual([])
    expect(refused.failure.message).not.toMatch(/all the same/)
  })

  test('a conflict afterwards is probably our own doing', async () => {
    const { failure } = await failureOf(start, [lost(), { status: 409 }])
    expect(failure.code).toBe('conflict')
    expect(failure.message).toBe('Could not start the export: HTTP 409 with a body of 2 B.')
    expect(failure.advice).toMatch(/first request of this run probably started it/)
  })

  test('a refused key afterwards is still a refused key', async () => {
    const { failure } = await failureOf(start, [lost(), { status: 401 }])
    expect(failure.advice).toMatch(/wrong, revoked or expired/)
  })

  test('an odd answer is not repeated: the export has started', async () => {
    for (const body of ['null', '[]', '7', '{"jobId":7}', '{}']) {
      const { failure, requests } = await failureOf(start, [{ status: 202, body }])
      expect(failure.code).toBe('protocol')
      expect(failure.message).toMatch(/\. The service may have carried it out all the same\.$/)
      expect(requests).toHaveLength(1)
    }
  })

  test('too many starts: tried twice without a word on when, and nothing was started', async () => {
    const { failure, requests, log } = await failureOf(start, [
      { status: 429, body: said('Slow.') },
    ])
    expect(failure).toMatchObject({ code: 'rate-limited', serverSaid: 'Slow.' })
    expect(failure.advice).toMatch(/`job-id`/)
    expect(requests).toHaveLength(2)
    expect(log.warnings).toEqual([])
  })
})

describe('Retry-After', () => {
  const limited = (value: string, date?: string): Step => ({
    status: 429,
    body: said('Slow down.'),
    headers: { 'retry-after': value, ...(date === undefined ? {} : { date }) },
  })

  test.each([
    ['7', undefined, 7_000],
    ['120', undefined, 120_000],
    // By the clock of the server, which is 10 minutes behind.
    ['Fri, 20 Nov 2026 11:50:30 GMT', 'Fri, 20 Nov 2026 11:50:00 GMT', 30_000],
    ['Fri, 20 Nov 2026 12:00:30 GMT', undefined, 30_000],
    // What cannot be read, or is long past, does not make us hurry.
    ['0', undefined, 5_000],
    ['-5', undefined, 5_000],
    ['1e9', undefined, 5_000],
    ['', undefined, 5_000],
    ['0x10', undefined, 5_000],
    ['5, 5', undefined, 5_000],
    ['Fri, 20 Nov 2026 11:00:00 GMT', undefined, 5_000],
  ])('%j at %s: the next try after %d ms', async (value, date, delayMs) => {
    const { atMs } = await perform(look, [limited(value, date), good(look)])
    expect(atMs).toEqual([0, delayMs])
  })

  test('beyond the end of the run is a failure now, which says how long', async () => {
    const { failure, requests } = await failureOf(look, [limited('86400')])
    expect(failure.code).toBe('rate-limited')
    expect(failure.message).toBe(
      'Could not read the status of the export: HTTP 429. The service asks to wait 24h 00m, longer than the 30m 00s that are left for it.',
    )
    expect(requests).toHaveLength(1)
  })

  test('counts for HTTP 503 too', async () => {
    const down = { status: 503, headers: { 'retry-after': '90' } }
    expect((await perform(look, [down, good(look)])).atMs).toEqual([0, 90_000])
  })
})

describe('an answer that is none', () => {
  test.each([
    ['<!DOCTYPE html><title>Sign in</title>', {}, 'not JSON but an HTML page (37 B)'],
    ['  <html>', {}, 'not JSON but an HTML page (8 B)'],
    ['hello', { 'content-type': 'text/plain; charset=utf-8' }, 'not JSON but a body of 5 B (text/plain)'],
    ['hello', {}, 'not JSON but a body of 5 B'],
    ['', {}, 'not JSON but an empty body'],
    [' \n', {}, 'not JSON but an empty body'],
    ['{"status":"runn', {}, 'not JSON but a body of 15 B'],
    ['null', {}, 'not as the Admin API writes it (it is not an object)'],
    ['[]', {}, 'it is not an object'],
    ['"x"', {}, 'it is not an object'],
    ['7', {}, 'it is not an object'],
    ['{}', {}, '(`status` is missing)'],
    ['{"status":["completed"]}', {}, '(`status` is not a string)'],
    ['{"__proto__":{"status":"completed"}}', {}, '(`status` is missing)'],
    ['['.repeat(200_000) + ']'.repeat(200_000), {}, 'not JSON but a body of 400 kB'],
    ['{}', { 'content-encoding': 'gzip' }, 'encoded as gzip, which was not asked for'],
    ['{}', { 'content-encoding': '\u001b[31m##[error]x' }, 'encoded as ## [error]x'],
  ])('number %#', async (body, headers, reason) => {
    const { failure } = await failureOf(look, [{ body, headers }])
    expect(failure.code).toBe('protocol')
    expect(failure.message).toContain(reason)
    expect(failure.message).not.toContain('Sign in')
    expect(failure.message.length).toBeLessThan(250)
  }) // prettier-ignore

  test.each([
    ['an own __proto__', '{"__proto__":{"status":"completed"},"status":"running"}'],
    ['a key twice', '{"status":"completed","status":"running"}'],
    ['unknown fields', '{"status":"running","new":{"a":[1]}}'],
    ['numbers out of range', '{"status":"running","progress":1e400}'],
    ['identity as encoding', '{"status":"running"}'],
  ])('but %s does not matter', async (_, body) => {
    const { value } = await perform(look, [{ body, headers: { 'content-encoding': 'identity' } }])
    expect(value).toMatchObject({ status: 'running' })
    expect(({} as { status?: unknown }).status).toBeUndefined()
  })

  test('any body at all: an answer or a failure of the closed list', async () => {
    const anyBody = fc.oneof(fc.json(), fc.string(), fc.string({ unit: 'binary' }))
    const anyStatus = fc.integer({ min: 200, max: 599 })
    await fc.assert(
      fc.asyncProperty(anyBody, anyStatus, async (body, status) => {
        const { error } = await perform(agent, [{ status, body }])
        if (error !== undefined) expect(error).toBeInstanceOf(Failure)
      }),
      { numRuns: 60 },
    )
  }, 20_000)
})

describe('the words of the service', () => {
  const serverSaid = async (body: string, options?: Options) =>
    (await failureOf(look, [{ status: 400, body }], options)).failure.serverSaid

  test.each([
    [said('Invalid domain'), 'Invalid domain'],
    [said({ code: 7 }), '{"code":7}'],
    [said(['a']), '["a"]'],
    [said(''), undefined],
    [said(null), undefined],
    ['{"message":"x"}', undefined],
    ['null', undefined],
    ['[]', undefined],
    ['"x"', undefined],
    ['<html>', undefined],
    ['{"error":'.repeat(5_000), undefined],
    [`{"error":${'['.repeat(30_000)}${']'.repeat(30_000)}}`, undefined],
    [said('a\n::add-mask::b\r##[error]c\u001b[31m'), 'a ::add-mask::b ## [error]c'],
    [said('::stop-commands::x'), ': :stop-commands::x'],
    [said(`The key ${key} is unknown`), 'The key *** is unknown'],
  ])('%.60j', async (body, text) => {
    expect(await serverSaid(body)).toBe(text)
  })

  test('are cut', async () => {
    expect(await serverSaid(said('x'.repeat(60_000)))).toBe(`${'x'.repeat(499)}…`)
  })

  test('also when they break our key in two', async () => {
    expect(await serverSaid(said(`${'x'.repeat(490)}${key}`))).toBe(`${'x'.repeat(490)}***`)
  })

  test.each([
    [{ status: 502, body: '<html>secret page</html>' }, 'HTTP 502 with an HTML page (24 B).'],
    [{ status: 502, body: '' }, 'HTTP 502 with an empty body.'],
    [{ status: 502, body: 'oops', headers: { 'content-type': 'text/plain' } }, 'HTTP 502 with a body of 4 B (text/plain).'], // prettier-ignore
  ])('are not those of a page: %#', async (step, end) => {
    const { failure, told } = await failureOf(agent, [step])
    expect(failure.message).toBe(`Could not read the agent job: ${end}`)
    expect(told).not.toContain('secret')
  })

  test('a short key does not eat into an answer', async () => {
    const body = '{"bundleUrl":"https://docs.s3.example/docs.tar.gz"}'
    const { value } = await perform(bundle, [{ body }], { apiKey: 'docs' })
    expect(value).toMatchObject({ bundleUrl: 'https://docs.s3.example/docs.tar.gz' })
  })
})

describe('the network in words', () => {
  test('names host and code, and is never empty', async () => {
    const { failure } = await failureOf(agent, [lost('ECONNREFUSED', false)])
    expect(failure.message).toBe(
      'Could not read the agent job: the connection was closed before a reply (api.example.com, ECONNREFUSED).',
    )
    expect(failure.advice).toMatch(/HTTPS_PROXY/)
  })

  test.each([
    ['tls', 'DEPTH_ZERO_SELF_SIGNED_CERT', /NODE_EXTRA_CA_CERTS/],
    ['tls', 'CERT_HAS_EXPIRED', /renew/],
    ['tls', 'ERR_TLS_CERT_ALTNAME_INVALID', /host name in `base-url`/],
    ['not-tls', 'EPROTO', /port of `base-url`/],
    ['proxy', '407', /credentials/],
  ] as const)('%s %s has advice that fits', async (kind, code, advice) => {
    const { failure } = await failureOf(look, [new NetworkFault(kind, code, 'x', { delivered: false })]) // prettier-ignore
    expect(failure.advice).toMatch(advice)
  })

  test('what is no fault of the network passes through', async () => {
    const bug = new TypeError('x is not a function')
    const { error } = await perform(look, [], { network: () => Promise.reject(bug) })
    expect(error).toBe(bug)
  })
})

describe('silence', () => {
  test.each([
    ['start', 45_000, '45 s', 2],
    ['agent', 20_000, '20 s', 3],
    ['bundle', 180_000, '3m 00s', 5],
  ] as const)('%s: each try has its time', async (name, silentForMs, text, tries) => {
    const { failure, requests } = await failureOf(calls[name], [{ silentForMs }])
    expect(failure.code).toBe('timeout')
    expect(failure.message).toContain(`api.example.com sent no whole reply within ${text}`)
    expect(failure.advice).not.toMatch(/Raise `timeout-minutes`/)
    expect(requests).toHaveLength(tries)
  })

  test('a try ends with the run at the latest', async () => {
    const { failure, clock } = await failureOf(look, [{ silentForMs: 10_000 }], {
      timeoutMs: 10_000,
    })
    expect(failure.code).toBe('timeout')
    expect(failure.message).toMatch(/within 10 s\. The time that is left does not allow another try\.$/) // prettier-ignore
    expect(failure.advice).toMatch(/Raise `timeout-minutes`/)
    expect(clock.nowMs()).toBe(10_000)
  })

  test('when the time is over nothing is sent', async () => {
    const { failure, requests } = await failureOf(start, [], { timeoutMs: 0 })
    expect(requests).toEqual([])
    expect(failure).toMatchObject({
      code: 'timeout',
      message: 'Could not start the export: the time of this step (`timeout-minutes`) is over.',
      tried: undefined,
    })
    expect(failure.advice).toMatch(/Raise `timeout-minutes`/)
  })

  test.each([
    ['says nothing', () => undefined],
    [
      'drips its head',
      (socket) => {
        drip(socket, 'HTTP/1.1 200 OK\r\nx: ')
      },
    ],
    [
      'drips its body',
      (socket) => {
        drip(socket, 'HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n')
      },
    ],
  ] as [string, Answer][])(
    'of a real server that %s: the try ends, and hangs up',
    async (_, answer) => {
      await using wire = await listen(answer)
      const { failure, requests } = await failureOf(agent, [], {
        baseUrl: `http://127.0.0.1:${wire.port}`,
        timeoutMs: 20_000,
        network: systemNetwork,
        onRequest: (_count, clock) => void wire.arrived.then(() => clock.advance(20_000)),
      })
      expect(failure.code).toBe('timeout')
      expect(requests).toHaveLength(1)
      await wire.clientGone
    },
  )
})

describe('an abort of the run', () => {
  const reason = new Failure('cancelled', 'Cancelled by SIGINT.')

  test('before: no request', async () => {
    const { error, requests } = await perform(look, [], { signal: AbortSignal.abort(reason) })
    expect(error).toBe(reason)
    expect(requests).toEqual([])
  })

  test.each([
    ['in a request', [{ silentForMs: 0 }]],
    ['while an error arrives', [{ status: 502 }]],
    ['while an answer arrives that must be repeated', [{ body: '<html>' }]],
  ] as [string, Step[]][])('%s: its reason, and no further request', async (_, steps) => {
    const controller = new AbortController()
    const { error, requests } = await perform(look, steps, {
      signal: controller.signal,
      onRequest() {
        setImmediate(() => {
          controller.abort(reason)
        })
      },
    })
    expect(error).toBe(reason)
    expect(requests).toHaveLength(1)
  })

  test('in the pause before the next try', async () => {
    const controller = new AbortController()
    const { error, requests } = await perform(look, [lost()], {
      signal: controller.signal,
      onRequest(count, clock) {
        if (count !== 3) return
        clock.timer(1, () => {
          controller.abort(reason)
        })
      },
    })
    expect(error).toBe(reason)
    expect(requests).toHaveLength(3)
  })
})

describe('the time of the service', () => {
  const dated = (date: string): Step => ({
    body: JSON.stringify(answers.get(look)),
    headers: { date },
  })

  test.each([
    ['Fri, 20 Nov 2026 12:02:00 GMT', []],
    ['Fri, 20 Nov 2026 11:58:00 GMT', []],
    ['Fri, 20 Nov 2026 12:10:00 GMT', [expect.stringContaining('is 10m 00s behind that of the Admin API')]], // prettier-ignore
    ['Fri, 20 Nov 2026 11:00:00 GMT', [expect.stringContaining('is 1h 00m ahead of that of the Admin API')]], // prettier-ignore
    ['yesterday', []],
  ])('%s', async (date, warnings) => {
    const { log, http } = await perform(
      async (client) => {
        await look(client)
        return look(client)
      },
      [dated(date)],
    )
    expect(log.warnings).toEqual(warnings)
    const expected = date === 'yesterday' ? '2026-11-20T12:00:00Z' : date
    expect(http.serverWallMs()).toBe(Date.parse(expected))
  })

  test('goes on with the monotonic clock', async () => {
    const { http, clock } = await perform(look, [dated('Fri, 20 Nov 2026 11:00:00 GMT')])
    await clock.advance(90_000)
    clock.wallOffsetMs = 7_200_000
    expect(http.serverWallMs()).toBe(Date.parse('2026-11-20T11:01:30Z'))
  })
})

describe('on the real network', () => {
  const real = (port: number, options: Options = {}): Options => ({
    baseUrl: `http://127.0.0.1:${port}`,
    network: systemNetwork,
    ...options,
  })

  test('a start whose answer is cut off is sent twice, and no more', async () => {
    await using wire = await listen((socket) => {
      socket.end('HTTP/1.1 202 Accepted\r\ncontent-length: 99\r\n\r\n{"jobId":"se_')
    })
    const { failure, log } = await failureOf(start, [], real(wire.port))
    expect(failure.code).toBe('network')
    expect(failure.message).toMatch(/the reply was cut off after 13 of 99 bytes/)
    expect(wire.requests).toHaveLength(2)
    expect(log.warnings).toHaveLength(1)
  })

  test('a start that was refused four times was never sent', async () => {
    const { failure, log } = await failureOf(start, [], real(await closedPort()))
    expect(failure).toMatchObject({ code: 'network' })
    expect(failure.message).toMatch(/the connection was refused \(127\.0\.0\.1:\d+, ECONNREFUSED\)/)
    expect(log.warnings).toEqual([])
  })

  test('a megabyte too much is a failure at once', async () => {
    await using wire = await listen(wireReply('200 OK', [], 'x'.repeat(3_000_000)))
    const { failure } = await failureOf(look, [], real(wire.port))
    expect(failure.code).toBe('protocol')
    expect(failure.message).toMatch(/the reply is longer than 1024 KiB/)
    expect(wire.requests).toHaveLength(1)
  })

  test('an error page of megabytes is still an error of the server', async () => {
    await using wire = await listen(
      wireReply('502 Bad Gateway', [], `<html>${'x'.repeat(3_000_000)}`),
    )
    const { failure } = await failureOf(agent, [], real(wire.port))
    expect(failure.code).toBe('server')
    expect(failure.message).toMatch(/HTTP 502 with an HTML page/)
  })

  test('a byte order mark before JSON is fine', async () => {
    await using wire = await listen(wireReply('200 OK', [], '\ufeff{"status":"running"}'))
    expect((await perform(look, [], real(wire.port))).value).toMatchObject({ status: 'running' })
  })
})
