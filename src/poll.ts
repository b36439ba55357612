/** When to ask again. */

const shortestDelayMs = 2_000
const longestDelayMs = 30_000

/**
 * How long to wait before the next look at a job. Without a fixed interval the wait is a quarter of the
 * time that has passed, from 2 s to 30 s: a job of one minute is seen to end within some seconds, and one
 * of an hour costs about 130 requests.
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
