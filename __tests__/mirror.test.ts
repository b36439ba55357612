/** The mirror against a storage on this machine that answers as each test says: stored once, or the failure says why not. */
import { afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals'
import { createHash } from 'node:crypto'
import fs from 'node:fs'
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import nock from 'nock'
import { deadlineIn } from '../src/clock.ts'
import { systemDisk } from '../src/disk.ts'
import { Failure } from '../src/errors.ts'
import { type MirrorTarget, mirrorAccess, mirrorArchive, mirrorUrl } from '../src/mirror.ts'
import { type ObjectStorage, systemObjectStorage } from '../src/network.ts'
import { goodCertificate, testKey } from './support/certificates.ts'
import { FakeClock } from './support/fake-clock.ts'
import { RecordingLog } from './support/recording-log.ts'
import { closedPort, listen, listenAsProxy, reply } from './support/wire.ts'

beforeAll(() => {
  nock.restore() // it would put sockets of its own in place of the real ones
})

// The client would say some things there by itself, past the log.
beforeEach(() => {
  jest.spyOn(console, 'warn')
})
afterEach(() => {
  expect(console.warn).not.toHaveBeenCalled()
  jest.restoreAllMocks()
})

const archive = Buffer.alloc(55_000, 'static export')
const sha256 = createHash('sha256').update(archive).digest('hex')
const objectPath = `/docs-mirror/sites/docs/${sha256}.tar.gz`
const place = `s3://docs-mirror/sites/docs/${sha256}.tar.gz`
const environment = {
  AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE0000',
  AWS_SECRET_ACCESS_KEY: 'secret/of+the+storage/0123456789',
  AWS_SESSION_TOKEN: 'token-of-the-session-0123456789',
}

interface Received {
  readonly method: string
  readonly url: string
  readonly headers: http.IncomingHttpHeaders
  readonly body: Buffer
}

/** What the storage does with one request, once it has come whole. */
type Answer = (response: ServerResponse, request: Received) => void

const status =
  (code: number, headers: http.OutgoingHttpHeaders = {}): Answer =>
  (response) =>
    response.writeHead(code, headers).end()

const refused =
  (code: number, s3Code: string, { message = 'No.', more = '', headers = {} } = {}): Answer =>
  (response) =>
    response
      .writeHead(code, { 'content-type': 'application/xml', ...headers })
      .end(
        `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${s3Code}</Code><Message>${message}</Message>${more}<RequestId>1</RequestId></Error>`,
      )

const absent = status(404)
const there = (sizeBytes = archive.length) =>
  status(200, { etag: '"1"', 'content-length': String(sizeBytes) })
const stored = status(200, { etag: '"1"' })
const cut: Answer = (response) => response.destroy()
const silent: Answer = () => undefined

async function startStorage(answers: readonly Answer[]) {
  const received: Received[] = []
  const server = http.createServer((request: IncomingMessage, response) => {
    const chunks: Buffer[] = []
    request.on('error', () => undefined)
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { method = '', url = '', headers } = request
      const whole = { method, url, headers, body: Buffer.concat(chunks) }
      received.push(whole)
      const answer = answers[received.length - 1]
      if (!answer) throw new Error(`${method} was not expected`)
      answer(response, whole)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    received,
    server,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

interface Setting {
  readonly endpointUrl?: URL | undefined
  readonly target?: Partial<MirrorTarget>
  readonly content?: Buffer
  readonly sizeBytes?: number
  readonly objectStorage?: ObjectStorage
  readonly timeoutMinutes?: number
  readonly clock?: FakeClock
  readonly signal?: AbortSignal
  readonly isMissing?: boolean
}

async function mirror(setting: Setting) {
  const clock = setting.clock ?? new FakeClock()
  const log = new RecordingLog()
  const content = setting.content ?? archive
  const directory = fs.mkdtempSync(path.join(tmpdir(), 'mirror-'))
  const archiveFile = path.join(directory, 'bundle.tar.gz')
  if (setting.isMissing !== true) fs.writeFileSync(archiveFile, content)
  const access = mirrorAccess(
    {
      bucket: 'docs-mirror',
      prefix: 'sites/docs',
      region: setting.endpointUrl ? undefined : 'eu-central-1',
      endpointUrl: setting.endpointUrl,
      ...setting.target,
    },
    environment,
  )
  const startedMs = clock.nowMs()
  const result: unknown = await mirrorArchive(
    {
      access,
      archiveFile,
      sizeBytes: setting.sizeBytes ?? content.length,
      sha256: createHash('sha256').update(content).digest('hex'),
    },
    {
      objectStorage: clock.holdDuring(setting.objectStorage ?? systemObjectStorage),
      disk: systemDisk,
      clock,
      random: () => 0.5,
      log,
      deadline: deadlineIn((setting.timeoutMinutes ?? 30) * 60_000, clock),
      signal: setting.signal ?? new AbortController().signal,
    },
  ).catch((error: unknown) => error)
  fs.rmSync(directory, { recursive: true })
  expect(clock.pending).toBe(0)
  const said =
    result instanceof Failure
      ? [result.message, result.serverSaid, result.tried, result.advice].join('\n')
      : ''
  for (const secret of Object.values(environment)) expect(log.text + said).not.toContain(secret)
  return { result, log, elapsedMs: clock.nowMs() - startedMs }
}

/** Runs against a storage that gives these answers, all of which are needed. */
async function mirrorWith(answers: readonly Answer[], setting: Setting = {}) {
  await using storage = await startStorage(answers)
  const run = await mirror({ endpointUrl: storage.url, ...setting })
  expect(storage.received).toHaveLength(answers.length)
  return { ...run, received: storage.received }
}

const methods = (received: readonly Received[]) => received.map(({ method }) => method)

function expectFailure(result: unknown, code: string, text: RegExp, advice = /./) {
  expect(result).toBeInstanceOf(Failure)
  expect(result).toMatchObject({
    code,
    message: expect.stringMatching(text),
    advice: expect.stringMatching(advice),
  })
}

describe('an archive that is not there', () => {
  test('is stored under its own hash, signed to the byte, and only if nothing is there', async () => {
    const { result, log, received } = await mirrorWith([absent, stored])
    expect(result).toEqual({ uploaded: true })
    expect(log.lines).toEqual([`info: Mirrored 55.0 kB to ${place}`])
    const [head, put] = received
    expect(head).toMatchObject({ method: 'HEAD', url: objectPath })
    expect(put?.method).toBe('PUT')
    expect(put?.url.split('?')[0]).toBe(objectPath)
    expect(put?.body.equals(archive)).toBe(true)
    expect(put?.headers).toMatchObject({
      'if-none-match': '*',
      'content-length': '55000',
      'content-type': 'application/gzip',
      'cache-control': 'public, max-age=31536000, immutable',
      'x-amz-content-sha256': sha256,
      'x-amz-security-token': environment.AWS_SESSION_TOKEN,
      authorization: expect.stringMatching(
        /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE0000\/\d{8}\/us-east-1\/s3\/aws4_request, SignedHeaders=\S*if-none-match;\S*x-amz-content-sha256/,
      ),
    })
    // What not every storage understands.
    const names = Object.keys(put?.headers ?? {}).join(' ')
    expect(names).not.toMatch(/checksum|md5|trailer|transfer-encoding|content-encoding|expect/)
  })

  test('is stored at the top of the bucket without a prefix; slashes around one do not count', async () => {
    for (const [prefix, key] of [
      ['', `${sha256}.tar.gz`],
      ['/a b/ü/', `a b/ü/${sha256}.tar.gz`],
    ] as const) {
      const { result, received } = await mirrorWith([absent, stored], { target: { prefix } })
      expect(result).toEqual({ uploaded: true })
      expect(decodeURIComponent(received[1]?.url.split('?')[0] ?? '')).toBe(`/docs-mirror/${key}`)
    }
  })

  test('may be stored by those who may not look', async () => {
    const { result, received } = await mirrorWith([status(403), stored])
    expect(result).toMatchObject({ uploaded: true })
    expect(received[1]?.headers['if-none-match']).toBe('*')
  })

  test('is stored without the condition where that is not implemented', async () => {
    const { result, received, log } = await mirrorWith([
      absent,
      refused(501, 'NotImplemented'),
      stored,
    ])
    expect(result).toMatchObject({ uploaded: true })
    expect(received.map(({ headers }) => headers['if-none-match'])).toEqual([undefined, '*', undefined]) // prettier-ignore
    expect(log.text).toContain('debug: This storage knows no conditional upload')
  })

  test('is not stored without the condition by those who may not look', async () => {
    const { result } = await mirrorWith([status(403), refused(501, 'NotImplemented')])
    expectFailure(result, 'storage-failed', /HTTP 501, NotImplemented/)
  })
})

describe('an archive that is there', () => {
  test('is not sent again', async () => {
    const { result, log } = await mirrorWith([there()])
    expect(result).toEqual({ uploaded: false })
    expect(log.lines).toEqual([`info: Already mirrored: ${place} (55.0 kB)`])
  })

  test('as another run stored it in between is as good', async () => {
    const { result, received } = await mirrorWith([
      absent,
      refused(412, 'PreconditionFailed'),
      there(),
    ])
    expect(result).toMatchObject({ uploaded: false })
    expect(methods(received)).toEqual(['HEAD', 'PUT', 'HEAD'])
  })

  test('as another run stores it at this moment is waited for', async () => {
    const { result, elapsedMs } = await mirrorWith([
      absent,
      refused(409, 'ConditionalRequestConflict'),
      refused(409, 'ConditionalRequestConflict'),
      refused(412, 'PreconditionFailed'),
      there(),
    ])
    expect(result).toMatchObject({ uploaded: false })
    expect(elapsedMs).toBeGreaterThan(1_000)
  })

  test('counts also for those who may not look', async () => {
    const { result, log } = await mirrorWith([
      status(403),
      refused(412, 'PreconditionFailed'),
      status(403),
    ])
    expect(result).toMatchObject({ uploaded: false })
    expect(log.text).toContain('its size stays unknown')
  })

  test('with another size is no archive of ours', async () => {
    for (const answers of [
      [there(54_999)],
      [absent, refused(412, 'PreconditionFailed'), there(54_999)],
    ]) {
      const { result } = await mirrorWith(answers)
      expectFailure(result, 'storage-failed', /54999 bytes instead of 55000/, /mirror-prefix/)
    }
  })
})

describe('a refusal is told with what the storage said and what to do:', () => {
  const key = 'AKIDEXAMPLE0000'
  const regional = { headers: { 'x-amz-bucket-region': 'eu-west-1' } }
  test.each<[string, Answer, RegExp, RegExp]>([
    ['AccessDenied', refused(403, 'AccessDenied'), /HTTP 403, AccessDenied/, /s3:GetObject.*s3:PutObject/], // prettier-ignore
    ['NoSuchBucket', refused(404, 'NoSuchBucket'), /HTTP 404, NoSuchBucket/, /"docs-mirror".*mirror-bucket/], // prettier-ignore
    ['a wrong secret', refused(403, 'SignatureDoesNotMatch'), /SignatureDoesNotMatch/, /AWS_SECRET_ACCESS_KEY/], // prettier-ignore
    ['an unknown key, quoted', refused(403, 'InvalidAccessKeyId', { message: `No ${key}.` }), /InvalidAccessKeyId/, /AWS_ACCESS_KEY_ID/], // prettier-ignore
    ['an expired token', refused(400, 'ExpiredToken'), /HTTP 400, ExpiredToken/, /AWS_SESSION_TOKEN/], // prettier-ignore
    ['another region, by header', refused(301, 'PermanentRedirect', regional), /HTTP 301, PermanentRedirect/, /in eu-west-1, not in us-east-1: set `mirror-region`/], // prettier-ignore
    ['another region, by document', refused(400, 'AuthorizationHeaderMalformed', { more: '<Region>eu-west-1</Region>' }), /HTTP 400/, /in eu-west-1/], // prettier-ignore
    ['another region, unnamed', refused(301, 'PermanentRedirect'), /HTTP 301/, /`mirror-region` to the region of the bucket/], // prettier-ignore
    ['a size', refused(400, 'EntityTooLarge'), /EntityTooLarge/, /./],
    ['a page', (response) => response.writeHead(405).end('<html>Not here</html>'), /HTTP 405\./, /mirror-endpoint-url/], // prettier-ignore
    ['a success that is none', status(200), /without an ETag/, /mirror-endpoint-url/],
    ['a success of another kind', status(204), /HTTP 204/, /mirror-endpoint-url/],
  ])('%s', async (_what, answer, text, advice) => {
    const { result } = await mirrorWith([absent, answer])
    expectFailure(result, 'storage-failed', text, advice)
    expect(String(result)).toContain(place)
  })

  test('its words are cleaned, and hold no secret', async () => {
    const message = `Denied &quot;x&#34; for ${environment.AWS_SECRET_ACCESS_KEY} ##[error]`
    const { result } = await mirrorWith([absent, refused(403, 'AccessDenied', { message })])
    expect(result).toMatchObject({ serverSaid: 'Denied "x" for *** ## [error]' })
  })

  test('of HEAD, which has no words, is told by the upload', async () => {
    const { result } = await mirrorWith([
      status(400),
      refused(400, 'ExpiredToken', { message: 'Expired.' }),
    ])
    expectFailure(result, 'storage-failed', /ExpiredToken/)
  })

  test('before a large file is sent comes through, and nothing is sent', async () => {
    await using storage = await startStorage([absent])
    let sentBytes = 0
    storage.server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
      expect(request.headers.expect).toBe('100-continue')
      request.on('data', (chunk: Buffer) => {
        sentBytes += chunk.length
      })
      refused(403, 'AccessDenied')(response, { method: '', url: '', headers: {}, body: archive })
    })
    const content = Buffer.alloc(20_000_000, 'x')
    const { result } = await mirror({ endpointUrl: storage.url, content })
    expectFailure(result, 'storage-failed', /AccessDenied/)
    expect(sentBytes).toBe(0)
  })
})

test('a large file is sent when it is asked for', async () => {
  const content = Buffer.alloc(20_000_000, 'x')
  const { result, received } = await mirrorWith([absent, stored], { content })
  expect(result).toMatchObject({ uploaded: true })
  expect(received[1]?.headers.expect).toBe('100-continue')
  expect(received[1]?.body.equals(content)).toBe(true)
})

test('a large file that nobody asks for is sent after a while', async () => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask', 'Date'] })
  try {
    let connection: Socket | undefined
    await using wire = await listen(
      (socket, request, count) => {
        reply(count === 1 ? '404 Not Found' : '200 OK', ['etag: "1"'], '')(socket, request, count)
      },
      {
        onConnection(socket) {
          connection = socket
        },
      },
    )
    const content = Buffer.alloc(3_000_000, 'x')
    const endpointUrl = new URL(`http://127.0.0.1:${wire.port}`)
    const running = mirror({ endpointUrl, content })
    while (!/^expect: 100-continue\r$/im.test(wire.bytes())) {
      await new Promise((resolve) => setImmediate(resolve))
    }
    jest.advanceTimersByTime(2_900)
    expect(wire.bytes()).toMatch(/\r\n\r\n$/)
    jest.advanceTimersByTime(200)
    connection?.write('HTTP/1.1 100 Continue\r\n\r\n') // too late to matter
    expect((await running).result).toMatchObject({ uploaded: true })
    expect(wire.bytes().split('\r\n\r\n').at(-1)).toBe('x'.repeat(3_000_000))
  } finally {
    jest.useRealTimers()
  }
})

describe('a fault that may heal', () => {
  test.each<[string, Answer]>([
    ['SlowDown', refused(503, 'SlowDown')],
    ['InternalError', refused(500, 'InternalError')],
    ['RequestTimeout', refused(400, 'RequestTimeout')],
    ['a broken body', refused(400, 'XAmzContentSHA256Mismatch')],
    ['a cut connection', cut],
  ])('%s: the archive is sent again, whole', async (_what, fault) => {
    const { result, received, log } = await mirrorWith([absent, fault, stored])
    expect(result).toMatchObject({ uploaded: true })
    expect(received.slice(1).every(({ body }) => body.equals(archive))).toBe(true)
    expect(log.text).toMatch(/next try in/)
  })

  test('on looking: it is looked at again', async () => {
    const { received } = await mirrorWith([status(503), cut, there()])
    expect(methods(received)).toEqual(['HEAD', 'HEAD', 'HEAD'])
  })

  test('waits as long as the storage asks', async () => {
    const busy = refused(503, 'SlowDown', { headers: { 'retry-after': '40' } })
    const { elapsedMs } = await mirrorWith([absent, busy, stored])
    expect(elapsedMs).toBeGreaterThanOrEqual(40_000)
  })

  test('that does not heal ends the run after three tries', async () => {
    const busy = refused(503, 'SlowDown', { message: 'Please reduce your request rate.' })
    const { result } = await mirrorWith([absent, busy, busy, busy])
    expectFailure(result, 'storage-failed', /HTTP 503, SlowDown/, /busy/)
    expect(result).toMatchObject({
      tried: expect.stringMatching(/^3 tries in/),
      serverSaid: 'Please reduce your request rate.',
    })
  })

  test('of the clock of the runner is set right by the client', async () => {
    const inAnHour = new Date(Date.now() + 3_600_000)
    const skewed = refused(403, 'RequestTimeTooSkewed', {
      headers: { date: inAnHour.toUTCString() },
    })
    const { result, received } = await mirrorWith([absent, skewed, stored])
    expect(result).toMatchObject({ uploaded: true })
    const signedAt = String(received[2]?.headers['x-amz-date'])
    expect(signedAt.slice(0, 11)).toBe(inAnHour.toISOString().replaceAll('-', '').slice(0, 11))
  })

  test('a storage that is not there', async () => {
    const endpointUrl = new URL(`http://127.0.0.1:${await closedPort()}`)
    const { result } = await mirror({ endpointUrl })
    expectFailure(
      result,
      'storage-failed',
      /Could not look for s3:.*the connection was refused \(127\.0\.0\.1:\d+, ECONNREFUSED\)/,
      /mirror-endpoint-url/,
    )
  })

  test('a certificate that nobody trusts', async () => {
    const tls = { key: testKey, cert: goodCertificate }
    await using wire = await listen(() => undefined, { tls })
    const { result } = await mirror({ endpointUrl: new URL(`https://localhost:${wire.port}`) })
    expectFailure(result, 'storage-failed', /certificate was not trusted/, /NODE_EXTRA_CA_CERTS/)
    expect(result).toMatchObject({ tried: undefined })
  })

  test('a proxy that refuses', async () => {
    await using proxy = await listenAsProxy((socket) =>
      socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n'),
    )
    const { result } = await throughProxy(proxy.port, () =>
      mirror({ endpointUrl: new URL('http://s3.example.com:9000') }),
    )
    const text = /proxy answered HTTP 407 \(on the way to s3\.example\.com:9000/
    expectFailure(result, 'storage-failed', text, /HTTPS_PROXY/)
  })

  test('something that speaks no HTTP', async () => {
    await using wire = await listen((socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n'))
    const { result } = await mirror({ endpointUrl: new URL(`http://127.0.0.1:${wire.port}`) })
    expectFailure(result, 'storage-failed', /not valid HTTP/)
  })
})

describe('a storage that keeps silent', () => {
  /** Moves time on as soon as a request hangs. */
  const hanging =
    (clock: FakeClock, byMs: number): ObjectStorage =>
    (_request, signal) => {
      const { promise, reject } = Promise.withResolvers<never>()
      signal.addEventListener('abort', () => {
        reject(signal.reason as Error)
      })
      void clock.advance(byMs)
      return promise
    }

  test('is asked three times', async () => {
    const clock = new FakeClock()
    const { result } = await mirror({ clock, objectStorage: hanging(clock, 121_000) })
    expectFailure(result, 'storage-failed', /no byte for 2m 00s/)
    expect(result).toMatchObject({ tried: expect.stringMatching(/^3 tries/) })
  })

  test('cannot outlast the time of the step', async () => {
    const clock = new FakeClock()
    const objectStorage = hanging(clock, 61_000)
    const { result } = await mirror({ clock, objectStorage, timeoutMinutes: 1 })
    expectFailure(result, 'timeout', /time of this step/, /timeout-minutes/)
  })

  test('does not hold up a cancelled run', async () => {
    const cancelling = new AbortController()
    const cancelled = new Failure('cancelled', 'Cancelled by SIGINT.')
    await using storage = await startStorage([absent, silent])
    storage.server.on('request', ({ method }: IncomingMessage) => {
      if (method === 'PUT') cancelling.abort(cancelled)
    })
    const { result } = await mirror({ endpointUrl: storage.url, signal: cancelling.signal })
    expect(result).toBe(cancelled)
  })
})

test('an archive beyond what one upload may carry is refused before anything is sent', async () => {
  const { result } = await mirrorWith([], { sizeBytes: 5 * 1024 ** 3 + 1 })
  expectFailure(result, 'storage-failed', /it has 5\.4 GB, and 5\.4 GB/)
})

test('an archive that is gone from the disk is `disk`', async () => {
  const { result } = await mirrorWith([absent], { isMissing: true })
  expectFailure(result, 'disk', /could not be read: ENOENT/)
})

test('a name that no bucket can have is told as the client tells it', async () => {
  const { result } = await mirrorWith([], { target: { bucket: 'a/b' } })
  expectFailure(result, 'storage-failed', /bucket/i)
})

test('a long upload tells how far it is', async () => {
  const clock = new FakeClock()
  const { log } = await mirror({
    clock,
    content: Buffer.alloc(3_000_000, 'x'),
    async objectStorage({ method, body }) {
      if (typeof body === 'object') {
        for await (const chunk of body) {
          expect(chunk).toBeDefined()
          await clock.advance(4_000)
        }
      }
      const headers = { etag: '"1"' }
      return { status: method === 'HEAD' ? 404 : 200, headers, chunks: nothing() }
    },
  })
  expect(log.lines[0]).toMatch(/^info: Stored [\d.]+ [kM]B of 3\.0 MB \(\d+ %\)$/)
  expect(log.lines.at(-1)).toMatch(/^info: Mirrored 3\.0 MB/)
})

/** Sends requests to http addresses through a proxy of this machine meanwhile. */
async function throughProxy<T>(port: number, work: () => Promise<T>): Promise<T> {
  process.env['HTTP_PROXY'] = `http://127.0.0.1:${port}`
  try {
    return await work()
  } finally {
    Reflect.deleteProperty(process.env, 'HTTP_PROXY')
  }
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

describe('the way to the storage', () => {
  test('leads to AWS itself, to the bucket by name, where no endpoint is given', async () => {
    const urls: string[] = []
    await mirror({
      objectStorage({ url }) {
        urls.push(url.href)
        const headers = { 'content-length': String(archive.length) }
        return Promise.resolve({ status: 200, headers, chunks: nothing() })
      },
    })
    const host = 'https://docs-mirror.s3.eu-central-1.amazonaws.com'
    expect(urls).toEqual([`${host}/sites/docs/${sha256}.tar.gz`])
  })

  test('goes through the proxy of the environment', async () => {
    await using storage = await startStorage([absent, stored])
    await using proxy = await listenAsProxy({ to: Number(storage.url.port) })
    const { result } = await throughProxy(proxy.port, () =>
      mirror({ endpointUrl: new URL('http://s3.example.com:9000') }),
    )
    expect(result).toMatchObject({ uploaded: true })
    expect(proxy.requests.every((request) => request.startsWith('CONNECT s3.example.com:9000 '))).toBe(true) // prettier-ignore
    expect(proxy.requests).toHaveLength(2)
    expect(methods(storage.received)).toEqual(['HEAD', 'PUT'])
  })
})

describe('what the environment says', () => {
  const target = { bucket: 'b', prefix: '', region: 'eu-west-1', endpointUrl: undefined }

  test('completes the inputs, which come first', () => {
    const variables = {
      AWS_ACCESS_KEY_ID: ' id\n',
      AWS_SECRET_ACCESS_KEY: 'secret\n',
      AWS_REGION: 'eu-north-1',
      AWS_DEFAULT_REGION: 'us-west-2',
      AWS_ENDPOINT_URL: 'http://minio:9000',
    }
    const credentials = { accessKeyId: 'id', secretAccessKey: 'secret', sessionToken: undefined }
    expect(mirrorAccess({ ...target, region: undefined }, variables)).toMatchObject({
      credentials,
      region: 'eu-north-1',
      endpointUrl: new URL('http://minio:9000'),
    })
    const endpointUrl = new URL('https://r2.example.com')
    expect(mirrorAccess({ ...target, endpointUrl }, variables)).toMatchObject({
      region: 'eu-west-1',
      endpointUrl,
    })
    expect(
      mirrorAccess({ ...target, region: undefined }, { ...variables, AWS_REGION: '' }).region,
    ).toBe('us-west-2')
  })

  test.each<[string, Record<string, string>, Partial<MirrorTarget>, RegExp]>([
    ['no credentials', {}, {}, /AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set/],
    ['half of them', { AWS_ACCESS_KEY_ID: 'id' }, {}, /and AWS_SECRET_ACCESS_KEY is not set/],
    ['a profile', { AWS_PROFILE: 'docs' }, {}, /AWS_PROFILE is set, but not read here/],
    ['no region', environment, { region: undefined }, /`mirror-region` is missing/],
    ['no address', { ...environment, AWS_ENDPOINT_URL: 'minio:9000' }, {}, /AWS_ENDPOINT_URL is set, but/], // prettier-ignore
  ])('%s: one clear error', (_what, variables, changes, text) => {
    expect(() => mirrorAccess({ ...target, ...changes }, variables)).toThrow(
      expect.objectContaining({ code: 'config', message: expect.stringMatching(text) }),
    )
  })
})

test.each(['https://mirror.example.com/sites/docs', 'https://mirror.example.com/sites/docs/'])(
  'pods find the archive below %s',
  (baseUrl) => {
    expect(mirrorUrl(new URL(baseUrl), 'abc')).toBe(
      'https://mirror.example.com/sites/docs/abc.tar.gz',
    )
  },
)
