/** The pure policy of repeating requests: what is worth another try, and how long to wait before it. */

/** Why one try of a request did not give an answer that we can use. */
export type Fault =
  /** The service answered, with a status other than success. */
  | { readonly kind: 'status'; readonly status: number; readonly retryAfterMs?: number | undefined }
  /** The connection failed or was lost; `delivered` when the request may have reached the service. */
  | { readonly kind: 'connection'; readonly code: string; readonly delivered: boolean }
  /** No whole reply within the time of one try. */
  | { readonly kind: 'silence' }
  /** A success whose body cannot be read as an answer of the API. */
  | { readonly kind: 'unreadable' }
  /** What no other try would change; `delivered` when the request reached the service. */
  | { readonly kind: 'hopeless'; readonly delivered: boolean }

/** How persistent an operation is. */
export interface RetryPolicy {
  /** Tries in a row before giving up … */
  readonly maxTries: number
  /** … but never before this long without one good answer. */
  readonly minPersistenceMs: number
  /** No try begins later than this after the first. */
  readonly maxTotalMs?: number
  /** False where repeating a request that was carried out unseen has an effect: then it is repeated once. */
  readonly repeatable: boolean
  /** A status that for this long means "not yet" rather than "no". */
  readonly notYet?: { readonly status: number; readonly graceMs: number }
}

export interface FailedTry {
  readonly fault: Fault
  /** Tries so far, this one included. */
  readonly tries: number
  /** Of those, the tries whose fate is unknown: the service may have carried them out. */
  readonly unknownFates: number
  /** Since the first try began. */
  readonly elapsedMs: number
  /** Until the run gives up. */
  readonly remainingMs: number
  /** From 0 to 1. */
  readonly random: number
}

export type RetryDecision =
  | { readonly retry: true; readonly delayMs: number }
  | { readonly retry: false; readonly why: GivingUp }

/** Why there is no other try. */
export type GivingUp = 'permanent' | 'enough' | 'deadline' | 'asked-too-long'

/** Statuses that heal by themselves; 520 to 524 and 530 are those of a CDN whose origin is unwell. */
const transientStatuses = new Set([408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 530])

const transientCodes = new Set([
  'ECONNRESET',
  'ECONNREFUSED',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EAI_AGAIN',
  'ENOTFOUND',
])

/** Faults that seldom heal get two more tries, an answer that is no HTTP at all one. */
function maxTriesFor(fault: Fault, policy: RetryPolicy): number {
  if (fault.kind === 'unreadable') return 3
  if (fault.kind === 'connection' && fault.code === 'ENOTFOUND') return 3
  if (fault.kind === 'connection' && fault.code.startsWith('HPE_')) return 2
  return policy.maxTries
}

function isTransient(fault: Fault): boolean {
  switch (fault.kind) {
    case 'status':
      return transientStatuses.has(fault.status)
    case 'connection':
      // A code of three digits is the answer of a proxy that was asked for a tunnel.
      return transientCodes.has(fault.code) || /^HPE_|^5\d\d$/.test(fault.code)
    case 'silence':
    case 'unreadable':
      return true
    case 'hopeless':
      return false
  }
}

/** Whether the service may have carried out the request although we saw no answer that says so. */
export function isFateUnknown(fault: Fault): boolean {
  switch (fault.kind) {
    case 'status':
      return fault.status !== 429 && transientStatuses.has(fault.status)
    case 'connection':
    case 'hopeless':
      return fault.delivered
    case 'silence':
    case 'unreadable':
      return true
  }
}

/** Decides what follows a failed try. Nothing but its arguments counts. */
export function afterFailedTry(policy: RetryPolicy, failed: FailedTry): RetryDecision {
  const { fault, tries, elapsedMs, remainingMs } = failed
  const isNotYet =
    fault.kind === 'status' &&
    fault.status === policy.notYet?.status &&
    elapsedMs < policy.notYet.graceMs
  if (!isNotYet && !isTransient(fault)) return { retry: false, why: 'permanent' }

  const retryAfterMs = fault.kind === 'status' ? fault.retryAfterMs : undefined
  if (retryAfterMs !== undefined && retryAfterMs >= remainingMs) {
    return { retry: false, why: 'asked-too-long' }
  }

  if (!policy.repeatable && failed.unknownFates > 1) return { retry: false, why: 'enough' }
  // Starts are counted by the hour: without a word on when to come back, a third request only costs.
  const limitedBlindly =
    !policy.repeatable && fault.kind === 'status' && fault.status === 429 && !retryAfterMs
  const maxTries = limitedBlindly ? 2 : maxTriesFor(fault, policy)
  const persistent =
    isNotYet || (maxTries === policy.maxTries && elapsedMs < policy.minPersistenceMs)
  if (tries >= maxTries && !persistent) return { retry: false, why: 'enough' }

  const delayMs = Math.max(backoffMs(fault, tries, failed.random), retryAfterMs ?? 0)
  if (delayMs >= remainingMs) return { retry: false, why: 'deadline' }
  return { retry: true, delayMs }
}

/** Exponential backoff with equal jitter: half of the delay is fixed, half is random. */
function backoffMs(fault: Fault, tries: number, random: number): number {
  const throttled = fault.kind === 'status' && (fault.status === 429 || fault.status === 503)
  const firstMs = throttled ? 5_000 : 1_000
  const longestMs = throttled ? 60_000 : 30_000
  const delayMs = Math.min(firstMs * 2 ** Math.min(tries - 1, 10), longestMs)
  return delayMs / 2 + (delayMs / 2) * random
}

/**
 * Reads a `Retry-After` header (RFC 9110, section 10.2.3): whole seconds or an IMF-fixdate. Anything else,
 * such as `-5`, `1e9` or `5, 5`, counts as absent.
 *
 * @param serverWallMs the server's own time, from its `Date` header, in epoch milliseconds
 * @returns milliseconds from now, at least 0
 */
export function parseRetryAfterMs(
  value: string | undefined,
  serverWallMs: number,
): number | undefined {
  if (value === undefined) return undefined
  const text = value.trim()
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000
  const dateMs = parseHttpDateMs(text)
  return dateMs === undefined ? undefined : Math.max(0, dateMs - serverWallMs)
}

/** Reads an IMF-fixdate (RFC 9110, section 5.6.7) as epoch milliseconds. */
export function parseHttpDateMs(value: string | undefined): number | undefined {
  const imfFixdate =
    /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d{2}:\d{2}:\d{2} GMT$/
  if (value === undefined || !imfFixdate.test(value)) return undefined
  const dateMs = Date.parse(value)
  return Number.isNaN(dateMs) ? undefined : dateMs
}
