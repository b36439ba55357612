/** One upgrade: carried out by Helm, watched and judged by us, and taken back by us when it fails. */
import type { Clock } from '../clock.ts'
import { Failure, toFailure } from '../errors.ts'
import type { Log } from '../log.ts'
import { formatDuration, formatElapsed } from '../units.ts'
import { clusterCause, explainCluster } from './explain.ts'
import { type Helm, HelmError, type Revision, type Upgrade, type Within, slowMark } from './helm.ts'
import type { Hiding } from './hide.ts'
import { type ReasonsDependencies, readReasons } from './reasons.ts'
import type { HelmReceipt, HelmStep } from './receipt.ts'
import {
  type DeployedRevision,
  type ReleasePlace,
  type ReleaseState,
  lockedRelease,
  readDeployed,
  wayBackCommand,
} from './release.ts'
import { describeProgress, describeWorkloads, workloadsOf } from './workloads.ts'

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
/** All that a cancelled run has to put things back: the runner kills it ten seconds after the first signal. */
const cancelledMs = 6_000
/** For reading what has become of a deployment, also when Helm has used up its time. */
const readingMs = 30_000
const readingTries = 3
const rereadMs = 1_000
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
  // The revisions that this run has made: its own, and that of its rollback. Another run may have slipped in between,
  // and with a mirror its link is the same.
  const ours = new Set<number>()
  let helmHasSucceeded = false
  let logged = { line: '', atMs: beganMs }
  receipt.attempted = true
  log.info(`Helm ${what}: revision ${next}, within ${formatDuration(helmTimeoutMs)}`)
  try {
    await timed('upgrade', helmUpgrade)
    helmHasSucceeded = true
    await assertOurs()
    await timed('readiness', assertReady)
  } catch (error) {
    throw await undo(error)
  }

  function helmUpgrade(): Promise<void> {
    const within = { signal, maxMs: helmTimeoutMs + graceMs }
    return watched(() =>
      helm.upgrade({ ...request, timeoutMs: helmTimeoutMs }, within).catch(tellSlow),
    )
  }

  /** Tells of the workloads while Helm is at work. */
  async function watched(work: () => Promise<void>): Promise<void> {
    const watching = new AbortController()
    const watch = watchWorkloads(AbortSignal.any([signal, watching.signal]))
    try {
      await work()
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

  async function watchWorkloads(within: AbortSignal): Promise<void> {
    for (;;) {
      try {
        await clock.sleep(watchEveryMs, within)
        const status = await helm.status({ signal: within, maxMs: quickMs })
        const isNew = status !== undefined && status.revision >= next
        logProgress(isNew ? describeProgress(status, tell) : 'Helm is at work')
      } catch (error) {
        if (within.aborted) return
        logUnread(error)
      }
    }
  }

  /** A line on every change, and one a minute. */
  function logProgress(line: string): void {
    const nowMs = clock.nowMs()
    if (line === logged.line && nowMs - logged.atMs < longestSilenceMs) return
    logged = { line, atMs: nowMs }
    log.info(`[${formatElapsed(nowMs - dependencies.startedMs)}] ${line}`)
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
    if (revision !== undefined && problem === undefined) {
      if (revision > next) receipt.before = await persistently(readBetween)
      return
    }
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

  /** What another run has deployed between the last look and our revision is what ours has replaced. */
  async function readBetween(within: Within): Promise<DeployedRevision | undefined> {
    const history = await helm.history(within)
    const former = formerRevision(history)
    const found = history.find(({ revision }) => revision === former)
    if (!found || former === before.deployed?.revision) return before.deployed
    const { revision, updated } = found
    return { revision, updated, chart: await helm.chartOf(revision, within) }
  }

  /** One answer that does not come must not undo a deployment that went well. */
  async function persistently<T>(ask: (within: Within) => Promise<T>): Promise<T> {
    const untilMs = clock.nowMs() + Math.max(leftMs(), readingMs)
    for (let delayMs = shortestDelayMs; ; delayMs = Math.min(2 * delayMs, longestDelayMs)) {
      try {
        return await ask({ signal, maxMs: quickMs })
      } catch (error) {
        const isOver = clock.nowMs() >= untilMs
        if (!(error instanceof HelmError) || isOver) return explainCluster(error)
        logUnread(error)
        await clock.sleep(delayMs, signal)
      }
    }
  }

  async function assertReady(): Promise<void> {
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
      logProgress(describeWorkloads(workloads, tell))
      await clock.sleep(Math.min(delayMs, leftMs()), signal)
    }
  }

  /** Reads the reasons, puts things back, and gives the failure that tells of all of it. */
  async function undo(error: unknown): Promise<Failure> {
    const isCancelled = () => signal.aborted
    const failure = isCancelled() ? undefined : await undoAndExplain(error)
    if (failure && !isCancelled()) return failure
    // Also in the middle of a rollback. Helm has ended, since it is always waited for.
    const undone = await goBackAtOnce()
    return new Failure('cancelled', `${(signal.reason as Failure).message} ${undone}`)
  }

  async function undoAndExplain(error: unknown): Promise<Failure> {
    const within = { signal, maxMs: quickMs }
    const isRace = error instanceof HelmError && lockedByAnother.test(error.raw)
    let undone: string
    let isPending = false
    try {
      const history = await again(() => helm.history(within))
      isPending = history[0]?.status.startsWith('pending-') === true
      const newest = history[0]
      if (!isRace && newest && mayBeOurs(newest)) {
        if (await again(() => holdsOurs(newest.revision, within))) ours.add(newest.revision)
      }
      if (ours.size > 0) receipt.reasons = await readReasons(dependencies, within)
      if (receipt.reasons.length > 0) log.details('What the cluster says', receipt.reasons)
      undone = await goBack(history, helmTimeoutMs, { signal, maxMs: helmTimeoutMs + graceMs })
    } catch (unread) {
      logUnread(unread)
      receipt.isKnown = false
      undone = `What it left could not be read, so nothing was rolled back. ${lookFirst()}`
    }
    await readAfter(within)
    if (isRace) {
      const race = `Another operation on release ${release} began at the same moment. ${undone}`
      return isPending
        ? lockedRelease(race, request, before.deployed)
        : new Failure('release-locked', race, {
            advice: 'Look at what is deployed now; run this step again if it is not what you want.',
          })
    }
    const failure = error instanceof HelmError ? error : toFailure(error)
    return tellFailure(failure, ours.size > 0, undone)
  }

  /** Without waiting for anything, and with as few questions as can be: each may take a login of a second. */
  async function goBackAtOnce(): Promise<string> {
    const timeUp = new AbortController()
    const stopTimer = clock.timer(cancelledMs, () => {
      timeUp.abort(new Failure('timeout', 'There was no time left to put the release back.'))
    })
    const within = { signal: timeUp.signal, maxMs: cancelledMs }
    receipt.isKnown = false
    try {
      const history = await helm.history(within)
      const latest = history[0]
      const newest = latest?.revision ?? 0
      if (latest && mayBeOurs(latest) && (newest === next || (await holdsOurs(newest, within)))) {
        ours.add(newest)
      }
      const undone = await goBack(history, undefined, within)
      const isAlone = history.every(
        ({ revision }) => revision <= before.newestRevision || ours.has(revision),
      )
      if (!isAlone) {
        await readAfter(within)
        return undone
      }
      receipt.isKnown = true
      if (receipt.putBack !== undefined && before.deployed) {
        const updated = new Date(clock.wallMs()).toISOString()
        receipt.after = { ...before.deployed, revision: newest + 1, updated }
      } else if (newest > before.newestRevision && before.newestRevision === 0) {
        receipt.after = undefined
      }
      return undone
    } catch (error) {
      logUnread(error)
      return `What it left could not be read. ${lookFirst()}`
    } finally {
      stopTimer()
    }
  }

  async function holdsOurs(revision: number, within: Within): Promise<boolean> {
    return request.valuesProblem(await helm.valuesOf(revision, within)) === undefined
  }

  /** Helm marks what it has begun and not brought to an end as failed; what is deployed or pending is another's. */
  function mayBeOurs({ revision, status }: Revision): boolean {
    const isNew = revision > before.newestRevision && !ours.has(revision)
    return isNew && (helmHasSucceeded || status === 'failed')
  }

  /** A cluster that stumbles is when upgrades fail. */
  async function again<T>(ask: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await ask()
      } catch (error) {
        if (!(error instanceof HelmError) || tries === readingTries) throw error
        logUnread(error)
        await clock.sleep(rereadMs, signal)
      }
    }
  }

  /**
   * Goes back to what was deployed before our revision.
   *
   * @param waitMs how long Helm waits for the former pods; undefined not to wait at all
   */
  async function goBack(
    history: readonly Revision[],
    waitMs: number | undefined,
    within: Within,
  ): Promise<string> {
    const newest = history[0]?.revision ?? 0
    if (newest <= before.newestRevision) return nothingChanged()
    if (!ours.has(newest)) {
      return `Meanwhile something else has made revision ${newest}, so nothing was rolled back.`
    }
    const former = formerRevision(history)
    if (former === undefined && before.newestRevision > 0) {
      return 'The release was not deployed before, so there is nothing to roll back to; it is left as it is.'
    }
    const warning = former === before.deployed?.revision ? request.rollbackWarning() : undefined
    const also = warning === undefined ? '' : ` ${warning}`
    try {
      if (former === undefined) {
        log.info('Removing what was installed')
        await goBackBy(waitMs, (patienceMs) => helm.uninstall(patienceMs, within))
        return 'What was installed has been removed again.'
      }
      log.info(`Rolling back to revision ${former}`)
      ours.add(newest + 1) // what Helm makes of a rollback
      await goBackBy(waitMs, (patienceMs) => helm.rollback(former, patienceMs, within))
      receipt.putBack = former
      return `Rolled back to revision ${former}.${also}`
    } catch (error) {
      const said = error instanceof HelmError ? ` Helm said: "${error.said}".` : ''
      const command = wayBackCommand(request, former)
      return `Putting it back failed as well; try \`${command}\`.${said}${also}`
    }
  }

  /** What was deployed a moment ago, unless another run has deployed since. */
  function formerRevision(history: readonly Revision[]): number | undefined {
    const first = Math.min(...ours)
    const between = history.find(
      ({ revision, status }) =>
        revision < first &&
        revision > before.newestRevision &&
        /^(?:deployed|superseded)$/.test(status),
    )
    return between?.revision ?? before.deployed?.revision
  }

  function lookFirst(): string {
    const command = wayBackCommand(request, before.deployed?.revision)
    return `Look at \`helm history ${release} -n ${namespace}\`; \`${command}\` goes back.`
  }

  function nothingChanged(): string {
    const { deployed } = before
    if (!deployed) return 'Nothing has changed.'
    return `Nothing has changed: revision ${deployed.revision} is still deployed.`
  }

  /** An account that may not watch cannot wait either, on Helm 4; without waiting it can go back. */
  function goBackBy(
    waitMs: number | undefined,
    work: (waitMs: number | undefined) => Promise<void>,
  ): Promise<void> {
    return timed('rollback', async () => {
      if (waitMs === undefined) return work(undefined)
      try {
        await watched(() => work(waitMs))
      } catch (error) {
        const mayNotWatch = error instanceof HelmError && /cannot watch resource/i.test(error.raw)
        if (!mayNotWatch) throw error
        // Helm may have done all but the waiting.
        await work(undefined).catch((later: unknown) => {
          if (!(later instanceof HelmError) || !/not found/.test(later.raw)) throw later
        })
      }
    })
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
      const { message, advice } = error
      const code = changed && error.code !== 'internal' ? 'deploy-failed' : error.code
      return new Failure(code, `${message} ${undone}${items}`, { advice, cause: error })
    }
    const cause = clusterCause(error)
    const code = changed ? 'deploy-failed' : (cause?.code ?? 'deploy-failed')
    const said = `The ${what} of ${release} failed. Helm said: "${error.said}". ${undone}${items}`
    const advice = cause?.advice ?? (receipt.reasons.length > 0 ? notReadyAdvice : undefined)
    return new Failure(code, said, { advice, cause: error })
  }
}

/** Said by a Helm that has made nothing. */
const lockedByAnother =
  /another operation \(install\/upgrade\/rollback\) is in progress|release: already exists|cannot re-use a name that is still in use/

const notReadyAdvice =
  'Correct what keeps it from being ready, or raise `helm-timeout-minutes` if it only needs longer.'
