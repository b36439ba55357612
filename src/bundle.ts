/** The bundle: the presigned link, how long it works, and what of it is secret. */
import { BlockList, isIP } from 'node:net'
import type { Client } from './client.ts'
import { Failure } from './errors.ts'
import type { Log } from './log.ts'
import type { BundleReply } from './schemas.ts'
import { clean } from './text.ts'
import { formatDuration } from './units.ts'

export interface Bundle {
  readonly url: URL
  /** As the service says it, or derived from the link where the service does not. */
  readonly expiresAt: string
  /** The end of the link that we trust, in epoch milliseconds: the earlier of what is known. */
  readonly expiresAtMs: number
  readonly sizeBytes: number | undefined
}

export interface BundleDependencies {
  readonly client: Client
  readonly baseUrl: URL
  readonly log: Log
  /** Makes the runner hide a value from now on; undefined when the link is not to be masked. */
  readonly mask: ((secret: string) => void) | undefined
}

/** A link that ends sooner than this is worth a warning: a deployment takes its time. */
const shortLifeMs = 15 * 60_000
const tolerableDifferenceMs = 60_000

/**
 * Asks for a link to the archive of a completed job; once more when the link is dead on arrival.
 *
 * @throws Failure `protocol` when the answer cannot be used, `expired`, and whatever asking can end in
 */
export async function mintBundle(jobId: string, dependencies: BundleDependencies): Promise<Bundle> {
  const { client, log } = dependencies
  for (let mints = 1; ; mints += 1) {
    const bundle = toBundle(await client.createBundle(jobId), jobId, dependencies)
    const lifeMs = bundle.expiresAtMs - client.serverWallMs()
    if (lifeMs > 0) {
      if (lifeMs < shortLifeMs) {
        log.warning(
          `The link works only for ${formatDuration(lifeMs)} more. Use it at once, or mint a fresh one with \`job-id\`.`,
        )
      }
      return bundle
    }
    if (mints > 1) {
      throw new Failure('expired', 'The service handed out a link that had already expired, twice.')
    }
    log.details('The link had already expired when it arrived; asking for a fresh one', [])
  }
}

/** @throws Failure `protocol`, never with the link in it */
function toBundle(reply: BundleReply, jobId: string, dependencies: BundleDependencies): Bundle {
  const { baseUrl, log, mask } = dependencies
  if (typeof reply.jobId === 'string' && reply.jobId !== jobId) {
    throw new Failure('protocol', `Asked for the bundle of job ${jobId}, got that of another one.`)
  }
  const url = URL.parse(reply.bundleUrl)
  if (!url) throw unusableLink('it is not a URL')
  if (mask) for (const secret of secretsOf(url)) mask(secret)

  const problem = linkProblem(url, baseUrl)
  if (problem !== undefined) throw unusableLink(problem)

  const stated = parseTimestampMs(reply.expiresAt)
  const signed = signedExpiryMs(url)
  const expiresAtMs = Math.min(stated ?? Infinity, signed ?? Infinity)
  if (expiresAtMs === Infinity) {
    const what = 'The service does not say until when the link works, and the link does not either.'
    throw new Failure('protocol', what)
  }
  if (
    stated !== undefined &&
    signed !== undefined &&
    Math.abs(stated - signed) > tolerableDifferenceMs
  ) {
    log.warning(
      `The service says that the link works until ${new Date(stated).toISOString()}, its signature until ${new Date(signed).toISOString()}. The earlier counts.`,
    )
  }
  return {
    url,
    expiresAt:
      stated !== undefined && typeof reply.expiresAt === 'string'
        ? reply.expiresAt
        : new Date(expiresAtMs).toISOString(),
    expiresAtMs,
    sizeBytes: readSizeBytes(reply.sizeBytes),
  }
}

function unusableLink(problem: string): Failure {
  return new Failure('protocol', `The service handed out a link that cannot be used: ${problem}.`)
}

function readSizeBytes(sizeBytes: unknown): number | undefined {
  if (sizeBytes === undefined || sizeBytes === null) return undefined
  if (Number.isSafeInteger(sizeBytes) && Number(sizeBytes) > 0) return Number(sizeBytes)
  const seen = typeof sizeBytes === 'object' ? 'an object' : clean(JSON.stringify(sizeBytes), 40)
  throw new Failure('protocol', `The service reports an impossible \`sizeBytes\`: ${seen}.`)
}

/** The link without what is secret in it: host and path. */
export function describeLink(url: URL): string {
  return clean(`${url.host}${url.pathname}`, 300)
}

/**
 * What is wrong with fetching from this link, judged by the literal address; names are not resolved.
 * Private networks are legitimate, since storage may be hosted by the client or air-gapped.
 */
