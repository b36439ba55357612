/** Downloading the archive: whole, checked, and resumed where the connection was lost. */
import { type Hash, createHash } from 'node:crypto'
import { createGzipCheck } from './archive.ts'
import type { Bundle } from './bundle.ts'
import type { Clock, Deadline } from './clock.ts'
import type { NewFile } from './disk.ts'
import { Failure, type FailureCode } from './errors.ts'
import { linkProblem } from './link.ts'
import type { Log } from './log.ts'
import type { Storage, StreamedReply } from './network.ts'
import { describeEnding } from './outcome.ts'
import { type LostConnection, createPatience, lostConnection } from './patience.ts'
import { type Fault, type RetryPolicy, afterFailedTry, parseRetryAfterMs } from './retry.ts'
import { clean } from './text.ts'
import { formatBytes, formatDuration } from './units.ts'

export interface DownloadDependencies {
  readonly storage: Storage
  /** Asks for a fresh link to the same archive. */
  readonly renewLink: () => Promise<Bundle>
  readonly baseUrl: URL
  readonly clock: Clock
  /** From 0 to 1. */
  readonly random: () => number
  readonly log: Log
  readonly deadline: Deadline
  readonly signal: AbortSignal
  /** The service's own time in epoch milliseconds. */
  readonly serverWallMs: () => number
}

export interface DownloadOptions {
  /** Whether to read the archive through its gzip checksums, when nothing else will. */
  readonly checkGzip: boolean
}

export interface Downloaded {
  readonly sizeBytes: number
  /** Lower-case hex. */
  readonly sha256: string
}

const retryPolicy: RetryPolicy = { maxTries: 5, minPersistenceMs: 0, repeatable: true }
/** No byte for so long is a lost connection. */
const maxSilenceMs = 30_000
const maxRedirects = 3
const maxRenewals = 2
/** A server that sends another archive with each reply must come to an end. */
const maxRestarts = 5
/** A link is not used in the last moments of its life. */
const lastMomentsMs = 10_000
const reportEveryMs = 5_000
const maxErrorBytes = 64 * 1024

/** What one request brought, when it was not the rest of the archive. */
type Setback =
  | ({ readonly kind: 'lost' } & LostConnection)
  | { readonly kind: 'refused'; readonly code: FailureCode; readonly reason: string }
  | { readonly kind: 'restart'; readonly reason: string }

/**
 * Downloads the archive into a new file. A lost connection is resumed with `Range` and `If-Match` (RFC 9110,
 * sections 13.1.1 and 14.2), a link that has expired or is refused is renewed, at most twice.
 *
 * @throws Failure `integrity` when the bytes are not those of the archive, `disk`, `expired`, and whatever
 *   the network ends in
 */
