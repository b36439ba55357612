import { connect } from 'node:net'
import { gunzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { checkFault, FaultSyntaxError, kinds, parseFault } from '../../emulator/faults.ts'
import { startEmulator, type Emulator } from '../../emulator/index.ts'
import { call, domain, exportSite, json, send, status } from './client.ts'

let emulator: Emulator
beforeEach(async () => {
  emulator = await startEmulator()
})
afterEach(() => emulator.close())

const agentPath = '/v2/agent/docs-project/job/agent-active'
const getAgent = () => call(emulator, 'GET', agentPath)
const startJob = () => call(emulator, 'POST', '/v1/static-export/jobs', { body: { domain } })

/** A healthy download, and the same one with a fault. */
async function downloads(fault: string, headers: Record<string, string> = {}) {
  const { bundleUrl } = await exportSite(emulator, { paths: ['/'] })
  const healthy = await send(bundleUrl, { headers })
  emulator.addFault(fault)
  return { healthy, faulty: await send(bundleUrl, { headers }), bundleUrl }
}

/** What a client reads from a bare connection, chunk by chunk, until it is closed. */
function readRaw(fault: string): Promise<string[]> {
  emulator.addFault(fault)
  const { hostname, port } = new URL(emulator.apiUrl)
  return new Promise((resolve, reject) => {
    const chunks: string[] = []
    const socket = connect(Number(port), hostname, () => {
      socket.write(
        `GET ${agentPath} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${emulator.keys.good}\r\n\r\n`,
      )
    })
    socket.on('data', (chunk) => chunks.push(chunk.toString()))
    socket.on('error', reject)
    socket.on('close', () => {
      resolve(chunks)
    })
  })
}

describe('which requests a fault meets', () => {
  const statuses = async (count: number) => {
    const seen: (number | undefined)[] = []
    while (seen.length < count) seen.push((await getAgent()).status)
    return seen
  }

  it('the next one, when nothing else is said', async () => {
    emulator.addFault('agent:503')
    expect(await statuses(2)).toEqual([503, 200])
  })

  it('some, after some', async () => {
    emulator.addFault('agent:503:skip=1:times=2')
    expect(await statuses(5)).toEqual([200, 503, 503, 200, 200])
  })

  it('all of them, until it is taken away', async () => {
    emulator.addFault('agent:503:times=always')
    expect(await statuses(3)).toEqual([503, 503, 503])
    emulator.clearFaults()
    expect(await statuses(1)).toEqual([200])
  })

  it('one after the other', async () => {
    emulator.addFault('agent:503')
    emulator.addFault('agent:500:times=2')
    expect(await statuses(4)).toEqual([503, 500, 500, 200])
  })

  it('those of its operation, or of any', async () => {
    emulator.addFault('status:503')
    expect(await statuses(1)).toEqual([200])
    expect((await call(emulator, 'GET', '/v1/static-export/jobs/x')).status).toBe(503)
    emulator.addFault('any:502')
    expect((await send(emulator.storageUrl)).status).toBe(502)
    expect((await send(emulator.storageUrl)).status).toBe(403)
  })

  it('from the start', async () => {
    await using other = await startEmulator({
      faults: ['agent:503', { operation: 'agent', kind: 'reply', status: 500 }],
    })
    expect((await call(other, 'GET', agentPath)).status).toBe(503)
    expect((await call(other, 'GET', agentPath)).status).toBe(500)
  })
})

describe('a reply instead of the true one', () => {
  it.each([
    ['503', 503, 'application/json', '{"error":"Emulated 503."}'],
    ['200:body=html', 200, 'text/html; charset=utf-8', /^<!doctype html>/],
    ['200:body=empty', 200, 'application/json', ''],
    ['200:body=null', 200, 'application/json', 'null'],
    ['200:body=array', 200, 'application/json', '[]'],
    ['200:body=xml', 200, 'application/xml', /<Code>InternalError<\/Code>/],
    ['200:content-type=text/plain:text={"a": "b:c', 200, 'text/plain', '{"a": "b:c'],
  ])('agent:%s', async (fault, code, type, body) => {
    emulator.addFault(`agent:${fault}`)
    const seen = await getAgent()
    expect([seen.status, seen.headers['content-type']]).toEqual([code, type])
    const text = seen.body.toString()
    if (body instanceof RegExp) expect(text).toMatch(body)
    else expect(text).toBe(body)
  })

  it('may be larger than anyone would want to read', async () => {
    emulator.addFault('agent:200:body=huge')
    expect((await getAgent()).body.length).toBeGreaterThan(3_000_000)
  })

  it('may say when to try again', async () => {
    emulator.addFault('agent:429:retry-after=7')
    emulator.addFault({
      operation: 'agent',
      kind: 'reply',
      status: 429,
      retryAfter: 'Fri, 20 Nov 2026 14:00:00 GMT',
    })
    expect((await getAgent()).headers['retry-after']).toBe('7')
    expect((await getAgent()).headers['retry-after']).toBe('Fri, 20 Nov 2026 14:00:00 GMT')
  })

  it('speaks as S3 does on a download', async () => {
    const { faulty } = await downloads('download:503')
    expect(faulty.body.toString()).toContain('<Code>SlowDown</Code>')
  })

  it('may be a redirect', async () => {
    emulator.addFault('agent:redirect:status=302:location=http://elsewhere.example/x?a=b:c')
    const seen = await getAgent()
    expect([seen.status, seen.headers['location']]).toEqual([
      302,
      'http://elsewhere.example/x?a=b:c',
    ])
  })
})

describe('a request whose answer is lost', () => {
  it.each(['start:reset', 'start:fin', 'start:504'])('%s has done nothing', async (fault) => {
    await using limited = await startEmulator({ startsPerHour: 1, faults: [fault] })
    await call(limited, 'POST', '/v1/static-export/jobs', { body: { domain } })
    const again = await call(limited, 'POST', '/v1/static-export/jobs', { body: { domain } })
    expect(again.status).toBe(202)
  })

  it.each(['start:reset:processed', 'start:fin:processed', 'start:504:processed'])(
    '%s has started the job',
    async (fault) => {
      await using limited = await startEmulator({ startsPerHour: 1, faults: [fault] })
      const lost = await call(limited, 'POST', '/v1/static-export/jobs', { body: { domain } })
      expect(lost.status).toBe(fault.includes('504') ? 504 : undefined)
      const again = await call(limited, 'POST', '/v1/static-export/jobs', { body: { domain } })
      expect(again.status).toBe(429)
    },
  )
})

describe('a connection that breaks', () => {
  it.each(['reset', 'fin'])('by %s before the reply', async (kind) => {
    emulator.addFault(`start:${kind}`)
    expect(await startJob()).toMatchObject({ status: undefined, errorCode: 'ECONNRESET' })
  })

  it.each(['reset', 'fin'])('by %s within the body', async (kind) => {
    const { healthy, faulty } = await downloads(`download:${kind}:after-bytes=1000`)
    expect(faulty).toMatchObject({ status: 200, errorCode: 'ECONNRESET' })
    expect(faulty.headers['content-length']).toBe(String(healthy.body.length))
    expect(faulty.body).toEqual(healthy.body.subarray(0, 1000))
  })

  it.each(['silence', 'silence:processed'])(
    'never, in %s: nothing comes until the end',
    async (kind) => {
      const quiet = Promise.withResolvers<undefined>()
      await using hanging = await startEmulator({
        faults: [`agent:${kind}`],
        onRequest: () => {
          quiet.resolve(undefined)
        },
      })
      const answer = call(hanging, 'GET', agentPath)
      await quiet.promise
      await hanging.close()
      expect(await answer).toMatchObject({ status: undefined, errorCode: 'ECONNRESET' })
    },
  )
})

describe('a reply that drips', () => {
  it('from its first byte', async () => {
    const chunks = await readRaw('agent:drip-headers:bytes-per-second=4000')
    expect(chunks.length).toBeGreaterThan(3)
    expect(chunks[0]?.length).toBeLessThanOrEqual(80)
    expect(chunks.join('')).toMatch(/^HTTP\/1\.1 200 OK\r\n.*"agent-active".*\}$/s)
  })

  it('after its headers', async () => {
    const chunks = await readRaw('agent:drip-body:bytes-per-second=2000')
    expect(chunks[0]).toMatch(/^HTTP\/1\.1 200 OK\r\n.*\r\n\r\n/s)
    expect(chunks.length).toBeGreaterThan(3)
  })

  it('does not keep the emulator from closing', async () => {
    emulator.addFault('agent:drip-headers:bytes-per-second=1')
    const answer = getAgent()
    while (emulator.requests[0]?.status === undefined) await new Promise(setImmediate)
    await emulator.close()
    expect((await answer).errorCode).toBe('ECONNRESET')
  })
})

