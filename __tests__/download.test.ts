/** Downloads from a storage that does anything: the archive arrives whole, or the failure says why not. */
import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import type { Bundle } from '../src/bundle.ts'
import { deadlineIn } from '../src/clock.ts'
import type { NewFile } from '../src/disk.ts'
import { download } from '../src/download.ts'
import { Failure } from '../src/errors.ts'
import { NetworkFault, type StreamedReply } from '../src/network.ts'
import { FakeClock } from './support/fake-clock.ts'
import { RecordingLog } from './support/recording-log.ts'

const archive = gzipSync(Buffer.alloc(5_000, 'static export'), { level: 0 })
const sha256 = createHash('sha256').update(archive).digest('hex')

interface Request {
  readonly url: URL
  readonly from: number
  readonly ifMatch: string | undefined
  readonly headers: Readonly<Record<string, string>>
}

/** What storage does with one request. */
type Answer = (request: Request) => StreamedReply | NetworkFault | 'silence'

/** As S3 does it. */
const whole: Answer = (request) => served(request, archive)

function served(
  { from, ifMatch }: Request,
  bytes: Uint8Array,
  { etag = '"1"', end = bytes.length, cut = false, headers = {} } = {},
): StreamedReply {
  if (ifMatch !== undefined && ifMatch !== etag) return refused(412, 'PreconditionFailed')
  if (from >= bytes.length) return refused(416, 'InvalidRange')
  const part = bytes.subarray(from, end)
  const all = { etag, 'content-length': String(bytes.length - from), ...headers }
  const range = { 'content-range': `bytes ${from}-${bytes.length - 1}/${bytes.length}` }
  return {
    status: from === 0 ? 200 : 206,
    headers: from === 0 ? all : { ...all, ...range },
    chunks: inChunks(part, cut || end < bytes.length),
  }
}

function refused(status: number, code: string, message = 'No.'): StreamedReply {
  const body = Buffer.from(`<Error><Code>${code}</Code><Message>${message}</Message></Error>`)
  return { status, headers: { 'content-type': 'application/xml' }, chunks: inChunks(body, false) }
}

async function* inChunks(bytes: Uint8Array, cut: boolean): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += 700) {
    await Promise.resolve()
    yield bytes.subarray(start, start + 700)
  }
  if (cut) throw new NetworkFault('body-cut', 'ECONNRESET', 'cut off', { delivered: true })
}

const lost = () =>
  new NetworkFault('connection', 'ECONNREFUSED', 'the connection was refused', { delivered: false })

function createFile() {
  const written: Buffer[] = []
  const file: NewFile = {
    write: (chunk) => written.push(Buffer.from(chunk)),
    restart: () => written.splice(0),
    close: () => undefined,
  }
  return { file, content: () => Buffer.concat(written) }
}

interface Setting {
  readonly answers: readonly Answer[]
  readonly sizeBytes?: number | undefined
  /** Of each link in turn, in seconds from now; the last is that of all further ones. */
  readonly livesSeconds?: readonly number[]
  readonly file?: NewFile
  readonly timeoutMinutes?: number
}

async function fetchWith(setting: Setting) {
  const clock = new FakeClock()
  const log = new RecordingLog()
  const { file, content } = createFile()
  const requests: Request[] = []
  let links = 0
  const lives = [...(setting.livesSeconds ?? [3600])]
  const mint = (): Bundle => {
    links += 1
    const life = (lives.length > 1 ? lives.shift() : lives[0]) ?? 0
    const expiresAtMs = clock.wallMs() + life * 1000
    return {
      url: new URL(`https://storage.test/a.tar.gz?X-Amz-Signature=${links}`),
      expiresAt: new Date(expiresAtMs).toISOString(),
      expiresAtMs,
      sizeBytes: 'sizeBytes' in setting ? setting.sizeBytes : archive.length,
    }
  }
  const result: unknown = await download(
    mint(),
    setting.file ?? file,
    { checkGzip: true },
    {
      storage: clock.holdDuring(async (url, headers, signal) => {
        const from = Number(/^bytes=(\d+)-$/.exec(headers['range'] ?? '')?.[1] ?? 0)
        const request = { url, from, ifMatch: headers['if-match'], headers }
        requests.push(request)
        const answer = (setting.answers[requests.length - 1] ?? whole)(request)
        if (answer instanceof NetworkFault) throw answer
        if (answer !== 'silence') return answer
        const { promise, reject } = Promise.withResolvers<never>()
        signal.addEventListener('abort', () => {
          reject(signal.reason as Error)
        })
        void clock.advance(31_000)
        return promise
      }),
      renewLink: () => Promise.resolve(mint()),
      baseUrl: new URL('https://api.test'),
      clock,
      random: () => 0.5,
      log,
      deadline: deadlineIn((setting.timeoutMinutes ?? 30) * 60_000, clock),
      signal: new AbortController().signal,
      serverWallMs: () => clock.wallMs(),
    },
  ).catch((error: unknown) => error)
  return { result, content, requests, links, log, elapsedMs: clock.nowMs(), pending: clock.pending }
}

