/** Taking an upgrade back: the reasons are read first, then the former revision is put back, and all of it is told. */
import { Failure, toFailure } from '../errors.ts'
import { askPersistently } from './ask.ts'
import {
  type Attempt,
  type UpgradeDependencies,
  graceMs,
  notReadyAdvice,
  quickMs,
  readingMs,
} from './attempt.ts'
import { clusterCause, upgradeCause } from './explain.ts'
import { HelmError, type Revision, type Within } from './helm.ts'
import { readReasons } from './reasons.ts'
import type { HelmReceipt, Live } from './receipt.ts'
import {
  historyCommand,
  isPending,
  lockOf,
  lockedRelease,
  lookFirst,
  readDeployed,
  readRelease,
  wayBackCommand,
} from './release.ts'
import type { Watch } from './watch.ts'
import { mayBeOurs, planWayBack } from './way-back.ts'

export interface UndoDependencies extends UpgradeDependencies {
  readonly watch: Watch
}

/** What the way back has come to. */
interface Undone {
  readonly told: string
  /** What is deployed then, when that follows without asking. */
  readonly live?: Live
  /** Half done: Helm still calls the former revision deployed, whatever runs. */
  readonly isStuck?: true
}

/** Between two tries to put the release back. */
const retryMs = 5_000

const stuckAdvice = 'Put the release back first; then correct what failed, and run again.'

/** Said by a Helm that has made nothing. */
const lockedByAnother =
  /another operation \(install\/upgrade\/rollback\) is in progress|release: already exists|cannot re-use a name that is still in use/