export async function download(
  first: Bundle,
  file: NewFile,
  { checkGzip }: DownloadOptions,
  dependencies: DownloadDependencies,
): Promise<Downloaded> {
  const { clock, log, deadline, signal } = dependencies
  const startedMs = clock.nowMs()
  const transfer = createTransfer(file, first.sizeBytes, checkGzip)
  const progress = createReport(log, clock)
  let bundle = first
  let renewals = 0
  let restarts = 0
  let tries = 0
  let reached = 0
  let host = first.url.host

  try {
    for (;;) {
      const lifeMs = bundle.expiresAtMs - dependencies.serverWallMs()
      // One that was just minted is as good as it gets.
      if (transfer.requests > 0 && lifeMs < lastMomentsMs && renewals < maxRenewals) {
        await renew('The link is about to expire')
      }
      const setback = await receive()
      if (setback === undefined) return await transfer.finish()

      // A connection that brought something new starts the count of failures again.
      tries = transfer.sizeBytes > reached ? 1 : tries + 1
      reached = Math.max(reached, transfer.sizeBytes)
      switch (setback.kind) {
        case 'refused':
          if (renewals >= maxRenewals) throw failure(setback)
          await renew(`Storage refused the link (${setback.reason})`)
          break
        case 'restart':
          restarts += 1
          if (restarts > maxRestarts) {
            throw failure({ code: 'integrity', reason: `${setback.reason}, again and again` })
          }
          log.details('The download starts again from the beginning', [setback.reason])
          transfer.restart()
          break
        case 'lost':
          await backOff(setback)
          break
      }
    }
  } finally {
    transfer.stop()
  }

  async function renew(reason: string): Promise<void> {
    renewals += 1
    log.details(`${reason}; asking for a fresh one`, [])
    bundle = await dependencies.renewLink()
    transfer.expect(bundle.sizeBytes)
  }

  async function backOff(setback: Setback & { kind: 'lost' }): Promise<void> {
    const decision = afterFailedTry(retryPolicy, {
      fault: setback.fault,
      tries,
      unknownFates: 0,
      elapsedMs: clock.nowMs() - startedMs,
      remainingMs: deadline.remainingMs(),
      random: dependencies.random(),
    })
    if (!decision.retry) {
      const ending = describeEnding(decision.why, setback.fault, deadline.remainingMs())
      throw failure({ code: setback.code, reason: setback.reason, ending })
    }
    log.details(
      `The download was interrupted at ${formatBytes(transfer.sizeBytes)}: ${setback.reason}; it goes on in ${formatDuration(decision.delayMs)}`,
      [],
    )
    await clock.sleep(decision.delayMs, signal)
  }

  function failure(what: { code: FailureCode; reason: string; ending?: string }): Failure {
    const { code, reason, ending = '' } = what
    return new Failure(code, `Could not download the archive: ${reason}.${ending}`, {
      tried:
        tries > 1 ? `${tries} tries in ${formatDuration(clock.nowMs() - startedMs)}` : undefined,
      advice: storageAdvice[code],
    })
  }

  /** One request, and as much of the archive as it brings; undefined when that is all of it. */
  async function receive(): Promise<Setback | undefined> {
    const patience = createPatience(maxSilenceMs, dependencies)
    try {
      const reply = await open(bundle.url, patience.signal)
      const setback = judge(reply, await errorCode(reply))
      if (setback) return setback
      for await (const chunk of reply.chunks) {
        patience.renew()
        await transfer.add(chunk)
        progress.see(transfer.sizeBytes, bundle.sizeBytes)
      }
      if (transfer.isWhole) return undefined
      // Without a length the end of the connection looks like the end of the archive.
      const fault: Fault = { kind: 'connection', code: 'ECONNRESET', delivered: true }
      return { kind: 'lost', fault, code: 'integrity', reason: `it ended too early (${host})` }
    } catch (error) {
      signal.throwIfAborted()
      return { kind: 'lost', ...lostConnection(error, patience, host) }
    } finally {
      patience.end() // what is left of the reply is not wanted
    }
  }

  /** Follows redirects to where the rules for links allow it; there is no key in these requests to lose. */
  async function open(link: URL, within: AbortSignal): Promise<StreamedReply> {
    let url = link
    for (let hops = 0; ; hops += 1) {
      host = url.host
      const reply = await dependencies.storage(url, transfer.requestHeaders(), within)
      if (reply.status < 300 || reply.status >= 400 || reply.status === 304) return reply
      const { location } = reply.headers
      const next = location ? URL.parse(location, url.href) : null
      const problem = next ? linkProblem(next, dependencies.baseUrl) : 'it leads nowhere'
      if (!next || problem !== undefined || hops >= maxRedirects) {
        const why = problem ?? `there are more than ${maxRedirects} in a row`
        throw new Failure(
          'protocol',
          `Storage answered with a redirect that is not followed: ${why}.`,
          { advice: storageAdvice.protocol },
        )
      }
      url = next
    }
  }

  /** What a reply means before its body is read. */
  function judge(reply: StreamedReply, s3Code: string): Setback | undefined {
    const { status, headers } = reply
    const reason = `HTTP ${status} from ${host}${s3Code && `, ${s3Code}`}`
    if (status === 200) return transfer.begin(headers)
    if (status === 206) return transfer.resume(headers)
    if (status === 412 || status === 416) {
      return { kind: 'restart', reason: `the archive is not the same any more, ${reason}` }
    }
    if (status === 401 || status === 403 || (status === 400 && s3Code === 'ExpiredToken')) {
      const expired = s3Code === 'ExpiredToken' || s3Code === 'Request has expired'
      return { kind: 'refused', code: expired ? 'expired' : 'forbidden', reason }
    }
    if (status === 404) return { kind: 'refused', code: 'not-found', reason }
    const retryAfterMs = parseRetryAfterMs(headers['retry-after'], dependencies.serverWallMs())
    const code = codeOfStorageStatus[status] ?? (status >= 500 ? 'server' : 'protocol')
    return { kind: 'lost', fault: { kind: 'status', status, retryAfterMs }, code, reason }
  }
}

