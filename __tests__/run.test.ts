/** Runs against any service at all: they end in time, and their exit code does not lie. */
import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createExportAction } from '../src/export-action.ts'
import type { PullRequest } from '../src/agent-job.ts'
import { Failure, failureCodes } from '../src/errors.ts'
import { type Network, NetworkFault, type NetworkReply } from '../src/network.ts'
import { outputNames } from '../src/outputs.ts'
import { createFakeMachine } from './support/fake-machine.ts'
import { createFakeRunner } from './support/fake-runner.ts'

const inputs = {
  'api-key': 'mint_key_0123456789',
  'base-url': 'https://api.acme.test',
  domain: 'docs.acme.test',
}

function json(status: number, body: unknown, headers: NetworkReply['headers'] = {}): NetworkReply {
  return { status, headers, body: JSON.stringify(body) }
}

const job = (status: string, more = {}) => json(200, { jobId: 'se_1', status, ...more })
const link =
  'https://storage.acme.test/a.tar.gz?X-Amz-Date=20261120T120000Z&X-Amz-Expires=3600&X-Amz-Signature=0123456789abcdef'
const bundle = (more = {}) =>
  json(200, { jobId: 'se_1', bundleUrl: link, expiresAt: '2026-11-20T13:00:00Z', ...more })

interface Run {
  readonly inputs?: Readonly<Record<string, string>>
  readonly network: Network
  readonly pullRequest?: PullRequest
  readonly signal?: AbortSignal
}

async function runOn({ network, pullRequest, signal, ...options }: Run) {
  const requests: string[] = []
  using machine = createFakeMachine({
    network(request, within) {
      requests.push(`${request.method} ${request.url.pathname}`)
      return network(request, within)
    },
  })
  const { clock } = machine
  const runner = createFakeRunner({ ...inputs, ...options.inputs })
  const action = createExportAction({
    ...machine.dependencies,
    runner,
    environment: {},
    signal: signal ?? new AbortController().signal,
    readPullRequest: () =>
      pullRequest ? Promise.resolve(pullRequest) : Promise.reject(new Error('HTTP 404')),
  })
  const exitCode = await action.run()
  return { exitCode, runner, requests, elapsedMs: clock.nowMs(), pending: clock.pending }
}

/** Answers by path; whatever is not given is the way of a healthy service. */
function service(answers: {
  start?: () => NetworkReply
  status?: () => NetworkReply
  bundle?: () => NetworkReply
  agent?: () => NetworkReply
}): Network {
  return ({ url }) => {
    if (url.pathname.startsWith('/v2/')) return Promise.resolve((answers.agent ?? agentReply)())
    if (url.pathname.endsWith('/bundle')) return Promise.resolve((answers.bundle ?? bundle)())
    if (url.pathname.endsWith('/jobs')) {
      return Promise.resolve((answers.start ?? (() => job('queued')))())
    }
    return Promise.resolve((answers.status ?? (() => job('completed')))())
  }
}

const agentReply = () => json(200, { status: 'completed', prLink: null })
const agentInputs = { 'agent-project-id': 'project', 'agent-job-id': 'agent_1' }

