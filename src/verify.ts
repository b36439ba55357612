/** Verifying a deployment: one page of the site, as visitors get it, must become that of the archive. */
import { createHash } from 'node:crypto'
import path from 'node:path'
import { unpack } from './archive.ts'
import { type Clock, type Deadline, deadlineIn } from './clock.ts'
import type { Disk, NewFile } from './disk.ts'
import { Failure } from './errors.ts'
import { describeLink, linkProblem } from './link.ts'
import type { Log } from './log.ts'
import { NetworkFault, type Storage, type StreamedReply } from './network.ts'
import { nextPollDelayMs } from './poll.ts'
import { clean } from './text.ts'
import { formatBytes, formatDuration, formatElapsed } from './units.ts'

export interface VerifyRequest {
  /** The page as visitors ask for it. */
  readonly url: URL
  /** The archive on disk, already checked. */
  readonly archiveFile: string
  readonly archiveBytes: number
  /** How long `after` waits for the page. */
  readonly timeoutMs: number
  /** The input that says so, for the advice; undefined where it is fixed. */
  readonly timeoutInput?: string | undefined
}

export interface VerifyDependencies {
  readonly storage: Storage
  readonly disk: Disk
  readonly clock: Clock
  /** From 0 to 1. */
  readonly random: () => number
  readonly log: Log
  /** Of what comes before the deployment. */
  readonly deadline: Deadline
  readonly signal: AbortSignal
}

export interface Verified {
  /** The page of the archive: `guides/start.html`. */
  readonly page: string
  /** Whether the page was the same before the deployment: then it proves only that the site can be reached. */
  readonly matchedBefore: boolean
}

export interface Verifier {
  /** Looks at the page once, before anything is deployed; whatever it sees is fine. */
  before(): Promise<void>
  /** Looks until it sees the page of the archive. @throws Failure `verify-failed` with what it saw last */
  after(): Promise<Verified>
}

/** A page of the archive. */
interface Page {
  readonly name: string
  /** Lower-case hex. */
  readonly sha256: string
  readonly sizeBytes: number
}

/** What one look at the site showed. */
interface Look {
  readonly kind: 'page' | 'status' | 'fault'
  /** In a few words: the same words mean that nothing has changed. */
  readonly what: string
  /** What caches say of it, for the last word. */
  readonly caches?: string
  readonly status?: number
  /** Of a whole page, in lower-case hex. */
  readonly sha256?: string
}

const maxRedirects = 5
/** A page that takes longer is looked at again. */
const maxLookMs = 15_000
const maxPageBytes = 20_000_000
/** Where a title stands, if there is one. */
const headBytes = 64 * 1024
const longestSilenceMs = 60_000

/**
 * Finds the page of a URL in the archive, and prepares to look for it on the site. Nothing is sent yet.
 *
 * @throws Failure `config` when the archive has no such page, with the paths that were looked for
 */
