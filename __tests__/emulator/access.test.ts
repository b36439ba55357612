import { describe, expect, it } from '@jest/globals'
import { startEmulator } from '../../emulator/index.ts'
import { bundle, call, domain, exportSite, json, ManualClock, send, start } from './client.ts'

const jobs = '/v1/static-export/jobs'
const error = (message: string | RegExp) => ({
  error: typeof message === 'string' ? message : (expect.stringMatching(message) as unknown),
})

describe('keys', () => {
  it('are needed by every endpoint, in the right form and of the right kind', async () => {
    await using emulator = await startEmulator()
    const { apiUrl, keys } = emulator
    const endpoints = [
      ['POST', jobs],
      ['GET', `${jobs}/se_1`],
      ['POST', `${jobs}/se_1/bundle`],
      ['GET', '/v2/agent/docs-project/job/agent-active'],
    ] as const
    for (const [method, path] of endpoints) {
      const withHeader = (authorization?: string) =>
        send(apiUrl + path, { method, headers: authorization ? { authorization } : {} })
      const none = await withHeader()
      expect([none.status, json(none)]).toEqual([401, error(/^No API key: send the header/)])
      const basic = await withHeader('Basic eDp5')
      expect([basic.status, json(basic)]).toEqual([401, error(/not of the form "Bearer/)])
      const unknown = await withHeader('Bearer mint_unknown')
      expect([unknown.status, json(unknown)]).toEqual([401, error('This API key is not known.')])
      const expired = await withHeader(`Bearer ${keys.expired}`)
      expect([expired.status, json(expired)]).toEqual([401, error(/has expired/)])
      expect((await withHeader(`bearer ${keys.good}`)).status).not.toBe(401)
    }
  })

  it('without the write scope may read, and neither start nor bundle', async () => {
    await using emulator = await startEmulator({ jobSeconds: 0, queueSeconds: 0 })
    const { jobId } = await start(emulator)
    const key = emulator.keys.readOnly
    expect((await call(emulator, 'GET', `${jobs}/${jobId}`, { key })).status).toBe(200)
    for (const path of [jobs, `${jobs}/${jobId}/bundle`]) {
      const refused = await call(emulator, 'POST', path, { key, body: { domain } })
      expect([refused.status, json(refused)]).toEqual([403, error(/lacks the "write" scope/)])
    }
  })

  it('of an organisation without the feature may only look at agent jobs', async () => {
    await using emulator = await startEmulator()
    const key = emulator.keys.noExport
    const refused = await call(emulator, 'POST', jobs, { key, body: { domain } })
    expect([refused.status, json(refused)]).toEqual([
      403,
      error(/not enabled for this organisation/),
    ])
    expect((await call(emulator, 'GET', `${jobs}/se_1`, { key })).status).toBe(403)
    const agent = await call(emulator, 'GET', '/v2/agent/docs-project/job/agent-active', { key })
    expect(agent.status).toBe(200)
  })
})

describe('a start that cannot be', () => {
  it.each([
    [{}, /^domain is missing/],
    [{ domain: 7 }, /^domain must be a host name/],
    [{ domain: 'https://docs.example.com' }, /^domain must be a host name .* without scheme/],
    [{ domain: 'docs.example.com/guides' }, /^domain must be a host name/],
    [{ domain: 'other.example.com' }, /^No site is served at "other.example.com". Known domains: /],
    [{ domain, path: ['/'] }, /^Unknown field "path"/],
    [{ domain, version: '' }, /^version must be a label/],
    [{ domain, paths: [] }, /^paths must be a list of at least one/],
    [{ domain, paths: '/' }, /^paths must be a list/],
    [{ domain, paths: [7] }, /^paths\.0 must be a page path/],
    [
      { domain, paths: ['/', '/nope', 'no/such'] },
      /^paths: the site has no page "\/nope", "no\/such"/,
    ],
    [[], /^The body must be a JSON object such as \{"domain"/],
  ])('because of %j is a 400 that says why', async (body, message) => {
    await using emulator = await startEmulator()
    const seen = await call(emulator, 'POST', jobs, { body })
    expect([seen.status, json(seen)]).toEqual([400, error(message)])
  })

  it.each([
    ['not JSON', 'application/json', '{"domain":', /^The body is not JSON/],
    ['missing', 'application/json', '', /is missing|must be a JSON object/],
    ['of another type', 'text/plain', '"x"', /must be application\/json, not text\/plain/],
    [
      'a form',
      'application/x-www-form-urlencoded',
      `{"domain":"${domain}"}`,
      /must be application\/json/,
    ],
  ])('since the body is %s is a 400 too', async (_, type, body, message) => {
    await using emulator = await startEmulator()
    const seen = await send(emulator.apiUrl + jobs, {
      method: 'POST',
      headers: { authorization: `Bearer ${emulator.keys.good}`, 'content-type': type },
      body,
    })
    expect([seen.status, json(seen)]).toEqual([400, error(message)])
  })
})

describe('limits', () => {
  it('there are none unless asked for', async () => {
    await using emulator = await startEmulator()
    for (let count = 0; count < 15; count += 1) {
      expect(await start(emulator)).toHaveProperty('jobId')
    }
  })

  it('of starts an hour: 429 until the oldest is an hour old', async () => {
    const clock = new ManualClock()
    await using emulator = await startEmulator({ clock, startsPerHour: 2 })
    await start(emulator)
    clock.advance(600)
    await start(emulator)
    const refused = await call(emulator, 'POST', jobs, { body: { domain } })
    expect([refused.status, json(refused)]).toEqual([429, error(/2 may be started in an hour/)])
    expect(refused.headers['retry-after']).toBeUndefined()
    clock.advance(3000)
    expect(await start(emulator)).toHaveProperty('jobId')
  })

  it('may say when to try again', async () => {
    const clock = new ManualClock()
    await using emulator = await startEmulator({ clock, startsPerHour: 1, retryAfter: true })
    await start(emulator)
    clock.advance(600)
    const refused = await call(emulator, 'POST', jobs, { body: { domain } })
    expect(refused.headers['retry-after']).toBe('3000')
  })

  it('of exports of one site: 409 while one runs', async () => {
    await using emulator = await startEmulator({
      oneExportPerSite: true,
      domains: [domain, 'other.example.com'],
    })
    await start(emulator)
    const refused = await call(emulator, 'POST', jobs, { body: { domain } })
    expect([refused.status, json(refused)]).toEqual([409, error(/Another export of docs/)])
    expect(await start(emulator, { domain: 'other.example.com' })).toHaveProperty('jobId')
    emulator.advanceClock(1000)
    expect(await start(emulator)).toHaveProperty('jobId')
  })

  it('of exports of one site hold for two starts at the same moment', async () => {
    await using emulator = await startEmulator({ oneExportPerSite: true })
    const both = await Promise.all(
      [1, 2].map(() => call(emulator, 'POST', jobs, { body: { domain } })),
    )
    expect(both.map(({ status }) => status).sort()).toEqual([202, 409])
  })
})

describe('what is not there', () => {
  it.each([
    ['GET', `${jobs}/se_unknown`, 404, /^No export job "se_unknown"/],
    ['POST', `${jobs}/se_unknown/bundle`, 404, /^No export job/],
    ['GET', `${jobs}/%zz`, 400, /^The path is not percent-encoded/],
    ['GET', `${jobs}/se_1?verbose=1`, 400, /^Unknown parameter "verbose"/],
    ['GET', `${jobs}/a.b`, 400, /^jobId must be an identifier/],
    [
      'GET',
      '/v2/agent/docs-project/job/none',
      404,
      /^No agent job "none" in project "docs-project"/,
    ],
    ['GET', '/v2/agent/other/job/agent-active', 404, /^No agent job/],
    ['GET', `/v1${jobs}/se_1`, 404, /^There is no GET \/v1\/v1\//],
    ['DELETE', `${jobs}/se_1`, 405, /does not answer DELETE/],
  ])('%s %s is a %d', async (method, path, status, message) => {
    await using emulator = await startEmulator()
    const seen = await call(emulator, method, path)
    expect([seen.status, json(seen)]).toEqual([status, error(message)])
  })

  it('a bundle of a job that is not completed', async () => {
    await using emulator = await startEmulator()
    const { jobId } = await start(emulator)
    expect(await bundle(emulator, jobId)).toEqual(error(/is queued: bundle it once/))
    expect((await call(emulator, 'POST', `${jobs}/${jobId}/bundle`)).status).toBe(409)
    emulator.advanceClock(10)
    expect(await bundle(emulator, jobId)).toEqual(error(/is running: bundle it once/))
    emulator.failNextJob({ error: 'x', afterPages: 0 })
    expect(await exportSite(emulator)).toEqual(error(/has failed/))
  })
})

describe('agent jobs', () => {
  it('are there in every status, with and without a pull request', async () => {
    await using emulator = await startEmulator()
    const found = new Set<string>()
    for (const id of emulator.agentJobs) {
      const seen = await call(emulator, 'GET', `/v2/agent/${emulator.agentProject}/job/${id}`)
      const job = json(seen) as { status: string; prLink: string | null; archivedAt: string | null }
      expect(job.prLink ?? 'https://github.com/acme/docs/pull/1').toMatch(
        /^https:\/\/github\.com\/acme\/docs\/pull\/\d+$/,
      )
      expect(job.archivedAt !== null).toBe(job.status === 'archived')
      found.add(`${job.status}${job.prLink === null ? '' : ' with pull request'}`)
    }
    expect([...found].sort()).toEqual([
      'active',
      'archived',
      'archived with pull request',
      'completed',
      'completed with pull request',
      'failed',
    ])
  })

  it('one completes after a while, and then has a pull request', async () => {
    await using emulator = await startEmulator({ agentSeconds: 60, clock: new ManualClock() })
    const look = async () =>
      json(await call(emulator, 'GET', '/v2/agent/docs-project/job/agent-finishing'))
    emulator.advanceClock(59)
    expect(await look()).toMatchObject({ status: 'active', prLink: null })
    emulator.advanceClock(1)
    expect(await look()).toMatchObject({
      status: 'completed',
      prLink: 'https://github.com/acme/docs/pull/102',
    })
  })
})