test('any service: the run ends in time, fails in a known way, or succeeds with a link', async () => {
  const reply = fc.oneof(
    fc
      .constantFrom('queued', 'running', 'completed', 'failed', 'exporting', '')
      .chain((status) =>
        fc
          .record(
            { progress: fc.jsonValue(), pageCount: fc.jsonValue(), error: fc.jsonValue() },
            { requiredKeys: [] },
          )
          .map((more) => job(status, more)),
      ),
    fc.constantFrom(
      bundle(),
      bundle({ expiresAt: '2026-11-20T11:00:00Z' }),
      bundle({ bundleUrl: 'x' }),
    ),
    fc.jsonValue().map((value) => json(200, value)),
    fc
      .record({
        status: fc.constantFrom(301, 400, 401, 403, 404, 409, 429, 500, 502, 503, 504, 299),
        body: fc.string(),
        retryAfter: fc.constantFrom(undefined, '1', '90000', 'x'),
      })
      .map(({ status, body, retryAfter }) => ({
        status,
        body,
        headers: retryAfter === undefined ? {} : { 'retry-after': retryAfter },
      })),
    fc.constantFrom('ECONNRESET', 'ECONNREFUSED', 'ENOTFOUND', 'CERT_HAS_EXPIRED', 'HPE_INVALID'),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(reply, { minLength: 1, maxLength: 40 }), async (replies) => {
      let index = 0
      const run = await runOn({
        inputs: { 'timeout-minutes': '10' },
        network: () => {
          const next = replies[index % replies.length]
          index += 1
          return typeof next === 'object'
            ? Promise.resolve(next)
            : Promise.reject(
                new NetworkFault('connection', next ?? '', 'lost', { delivered: true }),
              )
        },
      })
      const { outputs, lines } = run.runner
      expect(run.elapsedMs).toBeLessThanOrEqual(10 * 60_000)
      expect(run.requests.length).toBeLessThan(200)
      expect([...outputs.keys()].sort()).toEqual([...outputNames].sort())
      const errors = lines.filter((line) => line.startsWith('Error: '))
      if (run.exitCode === 0) {
        expect(outputs.get('status')).toBe('completed')
        expect(outputs.get('bundleUrl')).toBe(link)
        expect(outputs.get('expiresAt')).not.toBe('')
        expect(errors).toEqual([])
      } else {
        expect(failureCodes).toContain(outputs.get('failureCode'))
        expect(outputs.get('failureCode')).not.toBe('internal')
        expect(outputs.get('bundleUrl')).toBe('')
        expect(errors).toHaveLength(1)
      }
    }),
    { numRuns: 150 },
  )
}, 60_000)

describe('the job', () => {
  test('that is completed in the answer to the start is not asked for again', async () => {
    const run = await runOn({ network: service({ start: () => job('completed') }) })
    expect(run.exitCode).toBe(0)
    expect(run.requests).toEqual([
      'POST /v1/static-export/jobs',
      'POST /v1/static-export/jobs/se_1/bundle',
    ])
  })

  test('of which only the id is told at the start is waited for', async () => {
    const run = await runOn({ network: service({ start: () => json(202, { jobId: 'se_1' }) }) })
    expect(run.exitCode).toBe(0)
  })

  test.each(['', '../x', 'a b', 'x'.repeat(200), 7, null])(
    'with the id %j is refused',
    async (jobId) => {
      const run = await runOn({ network: service({ start: () => json(202, { jobId }) }) })
      expect(run.runner.outputs.get('failureCode')).toBe('protocol')
      expect(run.requests).toHaveLength(1)
    },
  )

  test('that answers for another one is refused', async () => {
    const status = () => json(200, { jobId: 'se_2', status: 'completed' })
    const run = await runOn({ network: service({ status }) })
    expect(run.runner.outputs.get('failureCode')).toBe('protocol')
  })

  test('may be invisible for half a minute after the start, but not when attached to', async () => {
    const status = () => json(404, { error: 'No such job' })
    const started = await runOn({ network: service({ status }) })
    expect(started.runner.outputs.get('failureCode')).toBe('not-found')
    expect(started.elapsedMs).toBeGreaterThanOrEqual(30_000)
    const attached = await runOn({ inputs: { 'job-id': 'se_1' }, network: service({ status }) })
    expect(attached.runner.outputs.get('failureCode')).toBe('not-found')
    expect(attached.requests).toHaveLength(1)
  })

  test.each([undefined, null, { code: 7 }])(
    'that failed with the reason %j says so',
    async (error) => {
      const run = await runOn({ network: service({ status: () => job('failed', { error }) }) })
      expect(run.runner.outputs.get('failureCode')).toBe('job-failed')
      expect(run.runner.lines.at(-1)).toContain('It gave no reason.')
    },
  )

  test('with odd numbers goes on, with one warning for each kind', async () => {
    let looks = 0
    const status = () => {
      looks += 1
      return looks > 5 ? job('completed') : job('running', { progress: 150, pageCount: 1.5 })
    }
    const run = await runOn({ network: service({ status }) })
    expect(run.exitCode).toBe(0)
    expect(run.runner.lines.filter((line) => line.startsWith('Warning: '))).toHaveLength(2)
    expect(run.runner.outputs.get('pageCount')).toBe('')
  })

  test('without a page is a warning', async () => {
    const status = () => job('completed', { pageCount: 0 })
    const run = await runOn({ network: service({ status }) })
    expect(run.exitCode).toBe(0)
    expect(run.runner.lines.join('\n')).toContain('Warning: The export has no page.')
  })

  test('whose progress falls, or that is queued again, goes on with a warning', async () => {
    const seen = [
      job('running', { progress: 80 }),
      job('running', { progress: 10 }),
      job('queued', { progress: 0 }),
    ]
    const run = await runOn({
      network: service({ status: () => seen.shift() ?? job('completed') }),
    })
    expect(run.exitCode).toBe(0)
    expect(run.runner.lines.filter((line) => line.startsWith('Warning: '))).toHaveLength(2)
  })
})