export async function createVerifier(
  request: VerifyRequest,
  dependencies: VerifyDependencies,
): Promise<Verifier> {
  const { url, timeoutMs, timeoutInput } = request
  const { storage, clock, log, random, signal } = dependencies
  const shown = describeLink(url)
  const page = await findPage(request, dependencies)
  let seenBefore: Look | undefined

  return {
    async before() {
      seenBefore = await look(Math.min(maxLookMs, timeoutMs))
      if (matches(seenBefore)) {
        log.info(
          `${shown} is ${describePage(page)} already: after the deployment it will prove only that the site can be reached.`,
        )
        return
      }
      log.details(`${shown} is to become ${describePage(page)}`, [
        `Before the deployment: ${seenBefore.what}`,
      ])
    },
    after,
  }

  async function after(): Promise<Verified> {
    const startedMs = clock.nowMs()
    const deadline = deadlineIn(timeoutMs, clock)
    const matchedBefore = seenBefore !== undefined && matches(seenBefore)
    let logged: { readonly what: string; readonly atMs: number } | undefined
    for (;;) {
      const remainingMs = deadline.remainingMs()
      const seen = await look(Math.min(maxLookMs, Math.max(remainingMs, 1_000)))
      const durationMs = clock.nowMs() - startedMs
      // Once is enough: the pods are ready and the old ones gone before anyone looks, and what a cache in
      // front hands out next no number of looks from here would tell.
      if (matches(seen)) {
        const same = matchedBefore ? '; so it was before, and the site can be reached' : ''
        log.info(`Verified after ${formatDuration(durationMs)}: ${shown} is ${page.name}${same}`)
        return { page: page.name, matchedBefore }
      }
      if (remainingMs <= 0) throw notSeen(seen)
      const nowMs = clock.nowMs()
      if (seen.what !== logged?.what || nowMs - logged.atMs >= longestSilenceMs) {
        logged = { what: seen.what, atMs: nowMs }
        log.info(`${formatElapsed(durationMs)} Waiting for ${page.name}: ${seen.what}`)
      }
      const delayMs = nextPollDelayMs(durationMs, undefined, random())
      await clock.sleep(Math.min(delayMs, deadline.remainingMs()), signal)
    }
  }

  function matches(seen: Look): boolean {
    return seen.sha256 === page.sha256
  }

  function notSeen(last: Look): Failure {
    const isOld = last.sha256 !== undefined && last.sha256 === seenBefore?.sha256
    const origin = isOld ? ' It is the page from before the deployment.' : ''
    const what = `${shown} did not become ${describePage(page)} within ${formatDuration(timeoutMs)}. Seen last: ${last.what}${last.caches ?? ''}.${origin}`
    const longer =
      timeoutInput === undefined ? '' : ` If it only takes longer, raise \`${timeoutInput}\`.`
    return new Failure('verify-failed', what, { advice: `${adviceFor(last, isOld)}${longer}` })
  }

  /** One look at the site, which never fails but by the signal. */
  async function look(patienceMs: number): Promise<Look> {
    const patience = new AbortController()
    const stopTimer = clock.timer(patienceMs, () => {
      patience.abort()
    })
    let host = url.host
    try {
      return await follow(AbortSignal.any([signal, patience.signal]))
    } catch (error) {
      signal.throwIfAborted()
      if (patience.signal.aborted) {
        const what = `no whole answer from ${clean(host, 100)} within ${formatDuration(patienceMs)}`
        return { kind: 'fault', what }
      }
      if (!(error instanceof NetworkFault)) throw error
      return { kind: 'fault', what: `${error.message} (${clean(host, 100)}, ${error.code})` }
    } finally {
      stopTimer()
      patience.abort() // what is left of the reply is not wanted
    }

    async function follow(within: AbortSignal): Promise<Look> {
      let at = url
      for (let hops = 0; ; hops += 1) {
        host = at.host
        const reply = await storage(at, requestHeaders, within)
        const way = at.host === url.host ? '' : `, after a redirect to ${clean(at.host, 100)}`
        const { status } = reply
        if (![301, 302, 303, 307, 308].includes(status)) return judge(reply, way)
        const next = URL.parse(reply.headers.location ?? '', at.href)
        const problem = next ? linkProblem(next, anywhere) : 'it leads nowhere'
        if (!next || problem !== undefined || hops >= maxRedirects) {
          const why = problem ?? `there are more than ${maxRedirects} in a row`
          const what = `HTTP ${status}, a redirect that is not followed: ${why}${way}`
          return { kind: 'status', status, what }
        }
        at = next
      }
    }
  }

  async function judge(reply: StreamedReply, way: string): Promise<Look> {
    const { status, headers, chunks } = reply
    if (status !== 200) return { kind: 'status', status, what: `HTTP ${status}${way}` }
    const hash = createHash('sha256')
    const head: Uint8Array[] = []
    let sizeBytes = 0
    const mostBytes = Math.max(maxPageBytes, page.sizeBytes)
    for await (const chunk of chunks) {
      if (sizeBytes < headBytes) head.push(chunk)
      hash.update(chunk)
      sizeBytes += chunk.length
      if (sizeBytes > mostBytes) {
        const what = `another page, of more than ${formatBytes(mostBytes)}${way}`
        return { kind: 'page', what }
      }
    }
    const sha256 = hash.digest('hex')
    const facts = `${titleOf(head)} (${formatBytes(sizeBytes)}, sha256 ${shortHash(sha256)})`
    const caches = describeCaches(headers)
    const encoding = headers['content-encoding'] ?? 'identity'
    if (encoding === 'identity') {
      return { kind: 'page', what: `another page: ${facts}${way}`, caches, sha256 }
    }
    const what = `something compressed (${clean(encoding, 20)}), although nobody asked for it${way}`
    return { kind: 'page', what, caches }
  }
}

/** The site may be anywhere, also on this machine behind a port-forward; only link-local addresses are refused. */
const anywhere = new URL('http://localhost')

const requestHeaders = {
  accept: 'text/html, */*',
  // What comes is compared byte by byte.
  'accept-encoding': 'identity',
  'cache-control': 'no-cache',
}

