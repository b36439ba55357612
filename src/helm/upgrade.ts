/** One upgrade: carried out by Helm, watched and judged by us, and taken back by us when it fails. */
import type { Clock } from '../clock.ts'
import { Failure, toFailure } from '../errors.ts'
import type { Log } from '../log.ts'
import { formatDuration, formatElapsed } from '../units.ts'
import { clusterCause, explainCluster } from './explain.ts'
import { type Helm, HelmError, type Upgrade, type Within, slowMark } from './helm.ts'
import type { Hiding } from './hide.ts'
import { type ReasonsDependencies, readReasons } from './reasons.ts'
import type { HelmReceipt, HelmStep } from './receipt.ts'
import {
  type ReleasePlace,
  type ReleaseState,
  lockedRelease,
  readDeployed,
  rollbackCommand,
} from './release.ts'
import { describeWorkloads, workloadsOf } from './workloads.ts'

export interface UpgradeRequest extends Omit<Upgrade, 'timeoutMs'>, ReleasePlace {
  /** What was there a moment ago. */
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
const shortestDelayMs = 500
const longestDelayMs = 5_000

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
  const leftMs = () => beganMs + helmTimeoutMs - clock.nowMs()
  const next = before.newestRevision + 1
  const what = before.newestRevision === 0 ? 'install' : 'upgrade'
  // The revisions that this run has made: its own, and that of its rollback. Another run may have slipped in between.
  const ours = new Set<number>()
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
        logProgress(line)
      } catch (error) {
        if (within.aborted) return
        logUnread(error)
      }
    }
  }

  function logProgress(line: string): void {
    log.info(`[${formatElapsed(clock.nowMs() - dependencies.startedMs)}] ${line}`)
  }

  function logUnread(error: unknown): void {
    log.debug(Error.isError(error) ? hiding.tell(error.message) : 'the release could not be read')
  }

  /** What is deployed must be ours and hold our link, whatever Helm says of it. */
  async function assertOurs(): Promise<void> {
    const deployed = await persistently((within) => readDeployed(helm, within))
    receipt.after = deployed
    const revision = deployed?.revision
    const values =
      revision === undefined
        ? undefined
        : await persistently((within) => helm.valuesOf(revision, within))
    const problem = request.valuesProblem(values)
    if (revision !== undefined && (problem === undefined || revision === next)) ours.add(revision)
    if (revision !== undefined && problem === undefined) return
    if (revision === next) {
      throw new Failure('deploy-failed', `Revision ${next} of ${release} ${problem ?? ''}.`, {
        advice:
          'Something between this action and Helm has changed the values: is the `helm` on this machine a wrapper?',
      })
    }
    throw new Failure(
      'deploy-failed',
      `Helm reported success, but what is deployed of ${release} is not of this run.`,
      { advice: 'Does something else deploy this release at the same time?' },
    )
  }

  /** One answer that does not come must not undo a deployment that went well. */
  async function persistently<T>(ask: (within: Within) => Promise<T>): Promise<T> {
    for (let delayMs = shortestDelayMs; ; delayMs = Math.min(2 * delayMs, longestDelayMs)) {
      try {
        return await ask({ signal, maxMs: quickMs })
      } catch (error) {
        if (!(error instanceof HelmError) || leftMs() <= 0) return explainCluster(error)
        logUnread(error)
        await clock.sleep(Math.min(delayMs, leftMs()), signal)
      }
    }
  }

  async function assertReady(): Promise<void> {
    let said = ''
    for (let delayMs = shortestDelayMs; ; delayMs = Math.min(2 * delayMs, longestDelayMs)) {
      const status = await persistently((within) => helm.status(within))
      const workloads = workloadsOf(status?.resources ?? {})
      if (workloads.every(({ isReady }) => isReady)) {
        if (workloads.length > 0) log.info(`Ready: ${describeWorkloads(workloads, tell)}`)
        return
      }
      if (leftMs() <= 0) {
        const waited = formatDuration(helmTimeoutMs)
        const content = `Helm was content, but revision ${String(receipt.after?.revision)} of ${release} was not ready within ${waited}.`
        throw new Failure('deploy-failed', content, { advice: notReadyAdvice })
      }
      const line = describeWorkloads(workloads, tell)
      if (line !== said) logProgress(line)
      said = line
      await clock.sleep(Math.min(delayMs, leftMs()), signal)
    }
  }

  /** Reads the reasons, puts things back, and gives the failure that tells of all of it. */
  async function undo(error: unknown): Promise<Failure> {
    const isCancelled = () => signal.aborted
    const failure = isCancelled() ? undefined : await undoAndExplain(error)
    if (failure && !isCancelled()) return failure
    // Also in the middle of a rollback. Helm has ended, since it is always waited for.
    const within = { signal: new AbortController().signal, maxMs: cancelledMs }
    await findOurs(within).catch(logUnread)
    const undone = await goBack(undefined, within)
    return new Failure('cancelled', `${(signal.reason as Failure).message} ${undone}`)
  }

  async function undoAndExplain(error: unknown): Promise<Failure> {
    const within = { signal, maxMs: quickMs }
    const isRace = error instanceof HelmError && lockedByAnother.test(error.raw)
    if (!isRace) await findOurs(within).catch(logUnread)
    if (ours.size > 0) receipt.reasons = await readReasons(dependencies, within)
    if (receipt.reasons.length > 0) log.details('What the cluster says', receipt.reasons)
    const changed = ours.size > 0
    const undone = await goBack(helmTimeoutMs, { signal, maxMs: helmTimeoutMs + graceMs })
    if (isRace) {
      const race = `Another operation on release ${release} began at the same moment. ${undone}`
      return lockedRelease(race, request, before.deployed)
    }
    return tellFailure(error instanceof HelmError ? error : toFailure(error), changed, undone)
  }

  /** The newest revision is ours when it is new and holds our link. */
  async function findOurs(within: Within): Promise<void> {
    const [newest] = await helm.history(within)
    if (!newest || newest.revision <= before.newestRevision || ours.has(newest.revision)) return
    const values = await helm.valuesOf(newest.revision, within)
    if (request.valuesProblem(values) === undefined) ours.add(newest.revision)
  }

  /**
   * Goes back to what was deployed before our revision.
   *
   * @param waitMs how long Helm waits for the former pods; undefined not to wait at all
   */
  async function goBack(waitMs: number | undefined, within: Within): Promise<string> {
    const asking = { ...within, maxMs: Math.min(within.maxMs, quickMs) }
    let command = before.deployed
      ? rollbackCommand(release, before.deployed.revision, namespace)
      : `helm uninstall ${release} -n ${namespace}`
    try {
      const history = await helm.history(asking)
      const newest = history[0]?.revision ?? 0
      if (newest <= before.newestRevision) return nothingChanged()
      if (!ours.has(newest)) {
        return `Meanwhile something else has made revision ${newest}, so nothing was rolled back.`
      }
      const first = Math.min(...ours)
      // What was deployed and is not any more is superseded; what failed stays failed.
      const former = history.find(
        ({ revision, status }) => revision < first && /^(?:deployed|superseded)$/.test(status),
      )?.revision
      if (former !== undefined) {
        command = rollbackCommand(release, former, namespace)
        log.info(`Rolling back to revision ${former}`)
        ours.add(newest + 1) // what Helm makes of a rollback
        await timed('rollback', () =>
          evenWithoutWatch(waitMs, (patienceMs) => helm.rollback(former, patienceMs, within)),
        )
        receipt.putBack = former
        const { rollbackWarning: warning } = request
        return `Rolled back to revision ${former}.${warning === undefined ? '' : ` ${warning}`}`
      }
      if (before.newestRevision > 0) {
        return 'The release was never deployed before, so there is nothing to roll back to; it is left as it is.'
      }
      log.info('Removing what was installed')
      await timed('rollback', () =>
        evenWithoutWatch(waitMs, (patienceMs) => helm.uninstall(patienceMs, within)),
      )
      return 'What was installed has been removed again.'
    } catch (error) {
      const said = error instanceof HelmError ? ` Helm said: "${error.said}".` : ''
      return `Putting it back failed as well; try \`${command}\`.${said}`
    } finally {
      await readAfter(asking)
    }
  }

  function nothingChanged(): string {
    const { deployed } = before
    if (!deployed) return 'Nothing has changed.'
    return `Nothing has changed: revision ${deployed.revision} is still deployed.`
  }

  /** An account that may not watch cannot wait either, on Helm 4; without waiting it can go back. */
  async function evenWithoutWatch(
    waitMs: number | undefined,
    work: (waitMs: number | undefined) => Promise<void>,
  ): Promise<void> {
    try {
      await work(waitMs)
    } catch (error) {
      const mayNotWatch = error instanceof HelmError && /cannot watch resource/i.test(error.raw)
      if (!mayNotWatch || waitMs === undefined) throw error
      // Helm may have done all but the waiting.
      await work(undefined).catch((again: unknown) => {
        if (!(again instanceof HelmError) || !/not found/.test(again.raw)) throw again
      })
    }
  }

  async function readAfter(within: Within): Promise<void> {
    try {
      receipt.after = await readDeployed(helm, within)
      receipt.isKnown = true
    } catch (error) {
      receipt.isKnown = false
      logUnread(error)
    }
  }

  /** @param changed whether the cluster has seen anything of it */
  function tellFailure(error: Failure | HelmError, changed: boolean, undone: string): Failure {
    const items = receipt.reasons.map((reason) => `\n- ${reason}`).join('')
    if (error instanceof Failure) {
      const { code, message, advice } = error
      return new Failure(code, `${message} ${undone}${items}`, { advice, cause: error })
    }
    const cause = clusterCause(error)
    const code = changed ? 'deploy-failed' : (cause?.code ?? 'deploy-failed')
    const said = `The ${what} of ${release} failed. Helm said: "${error.said}". ${undone}${items}`
    const advice = cause?.advice ?? (receipt.reasons.length > 0 ? notReadyAdvice : undefined)
    return new Failure(code, said, { advice, cause: error })
  }
}

const lockedByAnother = /another operation \(install\/upgrade\/rollback\) is in progress/

const notReadyAdvice =
  'Correct what keeps the pods from being ready, or raise `helm-timeout-minutes` if they only need longer.'