const codeOfStorageStatus: Partial<Record<number, FailureCode>> = {
  408: 'server',
  425: 'server',
  429: 'rate-limited',
}

const refusedAdvice =
  'The storage refused the link, also a fresh one. Is something between this runner and the storage changing requests, or is the archive gone?'

/** What to do about a storage is not what to do about the API. */
const storageAdvice: Partial<Record<FailureCode, string>> = {
  forbidden: refusedAdvice,
  'not-found': refusedAdvice,
  'rate-limited': 'The storage is busy. Run again with `job-id` later.',
  network:
    'Can this runner reach the storage? Check its DNS and firewall, and whether it needs a proxy (`HTTPS_PROXY`).',
  protocol: 'Is a proxy or a login page between this runner and the storage?',
  server: 'The storage has a problem of its own. Run again with `job-id` later.',
  timeout: 'Raise `timeout-minutes`, and run again with `job-id`.',
}

/** The code of an S3 error document, or its message where the code alone says little. */
async function errorCode({ status, chunks }: StreamedReply): Promise<string> {
  if (status < 400) return ''
  let text = ''
  try {
    for await (const chunk of chunks) {
      text += Buffer.from(chunk).toString('latin1')
      if (text.length > maxErrorBytes) break
    }
  } catch {
    // The status is what counts; its text may end where it likes.
  }
  const code = /<Code>([^<]{1,100})<\/Code>/.exec(text)?.[1] ?? ''
  const expired = code === 'AccessDenied' && /<Message>Request has expired/.test(text)
  return expired ? 'Request has expired' : clean(code, 60)
}