async function expectWhole(setting: Setting) {
  const run = await fetchWith(setting)
  expect(run.result).toEqual({ sizeBytes: archive.length, sha256 })
  expect(run.content().equals(archive)).toBe(true)
  expect(run.pending).toBe(0)
  return run
}

async function expectFailure(setting: Setting, code: string, text: RegExp) {
  const run = await fetchWith(setting)
  expect(run.result).toBeInstanceOf(Failure)
  expect(run.result).toMatchObject({ code, message: expect.stringMatching(text) })
  expect(run.pending).toBe(0)
  return run
}

describe('a whole archive', () => {
  test('arrives with its sha256, and the key is nowhere', async () => {
    const { requests, log } = await expectWhole({ answers: [] })
    expect(requests.map(({ headers }) => headers)).toEqual([{ 'accept-encoding': 'identity' }])
    expect(log.lines).toEqual([])
  })

  test('needs no size from the service, nor from the storage when the service knows it', async () => {
    await expectWhole({ answers: [], sizeBytes: undefined })
    const chunked: Answer = (request) =>
      served(request, archive, { headers: { 'content-length': undefined } })
    await expectWhole({ answers: [chunked] })
    await expectFailure({ answers: [chunked], sizeBytes: undefined }, 'integrity', /how long/)
  })
})

describe('a lost connection', () => {
  test('is resumed where it broke, under the same tag', async () => {
    const { requests, log } = await expectWhole({
      answers: [(request) => served(request, archive, { end: 1_400 })],
    })
    expect(requests.map(({ from, ifMatch }) => [from, ifMatch])).toEqual([
      [0, undefined],
      [1_400, '"1"'],
    ])
    expect(log.lines.join('\n')).toContain('The download was interrupted at 1.4 kB')
  })

  test('begins again where there is no tag, or only a weak one', async () => {
    for (const etag of [undefined, 'W/"1"']) {
      const { requests } = await expectWhole({
        answers: [(request) => served(request, archive, { end: 1_400, headers: { etag } })],
      })
      expect(requests.map(({ from }) => from)).toEqual([0, 0])
    }
  })

  test('begins again when the storage ignores the range', async () => {
    const { requests } = await expectWhole({
      answers: [
        (request) => served(request, archive, { end: 1_400 }),
        () => served({ from: 0 } as Request, archive),
      ],
    })
    expect(requests).toHaveLength(2)
  })

  test('begins again when the archive has changed, or the range is refused', async () => {
    for (const status of [412, 416]) {
      await expectWhole({
        answers: [
          (request) => served(request, archive, { end: 1_400 }),
          () => refused(status, 'Changed'),
        ],
      })
    }
    await expectWhole({
      answers: [
        (request) => served(request, archive, { end: 1_400 }),
        (request) => served({ ...request, ifMatch: undefined }, archive, { etag: '"2"' }),
      ],
    })
  })

  test('begins again when another part comes than was asked for', async () => {
    await expectWhole({
      answers: [
        (request) => served(request, archive, { end: 1_400 }),
        () => served({ from: 700 } as Request, archive),
      ],
    })
  })

  test('may happen more often than there are tries, as long as something comes', async () => {
    const answers = Array.from(
      { length: 7 },
      (): Answer => (request) => served(request, archive, { end: request.from + 700 }),
    )
    const { requests } = await expectWhole({ answers })
    expect(requests).toHaveLength(8)
  })

  test('that tells no length is resumed too, when the service knows it', async () => {
    const { requests } = await expectWhole({
      answers: [
        (request) => ({
          status: 200,
          headers: { etag: '"1"' },
          chunks: inChunks(archive.subarray(request.from, 1_400), false),
        }),
      ],
    })
    expect(requests.map(({ from }) => from)).toEqual([0, 1_400])
  })

  test('ends the run when nothing comes any more', async () => {
    const { requests } = await expectFailure(
      { answers: Array.from({ length: 10 }, () => lost) },
      'network',
      /refused/,
    )
    expect(requests).toHaveLength(5)
  })

  test('by silence is one too', async () => {
    await expectWhole({ answers: [() => 'silence'] })
  })

  test('by a storage that is busy waits as long as it asks', async () => {
    const slowDown: Answer = () => ({
      ...refused(503, 'SlowDown'),
      headers: { 'retry-after': '40' },
    })
    const { elapsedMs } = await expectWhole({ answers: [slowDown] })
    expect(elapsedMs).toBeGreaterThanOrEqual(40_000)
  })

  test('cannot outlast the time of the step', async () => {
    const run = await expectFailure(
      { answers: Array.from({ length: 10 }, () => () => 'silence' as const), timeoutMinutes: 1 },
      'timeout',
      /timeout-minutes|no byte/,
    )
    expect(run.elapsedMs).toBeLessThan(120_000)
  })
})

