/** Time as an argument: half an hour of polling tests in milliseconds. */

export interface Clock {
  /** Monotonic milliseconds: for durations and deadlines, untouched by changes of the wall clock. */
  nowMs(): number
  /** Milliseconds since 1970: for dates that people or other machines read. */
  wallMs(): number
  /** Resolves after the delay; rejects with the signal's reason as soon as it is aborted. */
  sleep(delayMs: number, signal: AbortSignal): Promise<void>
  /** Calls back after the delay, unless the returned function was called before. */
  timer(delayMs: number, onElapsed: () => void): () => void
}

/** `setTimeout` fires at once for delays of 2^31 ms and more. */
const longestDelayMs = 2 ** 30

export const systemClock: Clock = {
  nowMs: () => performance.now(),
  wallMs: () => Date.now(),
  sleep(delayMs, signal) {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted()
      const stop = systemClock.timer(delayMs, () => {
        signal.removeEventListener('abort', onAbort)
        resolve()
      })
      const onAbort = () => {
        stop()
        reject(signal.reason as Error)
      }
      signal.addEventListener('abort', onAbort, { once: true })
    })
  },
  timer(delayMs, onElapsed) {
    const timeout = setTimeout(onElapsed, Math.min(Math.max(0, delayMs), longestDelayMs))
    return () => {
      clearTimeout(timeout)
    }
  },
}

/** The moment at which a run gives up. */
export interface Deadline {
  remainingMs(): number
}

/** A deadline that many milliseconds from now. */
export function deadlineIn(durationMs: number, clock: Clock): Deadline {
  const endMs = clock.nowMs() + durationMs
  return { remainingMs: () => Math.max(0, endMs - clock.nowMs()) }
}

/** Carries out a piece of work and notes under its name how many milliseconds it took, also when it fails. */
export async function measured<Name, T>(
  name: Name,
  timesMs: Map<Name, number>,
  clock: Clock,
  work: () => Promise<T>,
): Promise<T> {
  const startedMs = clock.nowMs()
  try {
    return await work()
  } finally {
    timesMs.set(name, clock.nowMs() - startedMs)
  }
}

/** A deadline that begins to run when a signal is aborted. */
export function deadlineAfter(signal: AbortSignal, durationMs: number, clock: Clock): Deadline {
  let deadline: Deadline = { remainingMs: () => durationMs }
  signal.addEventListener('abort', () => {
    deadline = deadlineIn(durationMs, clock)
  })
  return { remainingMs: () => deadline.remainingMs() }
}