function describePage({ name, sizeBytes, sha256 }: Page): string {
  return `${clean(name, 200)} of the archive (${formatBytes(sizeBytes)}, sha256 ${shortHash(sha256)})`
}

function shortHash(sha256: string): string {
  return sha256.slice(0, 12)
}

function titleOf(head: readonly Uint8Array[]): string {
  const text = Buffer.concat(head).toString('utf8', 0, headBytes)
  const title = clean(/<title[^>]{0,200}>([^<]{1,500})/i.exec(text)?.[1] ?? '', 80)
  return title === '' ? 'without a title' : `"${title}"`
}

function describeCaches(headers: StreamedReply['headers']): string {
  const facts = [
    ['Last-Modified', headers['last-modified']],
    ['Age', headers.age],
    ['ETag', headers.etag],
  ].flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${clean(value, 60)}`]))
  return facts.length === 0 ? '' : ` (${facts.join('; ')})`
}

/** What to do about the last thing that was seen. */
function adviceFor({ kind, status = 0 }: Look, isOld: boolean): string {
  if (isOld) {
    return 'Is it the address of what was deployed, and does a cache stand in front of it? What was deployed stays.'
  }
  if (kind === 'page') {
    return 'Is it the address of this page? Where something on the way compresses pages or puts scripts into them (a CDN, an ingress), they never match: verify an address past it, or leave `verify-url` out. What was deployed stays.'
  }
  if (kind === 'fault') {
    return 'Can this runner reach the site? Check its name, certificate and firewall, and whether the runner needs a proxy (`HTTPS_PROXY`). What was deployed stays.'
  }
  if (status === 401 || status === 403) {
    return 'The page must open without a login, also for this runner. What was deployed stays.'
  }
  return 'Look at what serves this address, its ingress and its pods. What was deployed stays.'
}

/**
 * The files of an archive that a server may take for the page of a URL, best first: `/guides/start` is
 * `guides/start.html` or `guides/start/index.html`, or a file of that very name.
 *
 * @throws Failure `config` for a path that cannot be decoded
 */
export function pageCandidates(url: URL): string[] {
  const parts = url.pathname.split('/').filter((part) => part !== '')
  const name = decodePath(parts.join('/'))
  if (name === '') return ['index.html']
  if (name.endsWith('.html')) return [name]
  const pages = [`${name}.html`, `${name}/index.html`]
  return [...(url.pathname.endsWith('/') ? pages.reverse() : pages), name]
}

function decodePath(encoded: string): string {
  try {
    return decodeURIComponent(encoded)
  } catch {
    throw new Failure('config', '`verify-url` has a % that encodes nothing in its path.')
  }
}

/** The best candidate that the archive has, read without a file being written. */
async function findPage(
  { url, archiveFile, archiveBytes }: VerifyRequest,
  dependencies: VerifyDependencies,
): Promise<Page> {
  const candidates = pageCandidates(url)
  const pages = new Map<string, Page>()
  const hashing: Disk = {
    ...dependencies.disk,
    makeDirectory: () => undefined,
    create(file) {
      const name = file.split(path.sep).join('/').normalize('NFC')
      const wanted = candidates.find((candidate) => candidate.normalize('NFC') === name)
      if (wanted === undefined) return ignored
      return hashed((sha256, sizeBytes) => pages.set(wanted, { name, sha256, sizeBytes }))
    },
  }
  // Judged by the rules for every archive; what Windows cannot hold does not matter here.
  await unpack(archiveFile, archiveBytes, '', {
    ...dependencies,
    disk: hashing,
    warn: () => undefined,
    platform: 'linux',
  })
  const found = candidates.map((candidate) => pages.get(candidate)).find((page) => page)
  if (found) return found
  const names = candidates.map((candidate) => clean(candidate, 200)).join(' nor ')
  const what = `The archive has no page for \`verify-url\` (${describeLink(url)}): neither ${names} is in it.`
  throw new Failure('config', what, {
    advice:
      'Name a page that the export holds, by the path that it has there. Nothing was deployed.',
  })
}

const ignored: NewFile = {
  write: () => undefined,
  restart: () => undefined,
  close: () => undefined,
}

function hashed(onEnd: (sha256: string, sizeBytes: number) => void): NewFile {
  const hash = createHash('sha256')
  let sizeBytes = 0
  let isOpen = true
  return {
    ...ignored,
    write(chunk) {
      hash.update(chunk)
      sizeBytes += chunk.length
    },
    close() {
      if (!isOpen) return
      isOpen = false
      onEnd(hash.digest('hex'), sizeBytes)
    },
  }
}
