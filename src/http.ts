/** One request to the Admin API: its key, its deadline, its retries, and what its answer means. */
import type { Clock, Deadline } from './clock.ts'
import { Failure, type FailureCode } from './errors.ts'
import type { Log } from './log.ts'
import { type Network, NetworkFault, type NetworkReply } from './network.ts'
import {
  type Outcome,
  describeBody,
  describeEnding,
  outcomeOfNetworkFault,
  outcomeOfStatus,
  shapeProblem,
  silenceAdvice,
  unusable,
} from './outcome.ts'
import {
  type RetryPolicy,
  afterFailedTry,
  isFateUnknown,
  parseHttpDateMs,
  parseRetryAfterMs,
} from './retry.ts'
import { clean, shortestSecretLength } from './text.ts'
import { formatDuration } from './units.ts'

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
      const remainingMs = Math.min(
        deadline.remainingMs(),
        (operation.retry.maxTotalMs ?? Infinity) - elapsedMs,
      )
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
        const ending = describeEnding(decision.why, fault, remainingMs)
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
      const fault = { kind: 'hopeless', delivered: false } as const
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
      return await interpret(operation, { ...reply, headers: withoutKey(reply.headers) })
    } catch (error) {
      if (signal.aborted) throw inDoubt(operation, signal.reason)
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
  function redact(text: string): string {
    if (apiKey.length < shortestSecretLength) return text
    return text.replaceAll(apiKey, '***').replaceAll(encodeURIComponent(apiKey), '***')
  }

  function withoutKey(headers: NetworkReply['headers']): NetworkReply['headers'] {
    const entries = Object.entries(headers)
    return Object.fromEntries(
      entries.map(([name, value]) => [name, typeof value === 'string' ? redact(value) : value]),
    )
  }

  /** The strings of a body as they are once read, so that no way of escaping hides the key in one of them. */
  function parseJson(body: string): unknown {
    return JSON.parse(body, (_name, value: unknown) =>
      typeof value === 'string' ? redact(value) : value,
    )
  }

  /** An abort in the middle of a request that has an effect: nobody knows whether it had. */
  function inDoubt(operation: Operation<unknown>, reason: unknown): unknown {
    if (operation.retry.repeatable || !(reason instanceof Failure)) return reason
    return new Failure(
      reason.code,
      `${reason.message} The request to ${operation.purpose} was under way, and may be carried out all the same.`,
      { advice: operation.advice?.(reason.code, 1) },
    )
  }

  async function interpret<T>(operation: Operation<T>, reply: NetworkReply): Promise<Outcome<T>> {
    const { status, headers, body } = reply
    if (status !== 200 && status !== 201 && status !== 202) {
      const retryAfterMs = parseRetryAfterMs(headers['retry-after'], serverWallMs())
      return outcomeOfStatus(reply, parseJson, retryAfterMs)
    }
    const encoding = headers['content-encoding']
    if (encoding !== undefined && encoding !== 'identity') {
      return unusable(`the reply is encoded as ${clean(encoding, 20)}, which was not asked for`)
    }
    let json: unknown
    try {
      json = parseJson(body)
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

function endpoint(baseUrl: URL, path: readonly string[]): URL {
  const url = new URL(baseUrl)
  url.pathname = [url.pathname.replace(/\/+$/, ''), ...path.map(encodeURIComponent)].join('/')
  return url
}
