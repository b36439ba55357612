/** Presigned links: where they may lead, how long they work, and what of them is secret. */
import { BlockList, isIP } from 'node:net'
import { clean, shortestSecretLength } from './text.ts'

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
export function signedExpiryMs(url: URL): number | undefined {
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
  return [...secrets].filter(({ length }) => length >= shortestSecretLength)
}
