/** One upgrade: carried out by Helm, watched and judged by us, and taken back by us when it fails. */
import type { Clock } from '../clock.ts'
import { Failure, toFailure } from '../errors.ts'
import type { Log } from '../log.ts'
import { formatDuration, formatElapsed } from '../units.ts'
import { clusterCause, explainCluster } from './explain.ts'
import { type Helm, HelmError, type Upgrade, slowMark } from './helm.ts'
import type { Hiding } from './hide.ts'
import { type ReasonsDependencies, readReasons } from './reasons.ts'
import type { HelmReceipt, HelmStep } from './receipt.ts'
import { type ReleaseState, lockedRelease, readDeployed, rollbackCommand } from './release.ts'
import { describeWorkloads, workloadsOf } from './workloads.ts'

export interface UpgradeRequest extends Omit<Upgrade, 'timeoutMs'> {
  readonly release: string
  readonly namespace: string
  /** What was there before. */
  readonly before: ReleaseState
  /** For Helm, and again for a rollback; our own judgement has what Helm leaves of it. */
  readonly helmTimeoutMs: number
  /** Whether values that were read back are ours; a word on what is wrong, or undefined. */
  readonly valuesProblem: (values: unknown) => string | undefined
  /** A sentence on what a rollback to the former revision means for its pods; undefined when nothing. */
  readonly rollbackWarning: string | undefined
}

export interface UpgradeDependencies extends ReasonsDependencies {
  readonly helm: Helm
  readonly hiding: Hiding
  readonly clock: Clock
  readonly log: Log
  readonly signal: AbortSignal
  /** When the run began, on the clock. */
  readonly startedMs: number
  readonly timed: <T>(step: HelmStep, work: () => Promise<T>) => Promise<T>
}

/** One question to the cluster. */
export const quickMs = 30_000
const watchEveryMs = 10_000
const longestSilenceMs = 60_000
/** Helm's own end comes first, since it names what was not ready. */
const graceMs = 30_000
/** All that a cancelled run has: the runner kills it ten seconds after the first signal. */
const cancelledMs = 4_000
const shortestReadyDelayMs = 500
const longestReadyDelayMs = 5_000

/**
 * Upgrades the release and waits until what it runs is ready. When that fails, reads what the cluster says,
 * and only then rolls back: to the revision that was deployed before, or to nothing.
 *
 * @throws Failure `deploy-failed`, `release-locked`, `cancelled`, or what was wrong before anything changed
 */