describe('a link', () => {
  const expired: Answer = () => refused(403, 'AccessDenied', 'Request has expired')

  test('that has expired is renewed, and the download goes on where it was', async () => {
    const { requests, links } = await expectWhole({
      answers: [(request) => served(request, archive, { end: 1_400 }), expired],
    })
    expect(links).toBe(2)
    expect(requests.at(-1)?.from).toBe(1_400)
    expect(requests.at(-1)?.url.search).toBe('?X-Amz-Signature=2')
  })

  test('that is about to expire is renewed before the next request, not before the first', async () => {
    const { requests, links } = await expectWhole({
      answers: [(request) => served(request, archive, { end: 1_400 })],
      livesSeconds: [5, 3600],
    })
    expect(links).toBe(2)
    expect(requests.map(({ url }) => url.search)).toEqual([
      '?X-Amz-Signature=1',
      '?X-Amz-Signature=2',
    ])
  })

  test('whose refusal is cut off is renewed all the same', async () => {
    const cut: Answer = () => ({
      status: 403,
      headers: {},
      chunks: inChunks(Buffer.from('<Error>'), true),
    })
    const { links } = await expectWhole({ answers: [cut] })
    expect(links).toBe(2)
  })

  test('is renewed twice at most', async () => {
    const run = await expectFailure(
      { answers: [expired, expired, expired, expired] },
      'expired',
      /Request has expired/,
    )
    expect(run.links).toBe(3)
    expect(run.requests).toHaveLength(3)
  })

  test.each([
    [403, 'SignatureDoesNotMatch', 'forbidden'],
    [400, 'ExpiredToken', 'expired'],
    [404, 'NoSuchKey', 'not-found'],
  ])('that is refused with %i %s fails as %s in the end', async (status, code, failureCode) => {
    const answers = Array.from({ length: 4 }, (): Answer => () => refused(status, code))
    const { result } = await expectFailure({ answers }, failureCode, new RegExp(code))
    expect(String(result)).not.toContain('X-Amz-Signature')
  })
})

describe('a redirect', () => {
  const to =
    (location: string): Answer =>
    () => ({
      status: 307,
      headers: { location },
      chunks: inChunks(Buffer.alloc(0), false),
    })

  test('is followed three times, without anything of ours', async () => {
    const { requests } = await expectWhole({
      answers: [to('https://cdn.test/1'), to('/2'), to('https://other.test:8443/3')],
    })
    expect(requests.map(({ url }) => url.host)).toEqual([
      'storage.test',
      'cdn.test',
      'cdn.test',
      'other.test:8443',
    ])
  })

  test.each([
    ['http://cdn.test/1', /not an https link/],
    ['https://169.254.169.254/latest', /link-local/],
    ['https://localhost/x', /this machine/],
    ['https://[::ffff:127.0.0.1]/x', /this machine/],
    ['file:///etc/passwd', /not an https link/],
    ['https://user:pass@cdn.test/1', /user name/],
    ['', /leads nowhere/],
  ])('to %j is not followed', async (location, why) => {
    const { requests } = await expectFailure({ answers: [to(location)] }, 'protocol', why)
    expect(requests).toHaveLength(1)
  })

  test('for ever ends', async () => {
    const answers = Array.from({ length: 9 }, () => to('https://storage.test/again'))
    const { requests } = await expectFailure({ answers }, 'protocol', /more than 3/)
    expect(requests).toHaveLength(4)
  })
})