test('a fixed interval of ten minutes still gives a line a minute', async () => {
  let looks = 0
  const status = () => {
    looks += 1
    return looks > 2 ? job('completed') : job('running', { progress: looks })
  }
  const run = await runOn({
    inputs: { 'poll-interval-seconds': '600', 'timeout-minutes': '60' },
    network: service({ status }),
  })
  expect(run.exitCode).toBe(0)
  expect(run.elapsedMs).toBe(3 * 600_000)
  const lines = run.runner.lines.filter((line) => line.startsWith('['))
  expect(lines.length).toBeGreaterThanOrEqual(30)
  expect(lines.length).toBeLessThan(36)
})

test('nothing runs on when the run has ended', async () => {
  const run = await runOn({ inputs: agentInputs, network: service({}) })
  expect(run.exitCode).toBe(0)
  expect(run.pending).toBe(0)
})

describe('the link', () => {
  test('is minted once more when it is dead on arrival', async () => {
    const links = [bundle({ expiresAt: '2026-11-20T11:59:00Z' }), bundle()]
    const run = await runOn({ network: service({ bundle: () => links.shift() ?? bundle() }) })
    expect(run.exitCode).toBe(0)
    expect(run.requests.filter((request) => request.endsWith('/bundle'))).toHaveLength(2)
  })

  test('is asked for again while the service says that the job has not finished', async () => {
    const answers = [json(409, { error: 'not finished' }), json(409, { error: 'not finished' })]
    const run = await runOn({ network: service({ bundle: () => answers.shift() ?? bundle() }) })
    expect(run.exitCode).toBe(0)
  })

  test('gives a derived end when the service tells none', async () => {
    const run = await runOn({
      network: service({ bundle: () => bundle({ expiresAt: undefined }) }),
    })
    expect(run.exitCode).toBe(0)
    expect(run.runner.outputs.get('expiresAt')).toBe('2026-11-20T13:00:00.000Z')
  })
})

describe('a start under way', () => {
  test('leaves its doubt in the error when the run is cancelled', async () => {
    const controller = new AbortController()
    const run = await runOn({
      network: (_request, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            reject(signal.reason as Error)
          })
          controller.abort(new Failure('cancelled', 'Cancelled by SIGINT.'))
        }),
      signal: controller.signal,
    })
    expect(run.runner.outputs.get('failureCode')).toBe('cancelled')
    expect(run.runner.lines.at(-1)).toMatch(
      /may be carried out all the same.*known only to the service/s,
    )
  })
})

describe('the key', () => {
  const key = 'mint_ab/cd+ef0123456789'

  test.each(['\\/', '\\u002f', '%2F'])(
    'is not told, however the service writes it: %s',
    async (slash) => {
      const echo = key.replace('/', slash).replace('+', slash === '%2F' ? '%2B' : '+')
      const body = `{"error":"no such key: ${echo}"}`
      const run = await runOn({
        inputs: { 'api-key': key },
        network: () => Promise.resolve({ status: 401, headers: {}, body }),
      })
      const told = [...run.runner.lines, run.runner.markdown].join('\n')
      expect(told).toContain('no such key: ***')
      expect(told).not.toContain('ef0123456789')
    },
  )

  test.each(['job-id', 'version', 'paths', 'agent-project-id', 'base-url'])(
    'in `%s` is refused, and told nowhere',
    async (name) => {
      const plain = 'mint_abcdef0123456789'
      const run = await runOn({
        inputs: {
          'api-key': plain,
          [name]: name === 'base-url' ? `https://a.test/${plain}` : plain,
        },
        network: service({}),
      })
      expect(run.runner.outputs.get('failureCode')).toBe('config')
      expect(run.requests).toEqual([])
      expect([...run.runner.lines, run.runner.markdown].join('\n')).not.toContain('0123456789')
    },
  )
})