export async function upgrade(
  request: UpgradeRequest,
  dependencies: UpgradeDependencies,
  receipt: HelmReceipt,
): Promise<void> {
  const { helm, hiding, clock, log, signal, timed } = dependencies
  const { release, namespace, before, helmTimeoutMs } = request
  const tell = (text: string, maxLength: number) => hiding.tell(text, maxLength)
  const beganMs = clock.nowMs()
  const next = before.newestRevision + 1
  let newestOfOurs = next
  const what = before.newestRevision === 0 ? 'install' : 'upgrade'
  receipt.attempted = true
  log.info(`Helm ${what}: revision ${next}, within ${formatDuration(helmTimeoutMs)}`)
  try {
    await timed('upgrade', helmUpgrade)
    await assertOurs()
    await timed('readiness', assertReady)
  } catch (error) {
    throw await undo(error)
  }

  async function helmUpgrade(): Promise<void> {
    const watching = new AbortController()
    const watch = watchWorkloads(AbortSignal.any([signal, watching.signal]))
    try {
      const within = { signal, maxMs: helmTimeoutMs + graceMs }
      await helm.upgrade({ ...request, timeoutMs: helmTimeoutMs }, within).catch(tellSlow)
    } finally {
      watching.abort()
      await watch
    }
  }

  /** Its timeout bounds each hook and each wait; together they may take longer than there is time. */
  function tellSlow(error: unknown): never {
    if (!(error instanceof HelmError) || error.raw !== slowMark) throw error
    const waited = formatDuration(helmTimeoutMs)
    const slow = `The ${what} of ${release} was not done after ${waited}, and was ended.`
    throw new Failure('deploy-failed', slow, { advice: notReadyAdvice, cause: error })
  }

  /** A line on every change, and one a minute; what cannot be read is asked again. */
  async function watchWorkloads(within: AbortSignal): Promise<void> {
    let last = ''
    let lastMs = clock.nowMs()
    for (;;) {
      try {
        await clock.sleep(watchEveryMs, within)
        const status = await helm.status({ signal: within, maxMs: quickMs })
        const isNew = status !== undefined && status.revision >= next
        const line = isNew
          ? describeWorkloads(workloadsOf(status.resources), tell)
          : 'Helm is at work'
        const nowMs = clock.nowMs()
        if (line === last && nowMs - lastMs < longestSilenceMs) continue
        last = line
        lastMs = nowMs
        log.info(`[${formatElapsed(nowMs - dependencies.startedMs)}] ${line}`)
      } catch (error) {
        if (within.aborted) return
        log.debug(
          Error.isError(error) ? hiding.tell(error.message) : 'the release could not be read',
        )
      }
    }
  }

  /** The newest revision must be ours, deployed, and hold our link: whatever Helm says of it. */
  async function assertOurs(): Promise<void> {
    const within = { signal, maxMs: quickMs }
    const deployed = await readDeployed(helm, within).catch(explainCluster)
    receipt.after = deployed
    if (deployed?.revision !== next) {
      throw new Failure(
        'deploy-failed',
        `Helm reported success, but revision ${next} of ${release} is not what is deployed.`,
        { advice: 'Does something else deploy this release at the same time?' },
      )
    }
    const values = await helm.valuesOf(next, within).catch(explainCluster)
    const problem = request.valuesProblem(values)
    if (problem === undefined) return
    throw new Failure('deploy-failed', `Revision ${next} of ${release} ${problem}.`, {
      advice:
        'Something between this action and Helm has changed the values: is the `helm` on this machine a wrapper?',
    })
  }

  async function assertReady(): Promise<void> {
    let delayMs = shortestReadyDelayMs
    let said = ''
    for (;;) {
      const status = await helm.status({ signal, maxMs: quickMs }).catch(explainCluster)
      const workloads = workloadsOf(status?.resources ?? {})
      if (workloads.every(({ isReady }) => isReady)) {
        if (workloads.length > 0) log.info(`Ready: ${describeWorkloads(workloads, tell)}`)
        return
      }
      const nowMs = clock.nowMs()
      const leftMs = beganMs + helmTimeoutMs - nowMs
      if (leftMs <= 0) {
        const waited = formatDuration(helmTimeoutMs)
        throw new Failure(
          'deploy-failed',
          `Helm was content, but revision ${next} of ${release} was not ready within ${waited}.`,
          { advice: notReadyAdvice },
        )
      }
      const line = describeWorkloads(workloads, tell)
      if (line !== said) log.info(`[${formatElapsed(nowMs - dependencies.startedMs)}] ${line}`)
      said = line
      await clock.sleep(Math.min(delayMs, leftMs), signal)
      delayMs = Math.min(delayMs * 2, longestReadyDelayMs)
    }
  }

  /** Reads the reasons, puts things back, and gives the failure that tells of all of it. */
  async function undo(error: unknown): Promise<Failure> {
    const isCancelled = () => signal.aborted
    const failure = isCancelled() ? undefined : await undoAndExplain(error)
    if (failure && !isCancelled()) return failure
    // Also in the middle of a rollback. Helm has ended, since it is always waited for.
    const within = { signal: new AbortController().signal, maxMs: cancelledMs }
    receipt.undone = await goBack(undefined, within)
    return new Failure('cancelled', `${(signal.reason as Failure).message} ${receipt.undone}`)
  }

  async function undoAndExplain(error: unknown): Promise<Failure> {
    const within = { signal, maxMs: quickMs }
    const isOurs = (await helm.status(within).catch(() => undefined))?.revision === next
    if (isOurs) receipt.reasons = await readReasons(dependencies, within)
    if (receipt.reasons.length > 0) log.details('What the cluster says', receipt.reasons)
    receipt.undone = await timed('rollback', () =>
      goBack(helmTimeoutMs, { signal, maxMs: helmTimeoutMs + graceMs }),
    )
    const failure = error instanceof HelmError ? error : toFailure(error)
    return tellFailure(failure, isOurs, receipt.undone)
  }

  /** @param waitMs how long Helm waits for the former pods; undefined not to wait at all */
  async function goBack(
    waitMs: number | undefined,
    within: { readonly signal: AbortSignal; readonly maxMs: number },
  ): Promise<string> {
    const { deployed, newestRevision } = before
    const asking = { ...within, maxMs: Math.min(within.maxMs, quickMs) }
    let sentence: string
    try {
      const now = await helm.status(asking)
      if (!now || now.revision === newestRevision) {
        sentence = deployed
          ? `Nothing has changed: revision ${deployed.revision} is still deployed.`
          : 'Nothing has changed.'
      } else if (now.revision > newestOfOurs) {
        sentence = `Meanwhile something else has made revision ${now.revision}, so nothing was rolled back.`
      } else if (deployed) {
        log.info(`Rolling back to revision ${deployed.revision}`)
        newestOfOurs = now.revision + 1 // what Helm makes of a rollback
        await helm.rollback(deployed.revision, waitMs, within)
        const warning = request.rollbackWarning
        sentence = `Rolled back to revision ${deployed.revision}.${warning === undefined ? '' : ` ${warning}`}`
      } else if (newestRevision === 0) {
        log.info('Removing what was installed')
        await helm.uninstall(waitMs, within)
        sentence = 'What was installed has been removed again.'
      } else {
        sentence =
          'The release was never deployed before, so there is nothing to roll back to; it is left as it is.'
      }
    } catch (error) {
      const said = error instanceof HelmError ? ` Helm said: "${error.said}".` : ''
      const command = deployed
        ? rollbackCommand(release, deployed.revision, namespace)
        : `helm uninstall ${release} -n ${namespace}`
      sentence = `Putting it back failed as well; try \`${command}\`.${said}`
    }
    receipt.after = await readDeployed(helm, asking).catch(() => undefined)
    return sentence
  }

  /** @param changed whether the cluster has seen anything of it */
  function tellFailure(error: Failure | HelmError, changed: boolean, undone: string): Failure {
    const { reasons } = receipt
    const items = reasons.map((reason) => `\n- ${reason}`).join('')
    if (error instanceof Failure) {
      return new Failure(error.code, `${error.message} ${undone}${items}`, {
        advice: error.advice,
        cause: error,
      })
    }
    if (/another operation \(install\/upgrade\/rollback\) is in progress/.test(error.raw)) {
      const race = `Another operation on release ${release} began at the same moment. ${undone}`
      return lockedRelease(race, release, namespace, before.deployed)
    }
    const cause = clusterCause(error)
    return new Failure(
      changed ? 'deploy-failed' : (cause?.code ?? 'deploy-failed'),
      `The ${what} of ${release} failed. Helm said: "${error.said}". ${undone}${items}`,
      {
        advice: cause?.advice ?? (reasons.length > 0 ? notReadyAdvice : undefined),
        cause: error,
      },
    )
  }
}

const notReadyAdvice =
  'Correct what keeps the pods from being ready, or raise `helm-timeout-minutes` if they only need longer.'
