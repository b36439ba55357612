/** One request to the Admin API: its key, its deadline, its retries, and what its answer means. */
import type { Clock, Deadline } from './clock.ts'
import { Failure, type FailureCode } from './errors.ts'
import type { Log } from './log.ts'
import { type Network, NetworkFault, type NetworkFaultKind, type NetworkReply } from './network.ts'
import {
  type Fault,
  type RetryPolicy,
  afterFailedTry,
  isFateUnknown,
  parseHttpDateMs,
  parseRetryAfterMs,
} from './retry.ts'
import { clean } from './text.ts'
import { formatBytes, formatDuration } from './units.ts'

/** An endpoint of the API with everything that its request needs. */
export interface Operation<T> {
  /** As an infinitive, for "Could not …". */
  readonly purpose: string
  readonly method: 'GET' | 'POST'
  /** Below the base URL; the parts are encoded. */
  readonly path: readonly string[]
  readonly body?: unknown
  /** How long one try may take in total: connecting, sending, waiting and reading. */
  readonly maxTryMs: number
  readonly retry: RetryPolicy
  /** Makes a value of the parsed JSON; throws when it does not have the shape. */
  readonly decode: (json: unknown) => Promise<T>
  /** Advice better than the general one, given how many tries the service may have carried out unseen. */
  readonly advice?: (code: FailureCode, unknownFates: number) => string | undefined
}

export interface Http {
  /**
   * Sends a request and repeats it as its policy says. Rejects with a {@link Failure}, or with the
   * reason of the run's signal.
   */
  request<T>(operation: Operation<T>): Promise<T>
  /** The service's own time in epoch milliseconds, as its last `Date` header tells, else this machine's. */
  serverWallMs(): number
}

export interface HttpDependencies {
  readonly baseUrl: URL
  readonly apiKey: string
  readonly network: Network
  readonly clock: Clock
  /** From 0 to 1. */
  readonly random: () => number
  readonly log: Log
  readonly deadline: Deadline
  readonly signal: AbortSignal
}

const maxJsonBytes = 1024 * 1024
const tolerableSkewMs = 120_000
/** Shorter ones are warned about (inputs.ts). */
const shortestKey = 16

