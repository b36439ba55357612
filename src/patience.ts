/** Patience with one request that streams: it ends when no byte comes for too long, and with the time of the step. */
import type { Clock, Deadline } from './clock.ts'
import type { FailureCode } from './errors.ts'
import { NetworkFault } from './network.ts'
import type { Fault } from './retry.ts'
import { formatDuration } from './units.ts'

export interface Patience {
  /** Aborted when the patience or the run has ended. */
  readonly signal: AbortSignal
  readonly hasEnded: boolean
  /** What it was ended with, or an `AbortError`. */
  readonly reason: unknown
  /** Begins to count again, since a byte has come. */
  renew(): void
  /** Ends it, and with it what is left of the request. May be called again. */
  end(reason?: Error): void
  /** Why it has ended, in words. */
  describeEnd(host: string): string
}

export interface PatienceDependencies {
  readonly clock: Clock
  readonly deadline: Deadline
  /** That the deadline is over, in words; only one that is not of the whole step needs its own. */
  readonly overWords?: string | undefined
  /** Aborted when the run is cancelled. */
  readonly signal: AbortSignal
}

/**
 * Begins to count at once.
 *
 * @param maxSilenceMs no byte for so long is a lost connection
 */
export function createPatience(
  maxSilenceMs: number,
  { clock, deadline, overWords, signal }: PatienceDependencies,
): Patience {
  const ending = new AbortController()
  const stopDeadline = clock.timer(deadline.remainingMs(), end)
  let stopSilence = clock.timer(maxSilenceMs, end)

  return {
    signal: AbortSignal.any([signal, ending.signal]),
    get hasEnded() {
      return ending.signal.aborted
    },
    get reason() {
      return ending.signal.reason as unknown
    },
    renew() {
      stopSilence()
      stopSilence = clock.timer(maxSilenceMs, end)
    },
    end,
    describeEnd: (host) =>
      deadline.remainingMs() <= 0
        ? (overWords ?? 'the time of this step (`timeout-minutes`) is over')
        : `no byte for ${formatDuration(maxSilenceMs)} (${host})`,
  }

  function end(reason?: Error): void {
    stopSilence()
    stopDeadline()
    ending.abort(reason)
  }
}

/** A download that was interrupted. */
export interface LostConnection {
  readonly fault: Fault
  readonly code: FailureCode
  readonly reason: string
}

/** Why a download was interrupted: by our patience, or by the network. @throws the error when it is neither */
export function lostConnection(error: unknown, patience: Patience, host: string): LostConnection {
  if (patience.hasEnded) {
    return { fault: { kind: 'silence' }, code: 'timeout', reason: patience.describeEnd(host) }
  }
  if (!(error instanceof NetworkFault)) throw error
  const { kind, code, delivered, message } = error
  return {
    fault: { kind: 'connection', code, delivered },
    code: kind === 'tls' || kind === 'proxy' ? kind : 'network',
    reason: `${message} (${host})`,
  }
}
