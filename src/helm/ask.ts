/** Questions to a cluster that may stumble just now, which is when upgrades fail. */
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import { clusterCause } from './explain.ts'
import { HelmError } from './helm.ts'

export interface AskDependencies {
  readonly clock: Clock
  readonly log: Log
  readonly signal: AbortSignal
}

const shortestDelayMs = 500
const longestDelayMs = 5_000
/** What no repetition heals. */
const lastingCodes = new Set(['auth', 'forbidden', 'config', 'tls'])

/**
 * Asks until there is an answer.
 *
 * @param untilMs on the clock; one try is made in any case
 * @throws HelmError the last one, at once when it will not pass
 */
export async function askPersistently<T>(
  ask: () => Promise<T>,
  untilMs: number,
  { clock, log, signal }: AskDependencies,
): Promise<T> {
  for (let delayMs = shortestDelayMs; ; delayMs = Math.min(2 * delayMs, longestDelayMs)) {
    try {
      return await ask()
    } catch (error) {
      if (!(error instanceof HelmError) || clock.nowMs() >= untilMs) throw error
      if (lastingCodes.has(clusterCause(error)?.code ?? '')) throw error
      const line = `The cluster did not answer \`${error.command}\`, and is asked again: ${error.said}`
      if (delayMs === shortestDelayMs) log.info(line)
      else log.debug(line)
      await clock.sleep(delayMs, signal)
    }
  }
}