export function createHttp(dependencies: HttpDependencies): Http {
  const { baseUrl, apiKey, network, clock, log, deadline, signal } = dependencies
  let serverDate: { wallMs: number; atMs: number } | undefined
  let skewReported = false

  return { request, serverWallMs }

  async function request<T>(operation: Operation<T>): Promise<T> {
    const startedMs = clock.nowMs()
    let unknownFates = 0
    for (let tries = 1; ; tries += 1) {
      const outcome = await tryOnce(operation)
      if (outcome.ok) return outcome.value

      const { fault } = outcome
      if (isFateUnknown(fault)) unknownFates += 1
      const elapsedMs = clock.nowMs() - startedMs
      const remainingMs = deadline.remainingMs()
      const decision = afterFailedTry(operation.retry, {
        fault,
        tries,
        unknownFates,
        elapsedMs,
        remainingMs,
        random: dependencies.random(),
      })
      const { code, reason, serverSaid } = outcome
      if (!decision.retry) {
        const askedMs = fault.kind === 'status' ? (fault.retryAfterMs ?? 0) : 0
        const ending = {
          enough: '',
          permanent: '',
          deadline: ' The time of this step (`timeout-minutes`) does not allow another try.',
          'asked-too-long': ` The service asks to wait ${formatDuration(askedMs)}, longer than the ${formatDuration(remainingMs)} that this step has left.`,
        }[decision.why]
        const doubt =
          operation.retry.repeatable || unknownFates === 0 || code === 'conflict'
            ? ''
            : ' The service may have carried it out all the same.'
        throw new Failure(code, `Could not ${operation.purpose}: ${reason}.${ending}${doubt}`, {
          serverSaid,
          tried: tries > 1 ? `${tries} tries in ${formatDuration(elapsedMs)}` : undefined,
          advice: outcome.advice ?? operation.advice?.(code, unknownFates),
          cause: outcome.cause,
        })
      }

      if (!operation.retry.repeatable && isFateUnknown(fault)) {
        log.warning(
          `It is not known whether the service received the request to ${operation.purpose} (${reason}). It is sent once more: a second export may be running.`,
        )
      }
      log.details(
        `Could not ${operation.purpose} yet: ${reason}; next try in ${formatDuration(decision.delayMs)}`,
        [
          `Try ${tries}, ${formatDuration(elapsedMs)} after the first began`,
          ...(serverSaid === undefined ? [] : [`The service said: "${serverSaid}"`]),
        ],
      )
      await clock.sleep(decision.delayMs, signal)
    }
  }

  async function tryOnce<T>(operation: Operation<T>): Promise<Outcome<T>> {
    signal.throwIfAborted()
    const patience = new AbortController()
    const tryMs = Math.min(operation.maxTryMs, deadline.remainingMs())
    if (tryMs <= 0) {
      const reason = 'the time of this step (`timeout-minutes`) is over'
      const fault: Fault = { kind: 'connection', code: 'OUT_OF_TIME', delivered: false }
      return { ok: false, fault, code: 'timeout', reason }
    }
    const stopTimer = clock.timer(tryMs, () => {
      patience.abort()
    })
    try {
      const reply = await network(
        {
          method: operation.method,
          url: endpoint(baseUrl, operation.path),
          // A fresh object each time: the client writes into it.
          headers: {
            authorization: `Bearer ${apiKey}`,
            accept: 'application/json',
            ...(operation.body === undefined ? {} : { 'content-type': 'application/json' }),
          },
          ...(operation.body === undefined ? {} : { body: JSON.stringify(operation.body) }),
          maxBodyBytes: maxJsonBytes,
        },
        AbortSignal.any([signal, patience.signal]),
      )
      noteServerDate(reply)
      return await interpret(operation, { ...reply, body: withoutKey(reply.body) })
    } catch (error) {
      signal.throwIfAborted()
      if (patience.signal.aborted) {
        return {
          ok: false,
          fault: { kind: 'silence' },
          code: 'timeout',
          reason: `${baseUrl.host} sent no whole reply within ${formatDuration(tryMs)}`,
          ...(tryMs < operation.maxTryMs ? {} : { advice: silenceAdvice }),
        }
      }
      if (error instanceof NetworkFault) return outcomeOfNetworkFault(error, baseUrl.host)
      throw error
    } finally {
      stopTimer()
    }
  }

  /** Whatever the service echoes, our key is not printed; a word of few letters might be anything else. */
  function withoutKey(text: string): string {
    return apiKey.length < shortestKey ? text : text.replaceAll(apiKey, '***')
  }

  async function interpret<T>(operation: Operation<T>, reply: NetworkReply): Promise<Outcome<T>> {
    const { status, headers, body } = reply
    if (status !== 200 && status !== 201 && status !== 202) {
      const retryAfterMs = parseRetryAfterMs(headers['retry-after'], serverWallMs())
      return outcomeOfStatus(reply, retryAfterMs)
    }
    const encoding = headers['content-encoding']
    if (encoding !== undefined && encoding !== 'identity') {
      return unusable(`the reply is encoded as ${clean(encoding, 20)}, which was not asked for`)
    }
    let json: unknown
    try {
      json = JSON.parse(body)
    } catch {
      const reason = `the reply is not JSON but ${describeBody(reply)}`
      return { ok: false, fault: { kind: 'unreadable' }, code: 'protocol', reason }
    }
    try {
      return { ok: true, value: await operation.decode(json) }
    } catch (error) {
      const reason = `the reply is JSON, but not as the Admin API writes it (${shapeProblem(error)})`
      // A start that was answered oddly was carried out: repeating it would only start another.
      return operation.retry.repeatable
        ? { ok: false, fault: { kind: 'unreadable' }, code: 'protocol', reason }
        : unusable(reason)
    }
  }

  function noteServerDate(reply: NetworkReply): void {
    const wallMs = parseHttpDateMs(reply.headers.date)
    if (wallMs === undefined) return
    serverDate = { wallMs, atMs: clock.nowMs() }
    const skewMs = wallMs - clock.wallMs()
    if (Math.abs(skewMs) <= tolerableSkewMs || skewReported) return
    skewReported = true
    const direction = skewMs > 0 ? 'behind' : 'ahead of'
    log.warning(
      `The clock of this runner is ${formatDuration(Math.abs(skewMs))} ${direction} that of the Admin API; times are reckoned by the API's clock.`,
    )
  }

  function serverWallMs(): number {
    if (serverDate === undefined) return clock.wallMs()
    return serverDate.wallMs + (clock.nowMs() - serverDate.atMs)
  }
}