/** Reads the reasons, puts things back, and gives the failure that tells of all of it; never rejects. */
export async function undo(
  error: unknown,
  attempt: Attempt,
  dependencies: UndoDependencies,
  receipt: HelmReceipt,
): Promise<Failure> {
  const { helm, redactor, clock, log, signal, timed, watch } = dependencies
  const { request, what, ours, goodbye } = attempt
  const { release, before, helmTimeoutMs } = request
  /** What was done, once that is over. */
  let done: Undone | undefined

  const isCancelled = () => signal.aborted
  if (!isCancelled()) {
    const failure = await takeBack().catch(toFailure)
    if (!isCancelled()) return failure
  }
  // Also in the middle of a rollback. Helm has ended, since it is always waited for.
  const { message } = signal.reason as Failure
  const told = await takeBackAtOnce()
  return new Failure('cancelled', `${message} ${told}`, { advice: adviceOr(undefined) })

  async function takeBack(): Promise<Failure> {
    const within = { signal, maxMs: quickMs }
    const isRace = error instanceof HelmError && lockedByAnother.test(error.raw)
    let isRead = false
    try {
      const history = await answered(() => helm.history(within))
      if (!isRace) await claim(history, within)
      isRead = true
      if (ours.size > 0)
        receipt.reasons = await readReasons(attempt.beganWallMs, dependencies, within)
      if (receipt.reasons.length > 0) log.details('What the cluster says', receipt.reasons)
      const waiting = { signal, maxMs: helmTimeoutMs + graceMs }
      done = await goBack(history, helmTimeoutMs, waiting)
    } catch (unread) {
      signal.throwIfAborted()
      logUnread(unread)
      const why = unread instanceof HelmError ? clusterCause(unread)?.what : undefined
      const because = why === undefined ? '' : ` (${why.charAt(0).toLowerCase()}${why.slice(1)})`
      done = {
        told: `What it left could not be read${because}, so nothing was rolled back, and the release may be locked. ${look()}`,
      }
    }
    if (!done.isStuck) await readLive(within)
    if (isRace) return tellRace(done.told, within)
    if (attempt.helmHasSucceeded && !isRead) return tellUnconfirmed(done.told)
    return tellFailure(done.told)
  }

  /** Without waiting for anything, and with as few questions as can be: each may take a login of a second. */
  async function takeBackAtOnce(): Promise<string> {
    const timeUp = new AbortController()
    const stopTimer = clock.timer(goodbye.remainingMs(), () => {
      timeUp.abort(new Failure('timeout', 'There was no time left to put the release back.'))
    })
    const within = {
      signal: timeUp.signal,
      get maxMs() {
        return goodbye.remainingMs()
      },
    }
    try {
      if (done) {
        await readLive(within)
        return done.told
      }
      receipt.live = undefined
      const history = await answered(() => helm.history(within))
      await claim(history, within)
      done = await goBack(history, undefined, within)
      if (done.live) receipt.live = done.live
      else if (!done.isStuck) await readLive(within)
      return done.told
    } catch (unread) {
      logUnread(unread)
      return `What it left could not be read. ${look()}`
    } finally {
      stopTimer()
    }
  }

  /** A release that is half put back comes first. */
  function adviceOr(advice: string | undefined): string | undefined {
    return done?.isStuck ? stuckAdvice : advice
  }

  /** Notes that the newest revision is ours, when it is. */
  async function claim([newest]: readonly Revision[], within: Within): Promise<void> {
    if (!newest || !mayBeOurs(newest, attempt)) return
    // A cancelled run has no time for a question that has one answer: its own number, and marked as failed.
    const isCertain =
      isCancelled() && newest.status === 'failed' && newest.revision === before.newestRevision + 1
    if (isCertain || (await holdsOurs(newest.revision, within))) ours.add(newest.revision)
  }

  async function holdsOurs(revision: number, within: Within): Promise<boolean> {
    const values = await answered(() => helm.valuesOf(revision, within))
    return request.valuesProblem(values) === undefined
  }

  /** A cluster that stumbles is asked again, unless the run is cancelled, which has no time for that. */
  function answered<T>(ask: () => Promise<T>): Promise<T> {
    if (isCancelled()) return ask()
    return askPersistently(ask, clock.nowMs() + readingMs, dependencies)
  }

  /**
   * Goes back to what was deployed before our revision, and tells what came of it.
   *
   * @param waitMs how long Helm waits for the former pods; undefined not to wait at all
   * @throws the reason of the signal
   */
  async function goBack(
    history: readonly Revision[],
    waitMs: number | undefined,
    within: Within,
  ): Promise<Undone> {
    const way = planWayBack(history, attempt)
    switch (way.kind) {
      case 'unchanged': {
        const still = before.deployed
          ? `: revision ${before.deployed.revision} is still deployed`
          : ''
        return { told: `Nothing has changed${still}.`, live: { deployed: before.deployed } }
      }
      case 'foreign':
        return {
          told: `Revision ${way.newest.revision} may be of another run, so nothing was rolled back. Look at \`${historyCommand(request)}\`.`,
        }
      case 'leave': {
        const locked = isPending(way.newest.status)
          ? ` It is locked; \`${wayBackCommand(request, undefined)}\` frees it.`
          : ''
        return {
          told: `The release was not deployed before, so there is nothing to roll back to; it is left as it is.${locked}`,
        }
      }
      case 'uninstall': {
        log.info('Removing what was installed')
        const problem = await carryOut((patienceMs) => helm.uninstall(patienceMs, within))
        if (problem !== undefined) return { told: failed(undefined, problem), isStuck: true }
        return { told: 'What was installed has been removed again.', live: { deployed: undefined } }
      }
      case 'rollback': {
        const { to, newest } = way
        log.info(`Rolling back to revision ${to}`)
        let { revision } = newest
        const isFormer = to === before.deployed?.revision
        const warning = (isFormer && request.rollbackWarning()) || ''
        const problem = await carryOut((patienceMs) => {
          revision += 1
          ours.add(revision) // what Helm makes of a rollback
          return helm.rollback(to, patienceMs, within)
        })
        if (problem !== undefined) {
          return { told: `${failed(to, problem)} ${warning}`.trim(), isStuck: true }
        }
        receipt.putBack = to
        const told = `Rolled back to revision ${to}. ${warning}`.trim()
        if (!isFormer) return { told }
        const updated = new Date(clock.wallMs()).toISOString()
        return { told, live: { deployed: { ...before.deployed, revision, updated } } }
      }
    }

    /** Again while the cluster stumbles and there is time. Returns what Helm said when it could not, or nothing. */
    async function carryOut(
      work: (patienceMs: number | undefined) => Promise<void>,
    ): Promise<string | undefined> {
      const untilMs = clock.nowMs() + (waitMs ?? 0)
      for (;;) {
        try {
          await timed('rollback', () => patiently(waitMs, work))
          return undefined
        } catch (problem) {
          if (waitMs !== undefined) signal.throwIfAborted()
          if (!(problem instanceof HelmError)) return ''
          const isPassing = clusterCause(problem)?.code === 'network' && clock.nowMs() < untilMs
          if (!isPassing) return ` Helm said: "${problem.said}".`
          log.info(
            `The cluster did not answer \`${problem.command}\`, which is tried again: ${problem.said}`,
          )
          await clock.sleep(retryMs, signal)
        }
      }
    }

    function failed(revision: number | undefined, problem: string): string {
      const command = wayBackCommand(request, revision)
      return `Putting it back failed as well: the release may be locked, and hold objects of both revisions. Try \`${command}\`, with \`--no-hooks\` if it is a hook that fails.${problem}`
    }
  }

  /** An account that may not watch cannot wait either, on Helm 4; without waiting it can go back. */
  async function patiently(
    waitMs: number | undefined,
    work: (waitMs: number | undefined) => Promise<void>,
  ): Promise<void> {
    if (waitMs === undefined) return work(undefined)
    try {
      await watch.during(() => work(waitMs))
    } catch (failed) {
      const mayNotWatch = failed instanceof HelmError && /cannot watch resource/i.test(failed.raw)
      if (!mayNotWatch) throw failed
      // Helm may have done all but the waiting.
      await work(undefined).catch((later: unknown) => {
        if (!(later instanceof HelmError) || !/not found/.test(later.raw)) throw later
      })
    }
  }

  async function readLive(within: Within): Promise<void> {
    receipt.live = undefined
    try {
      receipt.live = { deployed: await answered(() => readDeployed(helm, within)) }
    } catch (unread) {
      logUnread(unread)
    }
  }

  function look(): string {
    return lookFirst(request, before.deployed?.revision)
  }

  function logUnread(unread: unknown): void {
    log.debug(redactor.ofError(unread))
  }

  /** Helm's word stands against nothing: the cluster does not say what is deployed. */
  function tellUnconfirmed(undone: string): Failure {
    const { message, advice } = toFailure(error)
    const told = `Helm reported success, but it could not be confirmed. ${message} ${undone}`
    return new Failure('deploy-failed', told, { advice, cause: error })
  }

  async function tellRace(undone: string, within: Within): Promise<Failure> {
    const race = `Another operation on release ${release} began at the same moment.`
    let lock: Failure | undefined
    try {
      lock = lockOf(await readRelease(helm, within), request)
    } catch (unread) {
      logUnread(unread)
      return lockedRelease(race, request, before.deployed)
    }
    if (lock) {
      const told = `${race} ${lock.message} This run has changed nothing.`
      return new Failure('release-locked', told, { advice: lock.advice, cause: error })
    }
    const advice = 'Look at what is deployed now; run this step again if it is not what you want.'
    return new Failure('release-locked', `${race} ${undone}`, { advice })
  }

  function tellFailure(undone: string): Failure {
    const items = receipt.reasons.map((reason) => `\n- ${reason}`).join('')
    // Whether the cluster has seen anything of it.
    const isChanged = ours.size > 0
    if (!(error instanceof HelmError)) {
      const { code, message, advice } = toFailure(error)
      const told = isChanged && code !== 'internal' ? 'deploy-failed' : code
      return new Failure(told, `${message} ${undone}${items}`, {
        advice: adviceOr(advice),
        cause: error,
      })
    }
    const cause = upgradeCause(error)
    const code = isChanged ? 'deploy-failed' : (cause?.code ?? 'deploy-failed')
    const said = `The ${what} of ${release} failed. Helm said: "${error.said}". ${undone}${items}`
    const advice = cause?.advice ?? (receipt.reasons.length > 0 ? notReadyAdvice : undefined)
    return new Failure(code, said, { advice: adviceOr(advice), cause: error })
  }
}