describe('a reply that is not what it says', () => {
  it('claims a longer body', async () => {
    const { healthy, faulty } = await downloads('download:content-length:difference=10')
    expect(faulty.headers['content-length']).toBe(String(healthy.body.length + 10))
    expect(faulty).toMatchObject({ body: healthy.body, errorCode: 'ECONNRESET' })
  })

  it('claims a shorter body', async () => {
    const { healthy, faulty } = await downloads('download:content-length:difference=-10')
    expect(faulty.body).toEqual(healthy.body.subarray(0, -10))
  })

  it('claims no length', async () => {
    const { healthy, faulty } = await downloads('download:no-content-length')
    expect(faulty.headers).not.toHaveProperty('content-length')
    expect(faulty).toMatchObject({ body: healthy.body, errorCode: undefined })
  })

  it('is compressed', async () => {
    emulator.addFault('agent:gzip')
    const seen = await getAgent()
    expect(seen.headers['content-encoding']).toBe('gzip')
    expect(gunzipSync(seen.body).toString()).toContain('"agent-active"')
  })

  it('is the whole instead of a range', async () => {
    const range = { range: 'bytes=100-' }
    const { healthy, faulty } = await downloads('download:ignore-range', range)
    expect([healthy.status, faulty.status]).toEqual([206, 200])
    expect(faulty.body.length).toBe(healthy.body.length + 100)
  })

  it('is of another object', async () => {
    const { healthy, faulty, bundleUrl } = await downloads('download:changed-etag:times=2')
    expect(faulty.status).toBe(200)
    expect(faulty.headers['etag']).not.toBe(healthy.headers['etag'])
    const etag = healthy.headers['etag'] as string
    const resumed = await send(bundleUrl, { headers: { range: 'bytes=1-', 'if-match': etag } })
    expect(resumed.status).toBe(412)
  })

  it('has a wrong byte', async () => {
    const { healthy, faulty } = await downloads('download:corrupt')
    const wrong = healthy.body.filter((byte, at) => byte !== faulty.body[at])
    expect([faulty.body.length, wrong.length]).toEqual([healthy.body.length, 1])
  })
})