test('without a summary there is none, also when another input is wrong', async () => {
  const inputs = { summary: 'false', domain: 'not a domain' }
  expect((await runOn({ inputs, network: service({}) })).runner.markdown).toBe('')
})

describe('the agent job', () => {
  test('does not hold up the link for as long as the service asks', async () => {
    const agent = () => json(429, { error: 'slow down' }, { 'retry-after': '300' })
    const run = await runOn({ inputs: agentInputs, network: service({ agent }) })
    expect(run.exitCode).toBe(0)
    expect(run.elapsedMs).toBeLessThan(60_000)
  })

  test('never fails the export, whatever it answers', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.jsonValue().map((value) => json(200, value)),
          fc.constantFrom(401, 403, 404, 429, 500).map((status) => json(status, { error: 'no' })),
          fc
            .record({ status: fc.string(), prLink: fc.oneof(fc.webUrl(), fc.string()) })
            .map((value) => json(200, value)),
        ),
        fc.boolean(),
        async (answer, wait) => {
          const run = await runOn({
            inputs: { ...agentInputs, 'wait-for-agent': String(wait), 'timeout-minutes': '5' },
            network: service({ agent: () => answer }),
          })
          expect(run.exitCode).toBe(0)
          expect(run.elapsedMs).toBeLessThan(5 * 60_000)
        },
      ),
      { numRuns: 60 },
    )
  })

  test.each([
    'http://github.com/acme/docs/pull/1',
    'javascript:alert(1)',
    'https://user:pass@github.com/acme/docs/pull/1',
    'https://github.com/acme\n::error::x',
    '//github.com/acme/docs/pull/1',
  ])('with the link %j gives no output and a warning', async (prLink) => {
    const run = await runOn({
      inputs: agentInputs,
      network: service({ agent: () => json(200, { status: 'completed', prLink }) }),
    })
    expect(run.runner.outputs.get('prLink')).toBe('')
    expect(run.runner.lines.filter((line) => line.startsWith('Warning: '))).toHaveLength(1)
    expect(run.runner.markdown).not.toContain('<a ')
  })

  test('on another host is linked, but not read', async () => {
    const prLink = 'https://gitlab.acme.test/docs/-/merge_requests/7'
    const run = await runOn({
      inputs: agentInputs,
      network: service({ agent: () => json(200, { status: 'completed', prLink }) }),
      pullRequest: { title: 'never read', state: 'open' },
    })
    expect(run.runner.outputs.get('prLink')).toBe(prLink)
    expect(run.runner.markdown).not.toContain('never read')
  })

  test('that never ends leaves time for the link', async () => {
    const run = await runOn({
      inputs: { ...agentInputs, 'wait-for-agent': 'true', 'timeout-minutes': '10' },
      network: service({ agent: () => json(200, { status: 'active', prLink: null }) }),
    })
    expect(run.exitCode).toBe(0)
    expect(run.elapsedMs).toBeLessThanOrEqual(9 * 60_000)
    expect(run.runner.lines.join('\n')).toContain('is still active; the time for waiting is over')
    const lines = run.runner.lines.filter((line) => line.includes('waiting for the agent job'))
    expect(lines.length).toBeGreaterThanOrEqual(8)
  })

  test('is left at once when the export fails', async () => {
    const run = await runOn({
      inputs: { ...agentInputs, 'wait-for-agent': 'true' },
      network: service({
        status: () => job('failed', { error: 'broken' }),
        agent: () => json(200, { status: 'active', prLink: null }),
      }),
    })
    expect(run.runner.outputs.get('failureCode')).toBe('job-failed')
    expect(run.runner.outputs.get('agentStatus')).toBe('active')
    expect(run.elapsedMs).toBeLessThan(10_000)
  })
})