type Outcome<T> =
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

function endpoint(baseUrl: URL, path: readonly string[]): URL {
  const url = new URL(baseUrl)
  url.pathname = [url.pathname.replace(/\/+$/, ''), ...path.map(encodeURIComponent)].join('/')
  return url
}

/** A reply that no repetition would improve. */
function unusable(reason: string): Outcome<never> {
  return {
    ok: false,
    fault: { kind: 'connection', code: 'UNUSABLE', delivered: true },
    code: 'protocol',
    reason,
  }
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

const silenceAdvice =
  'Is `base-url` the address of the Admin API, and does a firewall or a proxy hold its answers back? If not, it has a problem of its own: try again later.'

/** By the code of the fault, where the advice of its kind does not fit. */
const networkAdvice: Partial<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'Its owner has to renew it. Check the clock of the runner, too.',
  CERT_NOT_YET_VALID: 'Check the clock of the runner.',
  ERR_TLS_CERT_ALTNAME_INVALID: 'Check the host name in `base-url`.',
}

function outcomeOfNetworkFault(error: NetworkFault, host: string): Outcome<never> {
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

function outcomeOfStatus(reply: NetworkReply, retryAfterMs: number | undefined): Outcome<never> {
  const { status, headers } = reply
  const fault: Fault = { kind: 'status', status, retryAfterMs }
  const code = codeOfStatus[status] ?? (status >= 500 && status < 600 ? 'server' : 'protocol')
  if (status >= 300 && status < 400) {
    const target = URL.parse(headers.location ?? '')?.host
    const reason = `HTTP ${status}, a redirect${target ? ` to ${clean(target, 100)}` : ''}, which is not followed, since the key would go with it`
    const advice = 'Set `base-url` to the address where the Admin API itself answers.'
    return { ok: false, fault, code, reason, advice }
  }
  const serverSaid = errorText(reply)
  const reason =
    serverSaid === undefined ? `HTTP ${status} with ${describeBody(reply)}` : `HTTP ${status}`
  return { ok: false, fault, code, reason, serverSaid }
}

/** The message of an error body, `{"error": string}` (admin-api.md, section 2.2), cleaned. */
function errorText({ body }: NetworkReply): string | undefined {
  try {
    const json: unknown = JSON.parse(body)
    if (typeof json !== 'object' || json === null || !Object.hasOwn(json, 'error')) return undefined
    const { error } = json as { error: unknown }
    if (error === null || error === undefined) return undefined
    return clean(typeof error === 'string' ? error : JSON.stringify(error)) || undefined
  } catch {
    return undefined
  }
}

/** What a body is, not what it says: pages of proxies and gateways belong in no log. */
function describeBody({ body, headers }: NetworkReply): string {
  if (body.trim() === '') return 'an empty body'
  const size = formatBytes(Buffer.byteLength(body))
  if (/^\s*<(?:!doctype|html|head|body)/i.test(body)) return `an HTML page (${size})`
  const type = clean(headers['content-type']?.split(';')[0] ?? '', 60)
  return type ? `a body of ${size} (${type})` : `a body of ${size}`
}

/** Where a reply departs from its schema, in a few words. */
function shapeProblem(error: unknown): string {
  const issues: unknown = typeof error === 'object' && error && 'issues' in error && error.issues
  const first: unknown = Array.isArray(issues) ? issues[0] : undefined
  if (typeof first !== 'object' || first === null || !('message' in first)) {
    return clean(Error.isError(error) ? error.message : String(error), 120)
  }
  const path = 'path' in first && Array.isArray(first.path) ? first.path.join('.') : ''
  return clean(`${path === '' ? 'the whole' : path}: ${String(first.message)}`, 120)
}