describe('the syntax', () => {
  it('says in a flag what an object says', () => {
    expect(parseFault('status:503:times=2:retry-after=1')).toEqual({
      operation: 'status',
      kind: 'reply',
      status: 503,
      times: 2,
      retryAfter: 1,
    })
    expect(parseFault('start:reset:processed')).toEqual({
      operation: 'start',
      kind: 'reset',
      processed: true,
    })
    expect(parseFault('any:200:text=1:2=3')).toMatchObject({ text: '1:2=3' })
  })

  it('knows every kind', () => {
    const needed: Record<string, string> = {
      reply: ':status=500',
      redirect: ':location=/x',
      'content-length': ':difference=1',
    }
    for (const kind of Object.keys(kinds)) {
      expect(parseFault(`any:${kind}${needed[kind] ?? ''}`)).toMatchObject({
        operation: 'any',
        kind,
      })
    }
  })

  it.each([
    ['', /unknown operation ""/],
    [
      'poll:503',
      /unknown operation "poll"; there are start, status, bundle, agent, download and any/,
    ],
    ['status', /unknown kind ""; there are reply, /],
    ['status:explode', /unknown kind "explode"/],
    ['status:constructor', /unknown kind "constructor"/],
    ['status:99', /status cannot be 99/],
    ['status:503:tims=2', /reply does not take "tims"; it takes skip, times, status, /],
    ['status:503:times=0', /times cannot be 0/],
    ['status:503:times', /times cannot be true/],
    ['status:503:body=pdf', /body cannot be "pdf"/],
    ['status:redirect', /redirect needs location/],
    ['status:silence:after-bytes=3', /silence does not take "after-bytes"/],
    ['status:reset:after-bytes=-1', /after-bytes cannot be -1/],
  ])('refuses %j, with what there is instead', (flag, message) => {
    expect(() => parseFault(flag)).toThrow(message)
    expect(() => parseFault(flag)).toThrow(FaultSyntaxError)
  })

  it.each([null, 'status:503', [], { operation: 'status' }])('refuses the value %j', (value) => {
    expect(() => checkFault(value)).toThrow(FaultSyntaxError)
  })
})

it('a job goes on whatever becomes of the answers', async () => {
  const { jobId } = json(await startJob()) as { jobId: string }
  emulator.addFault('status:reset:times=3')
  emulator.advanceClock(1000)
  for (let count = 0; count < 3; count += 1) {
    await call(emulator, 'GET', `/v1/static-export/jobs/${jobId}`)
  }
  expect(await status(emulator, jobId)).toMatchObject({ status: 'completed' })
})