/** The archive as far as it has come. */
function createTransfer(file: NewFile, statedBytes: number | undefined, checkGzip: boolean) {
  const startCheck = () => (checkGzip ? createGzipCheck() : undefined)
  let check = startCheck()
  let hash: Hash = createHash('sha256')
  let sizeBytes = 0
  let etag: string | undefined
  let expectedBytes = statedBytes
  let announcedBytes: number | undefined
  let requests = 0

  return {
    get sizeBytes() {
      return sizeBytes
    },
    expect(bytes: number | undefined) {
      expectedBytes = bytes ?? expectedBytes
    },
    get requests() {
      return requests
    },
    get isWhole() {
      const whole = expectedBytes ?? announcedBytes
      return whole === undefined || sizeBytes >= whole
    },
    requestHeaders(): Record<string, string> {
      requests += 1
      // `identity`: what comes is the archive itself, byte for byte.
      const plain = { 'accept-encoding': 'identity' }
      if (sizeBytes === 0 || etag === undefined) return plain
      return { ...plain, range: `bytes=${sizeBytes}-`, 'if-match': etag }
    },
    restart() {
      file.restart()
      check?.stop()
      check = startCheck()
      hash = createHash('sha256')
      sizeBytes = 0
      etag = undefined
    },
    /** A whole archive begins. */
    begin(headers: StreamedReply['headers']): Setback | undefined {
      if (sizeBytes > 0) this.restart()
      // A weak tag may stay the same when bytes change (RFC 9110, section 8.8.1).
      etag = headers.etag?.startsWith('"') ? headers.etag : undefined
      announcedBytes = readLength(headers['content-length'])
      if (announcedBytes === undefined && expectedBytes === undefined) {
        throw integrity('neither the service nor the storage says how long it is')
      }
      return undefined
    },
    /** The rest of the archive begins, if it is what was asked for. */
    resume(headers: StreamedReply['headers']): Setback | undefined {
      const range = /^bytes (\d{1,15})-\d{1,15}\/(\d{1,15}|\*)$/.exec(
        headers['content-range'] ?? '',
      )
      const same = headers.etag === undefined || headers.etag === etag
      const total = Number(range?.[2])
      const sameSize = Number.isNaN(total) || total === (expectedBytes ?? total)
      if (sizeBytes > 0 && same && sameSize && Number(range?.[1]) === sizeBytes) return undefined
      return {
        kind: 'restart',
        reason: 'the storage answered with another part than was asked for',
      }
    },
    /** Resolves when there is room for more. */
    add(chunk: Uint8Array): Promise<void> | undefined {
      if (sizeBytes === 0) {
        assertGzip(chunk)
        assertSameSize(expectedBytes, announcedBytes)
      }
      sizeBytes += chunk.length
      const most = expectedBytes ?? announcedBytes
      if (most !== undefined && sizeBytes > most) throw integrity(`it is longer than ${most} bytes`)
      hash.update(chunk)
      file.write(chunk)
      return check?.add(chunk)
    },
    stop() {
      check?.stop()
    },
    async finish(): Promise<Downloaded> {
      const whole = expectedBytes ?? announcedBytes
      if (sizeBytes !== whole) throw integrity(`it has ${sizeBytes} of ${whole ?? 0} bytes`)
      await check?.finish()
      file.close()
      return { sizeBytes, sha256: hash.digest('hex') }
    },
  }
}

function integrity(why: string): Failure {
  return new Failure('integrity', `The downloaded archive is not whole: ${why}.`)
}

/** The first bytes of every gzip file (RFC 1952, section 2.3.1). */
function assertGzip(chunk: Uint8Array): void {
  if (chunk[0] === 0x1f && (chunk[1] === 0x8b || chunk.length === 1)) return
  const start = Buffer.from(chunk.subarray(0, 200)).toString('latin1').trimStart().toLowerCase()
  const what = /^<(?:!doctype html|html)/.test(start)
    ? 'an HTML page'
    : start.startsWith('<')
      ? 'an XML document'
      : 'something else'
  throw new Failure('integrity', `The storage sent no gzip archive, but ${what}.`)
}

function assertSameSize(statedBytes: number | undefined, announcedBytes: number | undefined): void {
  if (statedBytes === undefined || announcedBytes === undefined) return
  if (statedBytes === announcedBytes) return
  throw integrity(`the service speaks of ${statedBytes} bytes, the storage of ${announcedBytes}`)
}

function readLength(value: string | undefined): number | undefined {
  return value !== undefined && /^\d{1,15}$/.test(value) ? Number(value) : undefined
}

/** Lines about a download that takes its time; a short one gets none. */
function createReport(log: Log, clock: Clock) {
  const startedMs = clock.nowMs()
  let loggedMs = startedMs
  return {
    see(sizeBytes: number, totalBytes: number | undefined) {
      const nowMs = clock.nowMs()
      if (nowMs - loggedMs < reportEveryMs) return
      loggedMs = nowMs
      const bytesPerMs = sizeBytes / (nowMs - startedMs)
      const facts = [
        totalBytes === undefined
          ? formatBytes(sizeBytes)
          : `${formatBytes(sizeBytes)} of ${formatBytes(totalBytes)} (${Math.floor((100 * sizeBytes) / totalBytes)} %)`,
        `${formatBytes(bytesPerMs * 1000)}/s`,
        ...(totalBytes === undefined
          ? []
          : [`about ${formatDuration((totalBytes - sizeBytes) / bytesPerMs)} left`]),
      ]
      log.info(`Downloaded ${facts.join(' · ')}`)
    },
  }
}