describe('an archive that is not whole is `integrity`:', () => {
  const other =
    (bytes: Uint8Array, headers = {}): Answer =>
    (request) =>
      served(request, bytes, { headers })
  test.each<[string, Answer, RegExp]>([
    ['an HTML page', other(Buffer.from('<!DOCTYPE html><title>Sign in</title>')), /HTML|bytes/],
    ['an XML document', other(Buffer.from('<?xml version="1.0"?><Error/>')), /XML|bytes/],
    ['a shorter one', other(archive.subarray(0, 900)), /bytes/],
    ['a longer one', other(Buffer.concat([archive, archive])), /bytes/],
    [
      'an endless one',
      other(Buffer.concat([archive, archive]), { 'content-length': undefined }),
      /longer/,
    ],
    ['an empty one', other(Buffer.alloc(0), { 'content-length': undefined }), /again|bytes/],
  ])('%s', async (_what, answer, text) => {
    await expectFailure({ answers: Array.from({ length: 8 }, () => answer) }, 'integrity', text)
  })

  test('a page of the right length', async () => {
    const page = Buffer.from(`<html>${'x'.repeat(archive.length - 6)}`)
    await expectFailure({ answers: [other(page)] }, 'integrity', /HTML page/)
  })
})

test('a disk that fills ends the download at once', async () => {
  const { file } = createFile()
  const full: NewFile = {
    ...file,
    write() {
      throw new Failure('disk', 'the disk is full')
    },
  }
  const run = await expectFailure({ answers: [], file: full }, 'disk', /full/)
  expect(run.requests).toHaveLength(1)
})

test('any storage: the archive arrives to the byte, or the run is red', async () => {
  const other = gzipSync(Buffer.alloc(5_000, 'another one!!'), { level: 0 })
  const answer: fc.Arbitrary<Answer> = fc.oneof(
    {
      weight: 5,
      arbitrary: fc.nat(archive.length).map(
        (more): Answer =>
          (request) =>
            served(request, archive, {
              end: Math.min(archive.length, request.from + more),
              cut: true,
            }),
      ),
    },
    { weight: 2, arbitrary: fc.constant<Answer>(lost) },
    { weight: 1, arbitrary: fc.constant<Answer>(() => 'silence') },
    { weight: 1, arbitrary: fc.constant<Answer>(() => served({ from: 0 } as Request, archive)) },
    {
      weight: 1,
      arbitrary: fc.constant<Answer>((request) =>
        served(request, other, { etag: '"2"', end: 900 }),
      ),
    },
    {
      weight: 1,
      arbitrary: fc.nat(6_000).map(
        (from): Answer =>
          () =>
            served({ from } as Request, archive),
      ),
    },
    {
      weight: 2,
      arbitrary: fc.constantFrom(200, 204, 304, 400, 403, 404, 412, 416, 429, 500, 503).map(
        (status): Answer =>
          () =>
            refused(status, 'SomeCode'),
      ),
    },
  )
  await fc.assert(
    fc.asyncProperty(fc.array(answer, { maxLength: 12 }), fc.boolean(), async (answers, sized) => {
      const run = await fetchWith({ answers, ...(sized ? {} : { sizeBytes: undefined }) })
      expect(run.pending).toBe(0)
      expect(run.elapsedMs).toBeLessThanOrEqual(31 * 60_000)
      if (run.result instanceof Failure) return
      expect(run.result).toEqual({ sizeBytes: run.content().length, sha256: expect.any(String) })
      expect([archive, other].some((whole) => run.content().equals(whole))).toBe(true)
      if (sized) expect(run.content().length).toBe(archive.length)
    }),
    { numRuns: 400 },
  )
})

test('a long download tells how far it is, a short one nothing', async () => {
  const clock = new FakeClock()
  const log = new RecordingLog()
  async function* slowly(): AsyncGenerator<Uint8Array> {
    for (let start = 0; start < archive.length; start += 500) {
      await clock.advance(1_000)
      yield archive.subarray(start, start + 500)
    }
  }
  const { file } = createFile()
  await download(
    {
      url: new URL('https://storage.test/a'),
      expiresAt: '',
      expiresAtMs: clock.wallMs() + 3_600_000,
      sizeBytes: archive.length,
    },
    file,
    { checkGzip: false },
    {
      storage: () =>
        Promise.resolve({
          status: 200,
          headers: { 'content-length': String(archive.length) },
          chunks: slowly(),
        }),
      renewLink: () => Promise.reject(new Error('not asked for')),
      baseUrl: new URL('https://api.test'),
      clock,
      random: () => 0.5,
      log,
      deadline: deadlineIn(1_800_000, clock),
      signal: new AbortController().signal,
      serverWallMs: () => clock.wallMs(),
    },
  )
  expect(log.lines).toHaveLength(2)
  expect(log.lines[0]).toMatch(/Downloaded 2\.5 kB of 5\.0 kB \(49 %\) · 500 B\/s · about 5 s left/)
})