export function linkProblem(url: URL, baseUrl: URL): string | undefined {
  const local = isLoopback(baseUrl.hostname)
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && local)) {
    return 'it is not an https link'
  }
  if (url.username !== '' || url.password !== '') return 'it holds a user name'
  if (isListed(linkLocal, url.hostname)) return 'it leads to a link-local address'
  if (!local && (isLoopback(url.hostname) || isListed(unspecified, url.hostname))) {
    return 'it leads to this machine itself'
  }
  return undefined
}

// Mapped addresses (::ffff:127.0.0.1) are matched by BlockList.
const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

// A connection to "no address" arrives at this machine too.
const unspecified = new BlockList()
unspecified.addSubnet('0.0.0.0', 8, 'ipv4')
unspecified.addAddress('::', 'ipv6')

const linkLocal = new BlockList()
linkLocal.addSubnet('169.254.0.0', 16, 'ipv4')
linkLocal.addSubnet('64:ff9b::a9fe:0', 112, 'ipv6') // the same behind NAT64
linkLocal.addSubnet('fe80::', 10, 'ipv6')
linkLocal.addAddress('fd00:ec2::254', 'ipv6') // the metadata service of EC2 by IPv6

/** Whether a host, as the URL parser writes it, is this machine by its literal name or address. */
export function isLoopback(hostname: string): boolean {
  const name = hostname.replace(/\.$/, '')
  return name === 'localhost' || name.endsWith('.localhost') || isListed(loopback, hostname)
}

function isListed(list: BlockList, hostname: string): boolean {
  const address = hostname.replace(/^\[(.*)\]$/, '$1')
  const family = isIP(address)
  return family !== 0 && list.check(address, family === 4 ? 'ipv4' : 'ipv6')
}

/**
 * Reads an RFC 3339 timestamp with a zone as epoch milliseconds; undefined for anything else, also for
 * days that do not exist, which JavaScript would carry into the next month.
 */
export function parseTimestampMs(value: unknown): number | undefined {
  if (typeof value !== 'string') return undefined
  const match =
    /^(\d{4})-(\d{2})-(\d{2})T(?!24)\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})$/.exec(
      value,
    )
  if (!match) return undefined
  const [, year, month, day] = match.map(Number)
  const daysInMonth = new Date(Date.UTC(year ?? 0, month ?? 0, 0)).getUTCDate()
  const timeMs = Date.parse(value)
  return Number.isNaN(timeMs) || (day ?? 0) > daysInMonth ? undefined : timeMs
}

const basicTimestamp = /^(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})Z$/

/**
 * The end of the link by its own signature, in epoch milliseconds: `X-Amz-Date` plus `X-Amz-Expires`
 * (AWS SigV4 query form, also as Google Cloud Storage writes it).
 */
function signedExpiryMs(url: URL): number | undefined {
  for (const vendor of ['X-Amz', 'X-Goog']) {
    const date = url.searchParams.get(`${vendor}-Date`) ?? ''
    const expires = url.searchParams.get(`${vendor}-Expires`) ?? ''
    if (!/^\d{1,9}$/.test(expires)) continue
    const signedMs = parseTimestampMs(date.replace(basicTimestamp, '$1-$2-$3T$4:$5:$6Z'))
    if (signedMs !== undefined) return signedMs + Number(expires) * 1000
  }
  return undefined
}

const secretParameters = new Set([
  'x-amz-signature',
  'x-amz-credential',
  'x-amz-security-token',
  'signature',
  'sig',
  'token',
])
// Constants of many links, and dates: a mask on one of them would make the runner drop other outputs, such as
// `expiresAt`.
const publicParameters = /^(?:x-[a-z]+-)?(?:algorithm|date|expires|signedheaders)$/i
const isDate = (text: string) => /^\d{4}-\d{2}-\d{2}T[\d:.]+Z$/.test(text)

/** A mask on fewer characters would blot out half of the log. */
const shortestSecret = 8

/** What must be hidden to keep a link from working: its whole query and the telling values, raw and decoded. */
export function secretsOf(url: URL): string[] {
  const secrets = new Set<string>()
  const query = url.search.slice(1)
  if (query === '') return []
  secrets.add(query)
  for (const pair of query.split('&')) {
    const separator = pair.indexOf('=')
    const name = pair.slice(0, separator)
    const raw = pair.slice(separator + 1)
    if (separator === -1 || raw === '' || publicParameters.test(name)) continue
    if (!secretParameters.has(name.toLowerCase()) && raw.length < 20) continue
    const [decoded = raw] = new URLSearchParams(pair).values()
    if (!isDate(decoded)) secrets.add(raw).add(decoded)
  }
  return [...secrets].filter(({ length }) => length >= shortestSecret)
}
