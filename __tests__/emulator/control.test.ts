import { readFile } from 'node:fs/promises'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { startEmulator, type Emulator } from '../../emulator/index.ts'
import { bundle, call, exportSite, json, ManualClock, send, start, status } from './client.ts'

let emulator: Emulator
beforeEach(async () => {
  emulator = await startEmulator({ clock: new ManualClock() })
})
afterEach(() => emulator.close())

async function control(method: string, name: string, body?: unknown) {
  const seen = await send(`${emulator.apiUrl}/_emulator/${name}`, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  return { status: seen.status, body: json(seen) }
}

describe('clock', () => {
  it('moves forward, and with it jobs, links and the Date header', async () => {
    expect(await control('GET', 'clock')).toEqual({
      status: 200,
      body: { now: '2026-03-01T10:00:00.000Z', offsetSeconds: 0 },
    })
    const { jobId } = await start(emulator)
    await control('POST', 'clock', { advanceSeconds: 22 })
    expect(await status(emulator, jobId)).toMatchObject({ status: 'completed' })
    const { bundleUrl } = await bundle(emulator, jobId)
    const moved = await control('POST', 'clock', { advanceSeconds: 3600 })
    expect(moved.body).toEqual({ now: '2026-03-01T11:00:22.000Z', offsetSeconds: 3622 })
    const seen = await send(bundleUrl)
    expect(seen.status).toBe(403)
    expect(seen.headers['date']).toBe('Sun, 01 Mar 2026 11:00:22 GMT')
  })

  it.each([{}, { advanceSeconds: '1' }, { advanceSeconds: -1 }, []])(
    'does not move by %j',
    async (body) => {
      const answer = await control('POST', 'clock', body)
      expect(answer).toEqual({ status: 400, body: { error: expect.any(String) as unknown } })
    },
  )
})

describe('faults', () => {
  it('can be added in both forms, listed with what is left of them, and cleared', async () => {
    await control('POST', 'faults', 'agent:503:times=2')
    const added = await control('POST', 'faults', { operation: 'agent', kind: 'silence', skip: 1 })
    expect(added.body).toEqual([
      { operation: 'agent', kind: 'reply', status: 503, skip: 0, times: 2 },
      { operation: 'agent', kind: 'silence', skip: 1, times: 1 },
    ])
    expect((await call(emulator, 'GET', '/v2/agent/docs-project/job/agent-active')).status).toBe(
      503,
    )
    expect((await control('GET', 'faults')).body).toMatchObject([{ times: 1 }, { skip: 1 }])
    expect((await control('DELETE', 'faults')).body).toEqual([])
  })

  it('are checked', async () => {
    expect(await control('POST', 'faults', 'agent:5o3')).toEqual({
      status: 400,
      body: { error: expect.stringMatching(/^unknown kind "5o3"/) as unknown },
    })
  })

  it('do not meet the control endpoints', async () => {
    await control('POST', 'faults', 'any:503:times=always')
    expect((await control('GET', 'clock')).status).toBe(200)
  })
})

describe('requests', () => {
  it('are listed as they came, without keys and signatures', async () => {
    const { bundleUrl } = await exportSite(emulator)
    emulator.addFault('download:fin')
    await send(bundleUrl, { headers: { range: 'bytes=5-' } })
    await send(`${emulator.apiUrl}/nowhere?token=secret`)
    const { body } = await control('GET', 'requests')
    const path = '/v1/static-export/jobs'
    expect(body).toEqual([
      {
        method: 'POST',
        path,
        operation: 'start',
        authorization: true,
        body: '{"domain":"docs.example.com"}',
        status: 202,
      },
      {
        method: 'POST',
        path: expect.stringMatching(/\/bundle$/) as unknown,
        operation: 'bundle',
        authorization: true,
        body: '',
        status: 200,
      },
      {
        method: 'GET',
        path: new URL(bundleUrl).pathname,
        operation: 'download',
        authorization: false,
        range: 'bytes=5-',
        body: '',
        fault: 'fin',
      },
      { method: 'GET', path: '/nowhere', authorization: false, body: '', status: 404 },
    ])
    expect(emulator.requests).toMatchObject(body as object)
    expect(JSON.stringify(body)).not.toMatch(/mint_|Signature|secret/)
    expect((await control('DELETE', 'requests')).body).toEqual([])
    expect(emulator.requests).toEqual([])
  })
})

describe('next-job', () => {
  it('makes one job fail', async () => {
    await control('POST', 'next-job', { error: 'Out of paper.', afterPages: 1 })
    const { jobId } = await start(emulator)
    await control('POST', 'clock', { advanceSeconds: 22 })
    expect(await status(emulator, jobId)).toMatchObject({
      status: 'failed',
      error: 'Out of paper.',
      pageCount: 1,
    })
  })

  it('needs a reason', async () => {
    expect((await control('POST', 'next-job', { afterPages: 1 })).status).toBe(400)
  })
})

it('the README names every endpoint', async () => {
  const readme = await readFile(new URL('../../emulator/README.md', import.meta.url), 'utf8')
  const { error } = (await control('GET', 'help')).body as { error: string }
  const endpoints = error.match(/[A-Z]+ [a-z-]+/g) ?? []
  expect(endpoints.length).toBe(8)
  for (const endpoint of endpoints) {
    expect(readme).toContain(`\`${endpoint.replace(' ', ' /_emulator/')}\``)
  }
})

it('what is not there says what is', async () => {
  expect(await control('PUT', 'clock')).toEqual({
    status: 404,
    body: {
      error: expect.stringMatching(/^There is: GET clock, POST clock, GET faults/) as unknown,
    },
  })
  expect((await control('GET', 'constructor')).status).toBe(404)
})
