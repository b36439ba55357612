/** Progress in the log while Helm and the cluster are at work. */
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import { formatElapsed } from '../units.ts'
import type { Helm } from './helm.ts'
import type { Redactor } from './redactor.ts'
import { describeProgress } from './workloads.ts'

export interface Watch {
  /** Looks at the release every ten seconds while the work lasts. */
  during(work: () => Promise<void>): Promise<void>
  /** A line on every change, and the same one once a minute. */
  tell(line: string): void
}

export interface WatchDependencies {
  readonly helm: Helm
  readonly redactor: Redactor
  readonly clock: Clock
  readonly log: Log
  readonly signal: AbortSignal
  /** When the run began, on the clock. */
  readonly startedMs: number
}

const everyMs = 10_000
const longestSilenceMs = 60_000
const lookMs = 30_000

/** @param firstRevision what is older says nothing of this deployment */
export function createWatch(firstRevision: number, dependencies: WatchDependencies): Watch {
  const { helm, redactor, clock, log, signal, startedMs } = dependencies
  let logged = { line: '', atMs: clock.nowMs() }

  return {
    async during(work) {
      const ending = new AbortController()
      const watching = look(AbortSignal.any([signal, ending.signal]))
      try {
        await work()
      } finally {
        ending.abort()
        await watching
      }
    },
    tell,
  }

  function tell(line: string): void {
    const nowMs = clock.nowMs()
    if (line === logged.line && nowMs - logged.atMs < longestSilenceMs) return
    logged = { line, atMs: nowMs }
    log.info(`[${formatElapsed(nowMs - startedMs)}] ${line}`)
  }

  async function look(within: AbortSignal): Promise<void> {
    for (;;) {
      try {
        await clock.sleep(everyMs, within)
        const status = await helm.status({ signal: within, maxMs: lookMs })
        const isNew = status !== undefined && status.revision >= firstRevision
        tell(isNew ? describeProgress(status, redactor.redact) : 'Helm is at work')
      } catch (error) {
        if (within.aborted) return
        log.debug(redactor.ofError(error))
      }
    }
  }
}
