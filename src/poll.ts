/** When to ask again. */
import type { Client } from './client.ts'
import type { Clock, Deadline } from './clock.ts'
import type { Log } from './log.ts'

/** What waiting for a job takes, whichever job it is. */
export interface Polling {
  readonly client: Client
  readonly clock: Clock
  /** From 0 to 1. */
  readonly random: () => number
  readonly log: Log
  readonly deadline: Deadline
  readonly signal: AbortSignal
  readonly pollIntervalMs: number | undefined
}

const shortestDelayMs = 1_000
const longestDelayMs = 25_000

/**
 * How long to wait before the next look at a job. Without a fixed interval the wait is a quarter of the
 * time that has passed, from 1 s to 25 s: the end of a job is seen when at most a quarter more of its time
 * has passed, and an hour costs about 160 requests.
 *
 * @param fixedIntervalMs the user's own interval, which is kept to the letter
 * @param random from 0 to 1; spreads runs that started together by 10 % to each side
 */
export function nextPollDelayMs(
  elapsedMs: number,
  fixedIntervalMs: number | undefined,
  random: number,
): number {
  if (fixedIntervalMs !== undefined) return fixedIntervalMs
  const delayMs = Math.min(Math.max(elapsedMs / 4, shortestDelayMs), longestDelayMs)
  return delayMs * (0.9 + 0.2 * random)
}
