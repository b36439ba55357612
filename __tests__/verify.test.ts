/** Verification against a site on this machine that shows whatever a test says, in virtual time. */
import { beforeAll, describe, expect, test } from '@jest/globals'
import { createHash } from 'node:crypto'
import fs from 'node:fs'
import http, { type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { PassThrough } from 'node:stream'
import nock from 'nock'
import { type Deadline, deadlineIn } from '../src/clock.ts'
import { type Disk, systemDisk } from '../src/disk.ts'
import { Failure } from '../src/errors.ts'
import { type Storage, systemStorage } from '../src/network.ts'
import { type Verifier, createVerifier, pageCandidates } from '../src/verify.ts'
import { goodCertificate, testKey } from './support/certificates.ts'
import { FakeClock } from './support/fake-clock.ts'
import { RecordingLog } from './support/recording-log.ts'
import { type Entry, tgz } from './support/tar.ts'
import { closedPort, listen } from './support/wire.ts'

beforeAll(() => {
  nock.restore() // it would put sockets of its own in place of the real ones
})

const newPage = '<!doctype html><title>Start</title><p>new'
const oldPage = '<!doctype html><title>Start, as it was</title><p>old'
const sha256 = createHash('sha256').update(newPage).digest('hex')
const oldHash = createHash('sha256').update(oldPage).digest('hex').slice(0, 12)
const site: readonly Entry[] = [
  { name: './', flag: '5' },
  { name: './index.html', body: '<title>Home</title>' },
  { name: './guides/', flag: '5' },
  { name: './guides/start.html', body: newPage },
  { name: './guides/index.html', body: 'guides' },
  { name: './a b/größe.html'.normalize('NFD'), body: 'encoded' },
  { name: './assets/app.js', body: 'script' },
]

/** What the site does with one request. */
type Answer = (response: ServerResponse, url: string) => void

const page =
  (body: string, headers: http.OutgoingHttpHeaders = {}): Answer =>
  (response) =>
    response.writeHead(200, { 'content-type': 'text/html', ...headers }).end(body)
const status =
  (code: number, headers: http.OutgoingHttpHeaders = {}): Answer =>
  (response) =>
    response.writeHead(code, headers).end('<title>Sorry</title>')
const redirect = (location: string, code = 302) => status(code, { location })
const cut: Answer = (response) => {
  response.writeHead(200, { 'content-length': '100' }).write('<title>', () => {
    response.socket?.end()
  })
}

/** @param answers in turn; the last is that to all further requests */
async function startSite(answers: readonly Answer[]) {
  const received: { readonly url: string; readonly headers: IncomingHttpHeaders }[] = []
  const server = http.createServer(({ url = '', headers }, response) => {
    received.push({ url, headers })
    const answer = answers[received.length - 1] ?? answers.at(-1)
    answer?.(response, url)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    received,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

interface Setting {
  readonly url: string
  readonly entries?: readonly Entry[]
  readonly timeoutMinutes?: number
  readonly timeoutInput?: string
  readonly storage?: Storage
  readonly clock?: FakeClock
  readonly deadline?: Deadline
  readonly disk?: Disk
  readonly signal?: AbortSignal
}

/** Answers nothing while so much time goes by. */
function silentFor(durationMs: number, clock: FakeClock): Storage {
  return (_url, _headers, signal) => {
    const { promise, reject } = Promise.withResolvers<never>()
    signal.addEventListener('abort', () => {
      reject(signal.reason as Error)
    })
    void clock.advance(durationMs)
    return promise
  }
}

/** An archive is read, never written. */
const readOnly: Disk = {
  ...systemDisk,
  makeDirectory: forbidden,
  create: forbidden,
}
function forbidden(): never {
  throw new Error('nothing is to be written')
}

async function prepare(setting: Setting) {
  const clock = setting.clock ?? new FakeClock()
  const log = new RecordingLog()
  const directory = fs.mkdtempSync(path.join(tmpdir(), 'verify-'))
  try {
    const archiveFile = path.join(directory, 'bundle.tar.gz')
    const archive = tgz(setting.entries ?? site)
    fs.writeFileSync(archiveFile, archive)
    const verifier = await createVerifier(
      {
        url: new URL(setting.url),
        archiveFile,
        archiveBytes: archive.length,
        timeoutMs: (setting.timeoutMinutes ?? 10) * 60_000,
        timeoutInput: setting.timeoutInput,
      },
      {
        storage: clock.holdDuring(setting.storage ?? systemStorage),
        disk: setting.disk ?? readOnly,
        clock,
        random: () => 0.5,
        log,
        deadline: setting.deadline ?? deadlineIn(30 * 60_000, clock),
        signal: setting.signal ?? new AbortController().signal,
      },
    )
    return { verifier, clock, log }
  } finally {
    fs.rmSync(directory, { recursive: true })
  }
}

/** Looks before and after a deployment that takes no time. */
async function verify(setting: Setting, deploy: (verifier: Verifier) => Promise<void> = before) {
  const { verifier, clock, log } = await prepare(setting)
  await deploy(verifier)
  const startedMs = clock.nowMs()
  const result: unknown = await verifier.after().catch((error: unknown) => error)
  expect(clock.pending).toBe(0)
  return { result, log, elapsedMs: clock.nowMs() - startedMs }
}
const before = (verifier: Verifier) => verifier.before()

/** Looks at `/guides/start` of a site that answers so: the first answer is the one before the deployment. */
async function verifyOn(answers: readonly Answer[], setting: Partial<Setting> = {}) {
  await using running = await startSite(answers)
  const run = await verify({ url: `${running.url}/guides/start`, ...setting })
  return { ...run, received: running.received }
}

function expectFailure(result: unknown, text: RegExp, advice = /What was deployed stays/) {
  expect(result).toBeInstanceOf(Failure)
  expect(result).toMatchObject({
    code: 'verify-failed',
    message: expect.stringMatching(text),
    advice: expect.stringMatching(advice),
  })
}

describe('the page of an address', () => {
  test.each([
    ['/', ['index.html']],
    ['', ['index.html']],
    ['/guides/start', ['guides/start.html', 'guides/start/index.html', 'guides/start']],
    ['/guides/start?x=1#y', ['guides/start.html', 'guides/start/index.html', 'guides/start']],
    ['/guides/', ['guides/index.html', 'guides.html', 'guides']],
    ['/guides/start.html', ['guides/start.html']],
    ['/v1.2', ['v1.2.html', 'v1.2/index.html', 'v1.2']],
    ['//a//b', ['a/b.html', 'a/b/index.html', 'a/b']],
    ['/a%20b/gr%C3%B6%C3%9Fe', ['a b/größe.html', 'a b/größe/index.html', 'a b/größe']],
  ])('%j is one of %j', (address, candidates) => {
    expect(pageCandidates(new URL(`https://docs.example.com${address}`))).toEqual(candidates)
  })

  test.each([
    ['/', 'index.html', '<title>Home</title>'],
    ['/guides/start', 'guides/start.html', newPage],
    ['/guides', 'guides/index.html', 'guides'],
    ['/a%20b/gro%CC%88%C3%9Fe', 'a b/größe.html', 'encoded'],
    ['/a%20b/gr%C3%B6%C3%9Fe', 'a b/größe.html', 'encoded'],
    ['/assets/app.js', 'assets/app.js', 'script'],
  ])('%s is found in the archive', async (address, name, body) => {
    await using running = await startSite([page(body)])
    const { result } = await verify({ url: running.url + address })
    expect(result).toMatchObject({ page: name.normalize('NFC') })
  })

  test('that the archive has not is `config`, and tells where it was looked for', async () => {
    await expect(prepare({ url: 'https://docs.example.com/guides/none?key=1' })).rejects.toThrow(
      expect.objectContaining({
        code: 'config',
        message:
          'The archive has no page for `verify-url` (docs.example.com/guides/none): neither guides/none.html nor guides/none/index.html nor guides/none is in it.',
        advice: expect.stringContaining('Nothing was deployed'),
      }),
    )
  })

  test('that cannot be decoded is `config`', async () => {
    await expect(prepare({ url: 'https://docs.example.com/100%' })).rejects.toThrow(
      /encodes nothing/,
    )
  })

  test('is not taken from an archive that is refused', async () => {
    const entries = [...site, { name: '../evil.html', body: 'x' }]
    const url = 'https://docs.example.com/guides/start'
    await expect(prepare({ url, entries })).rejects.toMatchObject({ code: 'unsafe-archive' })
  })
})

describe('a site that shows the page', () => {
  test('is asked for it as it is, past every cache', async () => {
    const { result, received, log } = await verifyOn([page(oldPage), page(newPage)])
    expect(result).toEqual({ page: 'guides/start.html', matchedBefore: false })
    expect(received).toHaveLength(2)
    for (const { headers } of received) {
      expect(headers).toMatchObject({ 'cache-control': 'no-cache', 'accept-encoding': 'identity' })
      expect(headers).not.toHaveProperty('authorization')
    }
    expect(log.lines.map((line) => line.replaceAll(/127\.0\.0\.1:\d+/g, 'docs.test'))).toEqual([
      `details: docs.test/guides/start is to become guides/start.html of the archive (41 B, sha256 ${sha256.slice(0, 12)})`,
      `  Before the deployment: another page: "Start, as it was" (52 B, sha256 ${oldHash})`,
      'info: Verified after 0 s: docs.test/guides/start is guides/start.html',
    ])
  })

  test('already before proves only that it can be reached', async () => {
    const { result, log } = await verifyOn([page(newPage)])
    expect(result).toMatchObject({ matchedBefore: true })
    expect(log.lines[0]).toMatch(/already: after the deployment it will prove only/)
    expect(log.lines[1]).toMatch(/so it was before, and the site can be reached/)
  })

  test('late is waited for, with a line for each change', async () => {
    const old = Array.from({ length: 6 }, () => page(oldPage))
    const { result, log, elapsedMs } = await verifyOn([
      page(oldPage),
      ...old,
      status(503),
      status(503),
      page(newPage),
    ])
    expect(result).toMatchObject({ matchedBefore: false })
    expect(elapsedMs).toBeGreaterThan(8_000)
    expect(log.lines.slice(2)).toEqual([
      `info: 00:00 Waiting for guides/start.html: another page: "Start, as it was" (52 B, sha256 ${oldHash})`,
      'info: 00:06 Waiting for guides/start.html: HTTP 503',
      expect.stringMatching(/^info: Verified after 9\.\d s: /),
    ])
  })

  test('behind redirects is followed, five times, wherever they lead', async () => {
    const other = `http://localhost:${await closedPort()}`
    const { result, received } = await verifyOn([
      redirect(other),
      redirect('/1', 301),
      redirect('2', 307),
      redirect('3', 308),
      redirect('4', 303),
      redirect('/en/guides/start'),
      page(newPage),
    ])
    expect(result).toMatchObject({ page: 'guides/start.html' })
    expect(received.map(({ url }) => url).slice(1)).toEqual([
      '/guides/start',
      '/1',
      '/2',
      '/3',
      '/4',
      '/en/guides/start',
    ])
  })

  test('behind a sixth redirect is not reached', async () => {
    const six = Array.from({ length: 6 }, () => redirect('/again'))
    const { result, received } = await verifyOn([...six, page(newPage)])
    expect(result).toMatchObject({ matchedBefore: false })
    expect(received.map(({ url }) => url)).toEqual([
      '/guides/start',
      ...Array.from({ length: 5 }, () => '/again'),
      '/guides/start',
    ])
  })

  test.each<[string, Answer]>([
    ['an error', status(500)],
    ['a cut page', cut],
    ['a refusal', (response) => response.destroy()],
  ])('after %s before the deployment', async (_what, answer) => {
    const { result } = await verifyOn([answer, page(newPage)])
    expect(result).toMatchObject({ matchedBefore: false })
  })

  test('is verified without a look before, too', async () => {
    await using running = await startSite([page(newPage)])
    const { result } = await verify({ url: `${running.url}/guides/start` }, () => Promise.resolve())
    expect(result).toMatchObject({ matchedBefore: false })
  })
})

describe('a site that never shows it fails with what was seen last:', () => {
  test('the page from before, with what caches say', async () => {
    const headers = { age: '300', etag: '"1"', 'last-modified': 'Fri, 20 Nov 2026 10:00:00 GMT' }
    const { result, elapsedMs } = await verifyOn([page(oldPage, headers)], {
      timeoutInput: 'helm-timeout-minutes',
    })
    expectFailure(result, /did not become guides\/start\.html of the archive \(41 B, sha256 /)
    expectFailure(result, /within 10m 00s\. Seen last: another page: "Start, as it was" \(52 B, /)
    expectFailure(result, /Last-Modified: Fri, 20 Nov 2026 10:00:00 GMT; Age: 300; ETag: "1"\)\. It is the page from before/) // prettier-ignore
    expectFailure(result, /./, /cache.*What was deployed stays.*raise `helm-timeout-minutes`/)
    expect(elapsedMs).toBe(600_000)
  })

  test('another page than before: something changes it on the way', async () => {
    const { result } = await verifyOn([page(oldPage), page(`${newPage}<script>`)])
    expectFailure(result, /Seen last: another page: "Start"/, /compresses|scripts/)
    expect(String(result)).not.toContain('before the deployment')
  })

  test.each<[string, Answer, RegExp, RegExp]>([
    ['compressed', page('x', { 'content-encoding': 'br' }), /something compressed \(br\), although nobody asked for it/, /compresses/], // prettier-ignore
    ['without a title', page('plain'), /another page: without a title \(5 B/, /./],
    ['empty', page(''), /another page: without a title \(0 B/, /./],
    ['503', status(503), /Seen last: HTTP 503\./, /ingress and its pods/],
    ['404', status(404), /Seen last: HTTP 404\./, /ingress/],
    ['a login', status(401), /Seen last: HTTP 401\./, /without a login/],
    ['no content', status(204), /HTTP 204/, /./],
    ['a cut page', cut, /cut off after 7 of 100 bytes \(127\.0\.0\.1:\d+, ECONNRESET\)/, /reach the site/], // prettier-ignore
    ['a circle', (response, url) => { redirect(url)(response, url) }, /HTTP 302, a redirect that is not followed: there are more than 5/, /./], // prettier-ignore
    ['the metadata service', redirect('http://169.254.169.254/latest'), /link-local/, /./],
    ['a file', redirect('file:///etc/passwd'), /redirect that is not followed/, /./],
    ['nowhere', redirect(''), /redirect that is not followed/, /./],
    ['a closed door', (response) => response.destroy(), /closed before a reply/, /reach the site/],
  ])('%s', async (_what, answer, text, advice) => {
    const { result } = await verifyOn([answer], { timeoutMinutes: 0.2 })
    expectFailure(result, text, advice)
  })

  test('a page at another host', async () => {
    await using login = await startSite([page('<title>Sign in</title>')])
    const { result } = await verifyOn([redirect(`http://localhost:${login.port}/`)])
    expectFailure(result, /"Sign in" .*, after a redirect to localhost:\d+/)
  })

  test('a page without an end is not read to it', async () => {
    let written = 0
    const endless: Answer = (response) => {
      const more = () => {
        written += 1_000_000
        if (!response.destroyed) response.write(Buffer.alloc(1_000_000, 'x'), more)
      }
      response.writeHead(200)
      more()
    }
    const { result } = await verifyOn([endless], { timeoutMinutes: 0.01 })
    expectFailure(result, /another page, of more than 20\.0 MB/)
    expect(written).toBeLessThan(200_000_000)
  })

  test('a title that is an attack', async () => {
    const title = `<title>::error::x\n##[command]${'y'.repeat(400)}</title>`
    const { result, log } = await verifyOn([page(title)], { timeoutMinutes: 0.1 })
    expect(`${String(result)}${log.text}`).not.toMatch(/\n(?!details|info| )|##\[|y{100}/)
  })

  test('nobody there', async () => {
    const url = `http://127.0.0.1:${await closedPort()}/guides/start`
    const { result } = await verify({ url })
    expectFailure(
      result,
      /Seen last: the connection was refused \(127\.0\.0\.1:\d+, ECONNREFUSED\)/,
    )
  })

  test('a certificate that nobody trusts', async () => {
    await using wire = await listen(() => undefined, {
      tls: { key: testKey, cert: goodCertificate },
    })
    const url = `https://localhost:${wire.port}/guides/start`
    const { result } = await verify({ url, timeoutMinutes: 0.2 })
    expectFailure(result, /certificate was not trusted/, /certificate/)
  })

  test('silence', async () => {
    const clock = new FakeClock()
    const { result, elapsedMs } = await verify({
      url: 'https://docs.example.com/guides/start',
      clock,
      timeoutMinutes: 1,
      storage: silentFor(16_000, clock),
    })
    expectFailure(result, /no whole answer from docs\.example\.com within/)
    expect(elapsedMs).toBeLessThan(90_000)
  })
})

test('a long wait says so once a minute', async () => {
  const { log } = await verifyOn([status(503)], { timeoutMinutes: 10 })
  const waiting = log.lines.filter((line) => line.includes('Waiting for'))
  expect(waiting.length).toBeGreaterThanOrEqual(8)
  expect(waiting.length).toBeLessThanOrEqual(11)
})

test('the query of the address is sent, and is in no text', async () => {
  await using running = await startSite([page(oldPage)])
  const url = `${running.url}/guides/start?bypass=0123456789`
  const { result, log } = await verify({ url, timeoutMinutes: 0.1 })
  expect(running.received[0]?.url).toBe('/guides/start?bypass=0123456789')
  expect(`${String(result)}${log.text}`).not.toContain('bypass')
})

test('an archive that takes longer than the step to be read is told before anything is deployed', async () => {
  const clock = new FakeClock()
  const told = expect(
    prepare({
      url: 'https://docs.test/guides/start',
      clock,
      deadline: deadlineIn(60_000, clock),
      disk: { ...readOnly, read: () => new PassThrough() }, // never ends
    }),
  ).rejects.toMatchObject({ code: 'timeout' })
  await clock.advance(60_000)
  await told
})

test('a look at the site before the deployment takes no longer than one after it', async () => {
  const clock = new FakeClock()
  const { verifier, log } = await prepare({
    url: 'https://docs.test/guides/start',
    clock,
    timeoutMinutes: 0.05,
    storage: silentFor(3_000, clock),
  })
  await verifier.before()
  expect(log.text).toContain('no whole answer from docs.test within 3 s')
})

test('a cancelled run waits no longer', async () => {
  const cancelling = new AbortController()
  const cancelled = new Failure('cancelled', 'Cancelled by SIGINT.')
  await using running = await startSite([
    page(oldPage),
    page(oldPage),
    () => {
      cancelling.abort(cancelled)
    },
  ])
  const url = `${running.url}/guides/start`
  const { result } = await verify({ url, signal: cancelling.signal })
  expect(result).toBe(cancelled)
})
