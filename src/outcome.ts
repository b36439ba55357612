/** What came of one try of a request, in the words of the user. */
import type { FailureCode } from './errors.ts'
import type { NetworkFault, NetworkFaultKind, NetworkReply } from './network.ts'
import type { Fault, GivingUp } from './retry.ts'
import { clean } from './text.ts'
import { formatBytes, formatDuration } from './units.ts'

/** What came of one try: a value, or a fault with its words. */
export type Outcome<T> =
  | { readonly ok: true; readonly value: T }
  | {
      readonly ok: false
      readonly fault: Fault
      readonly code: FailureCode
      readonly reason: string
      readonly serverSaid?: string | undefined
      readonly advice?: string | undefined
      readonly cause?: unknown
    }

/** A reply that no repetition would improve. */
export function unusable(reason: string): Outcome<never> {
  return { ok: false, fault: { kind: 'hopeless', delivered: true }, code: 'protocol', reason }
}

const codeOfNetworkFault: Record<NetworkFaultKind, FailureCode> = {
  connection: 'network',
  'body-cut': 'network',
  tls: 'tls',
  'not-tls': 'tls',
  proxy: 'proxy',
  'not-http': 'protocol',
  'body-too-large': 'protocol',
}

export const silenceAdvice =
  'Is `base-url` the address of the Admin API, and does a firewall or a proxy hold its answers back? If not, it has a problem of its own: try again later.'

/** By the code of the fault, where the advice of its kind does not fit. */
const networkAdvice: Partial<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'Its owner has to renew it. Check the clock of the runner, too.',
  CERT_NOT_YET_VALID: 'Check the clock of the runner.',
  ERR_TLS_CERT_ALTNAME_INVALID: 'Check the host name in `base-url`.',
}

export function outcomeOfNetworkFault(error: NetworkFault, host: string): Outcome<never> {
  const { kind, code, delivered, message } = error
  const fault: Fault = { kind: 'connection', code, delivered }
  const place = kind === 'proxy' ? `on the way to ${host}` : host
  const reason = `${message} (${place}, ${code})`
  const advice =
    kind === 'not-tls' ? 'Check the scheme and the port of `base-url`.' : networkAdvice[code]
  return { ok: false, fault, code: codeOfNetworkFault[kind], reason, advice, cause: error }
}

const codeOfStatus: Partial<Record<number, FailureCode>> = {
  400: 'bad-request',
  401: 'auth',
  403: 'forbidden',
  404: 'not-found',
  408: 'server',
  409: 'conflict',
  425: 'server',
  429: 'rate-limited',
}

const redirects = new Set([301, 302, 303, 307, 308])

export function outcomeOfStatus(
  reply: NetworkReply,
  parseJson: (body: string) => unknown,
  retryAfterMs: number | undefined,
): Outcome<never> {
  const { status, headers } = reply
  const fault: Fault = { kind: 'status', status, retryAfterMs }
  const code = codeOfStatus[status] ?? (status >= 500 && status < 600 ? 'server' : 'protocol')
  if (redirects.has(status)) {
    const target = URL.parse(headers.location ?? '')?.host
    const reason = `HTTP ${status}, a redirect${target ? ` to ${clean(target, 100)}` : ''}, which is not followed, since the key would go with it`
    const advice = 'Set `base-url` to the address where the Admin API itself answers.'
    return { ok: false, fault, code, reason, advice }
  }
  const serverSaid = errorText(reply, parseJson)
  const reason =
    serverSaid === undefined ? `HTTP ${status} with ${describeBody(reply)}` : `HTTP ${status}`
  return { ok: false, fault, code, reason, serverSaid }
}

/** The message of an error body, `{"error": string}` (admin-api.md, section 2.2), cleaned. */
function errorText(
  { body }: NetworkReply,
  parseJson: (body: string) => unknown,
): string | undefined {
  try {
    const json = parseJson(body)
    if (typeof json !== 'object' || json === null || !Object.hasOwn(json, 'error')) return undefined
    const { error } = json as { error: unknown }
    if (error === null || error === undefined) return undefined
    return clean(typeof error === 'string' ? error : JSON.stringify(error)) || undefined
  } catch {
    return undefined
  }
}

/** What a body is, not what it says: pages of proxies and gateways belong in no log. */
export function describeBody({ body, headers }: NetworkReply): string {
  if (body.trim() === '') return 'an empty body'
  const size = formatBytes(Buffer.byteLength(body))
  if (/^\s*<(?:!doctype|html|head|body)/i.test(body)) return `an HTML page (${size})`
  const type = clean(headers['content-type']?.split(';')[0] ?? '', 60)
  return type ? `a body of ${size} (${type})` : `a body of ${size}`
}

/** Where a reply departs from its schema, in a few words. */
export function shapeProblem(error: unknown): string {
  const issues: unknown = typeof error === 'object' && error && 'issues' in error && error.issues
  const first: unknown = Array.isArray(issues) ? issues[0] : undefined
  if (typeof first !== 'object' || first === null || !('message' in first)) {
    return clean(Error.isError(error) ? error.message : String(error), 120)
  }
  const path = 'path' in first && Array.isArray(first.path) ? first.path.join('.') : ''
  const expected = 'expected' in first ? String(first.expected) : 'another value'
  const article = /^[aeiou]/.test(expected) ? 'an' : 'a'
  if (path === '') return `it is not ${article} ${expected}`
  if (String(first.message).endsWith('received undefined')) return `\`${path}\` is missing`
  return clean(`\`${path}\` is not ${article} ${expected}`, 120)
}

/** Why there is no other try, as a sentence to add; empty where the fault says it all. */
export function describeEnding(why: GivingUp, fault: Fault, remainingMs: number): string {
  const askedMs = fault.kind === 'status' ? (fault.retryAfterMs ?? 0) : 0
  switch (why) {
    case 'enough':
    case 'permanent':
      return ''
    case 'deadline':
      return ' The time that is left does not allow another try.'
    case 'asked-too-long':
      return ` The service asks to wait ${formatDuration(askedMs)}, longer than the ${formatDuration(remainingMs)} that are left for it.`
  }
}
