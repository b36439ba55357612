/** One attempt to upgrade: what is asked for, what it works with, and what is known of its revisions. */
import type { Deadline } from '../clock.ts'
import type { Upgrade } from './helm.ts'
import type { ReasonsDependencies } from './reasons.ts'
import type { HelmStep } from './receipt.ts'
import type { ReleasePlace, ReleaseState } from './release.ts'
import type { WatchDependencies } from './watch.ts'

export interface UpgradeRequest extends Omit<Upgrade, 'timeoutMs'>, ReleasePlace {
  /** What was there a moment ago. */
  readonly before: ReleaseState
  /** For Helm, and again for a rollback; our own judgement has what Helm leaves of it. */
  readonly helmTimeoutMs: number
  /** Whether values that were read back are ours; a word on what is wrong, or undefined. */
  readonly valuesProblem: (values: unknown) => string | undefined
  /** A sentence on what going back to the former revision means for its pods now; undefined when nothing. */
  readonly rollbackWarning: () => string | undefined
}

export interface UpgradeDependencies extends ReasonsDependencies, WatchDependencies {
  readonly timed: <T>(step: HelmStep, work: () => Promise<T>) => Promise<T>
}

export interface Attempt {
  readonly request: UpgradeRequest
  readonly what: 'install' | 'upgrade'
  /**
   * Its own revision, and that of its rollback. Another run may have slipped in between, and with a mirror its link is
   * the same.
   */
  readonly ours: Set<number>
  /** When it began, in epoch milliseconds. */
  readonly beganWallMs: number
  /** Whether `helm upgrade` has ended well. */
  helmHasSucceeded: boolean
  /** All the time to put things back, from the signal that cancels the run, the end of Helm included. */
  readonly goodbye: Deadline
}

/** One question to the cluster. */
export const quickMs = 30_000
/** Helm's own end comes first, since it names what was not ready. */
export const graceMs = 30_000
/** For reading what has become of a deployment, also when Helm has used up its time. */
export const readingMs = 30_000

export const notReadyAdvice =
  'Correct what keeps it from being ready, or raise `helm-timeout-minutes` if it only needs longer.'
