/** One upgrade: carried out by Helm, watched and judged by us, and taken back when it fails. */
import { deadlineAfter } from '../clock.ts'
import { Failure } from '../errors.ts'
import { formatDuration } from '../units.ts'
import { askPersistently } from './ask.ts'
import {
  type Attempt,
  type UpgradeDependencies,
  type UpgradeRequest,
  graceMs,
  notReadyAdvice,
  quickMs,
  readingMs,
} from './attempt.ts'
import { explainCluster } from './explain.ts'
import { HelmError, type Within, slowMark } from './helm.ts'
import type { HelmReceipt } from './receipt.ts'
import { type DeployedRevision, readDeployed, withChart } from './release.ts'
import { undo } from './undo.ts'
import { createWatch } from './watch.ts'
import { formerRevision } from './way-back.ts'
import { describeWorkloads, workloadsOf } from './workloads.ts'

/** What a cancelled run may take; the rest of it is for telling what was done. */
const cancelledMs = 7_500
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
  const { helm, redactor, clock, log, signal, timed } = dependencies
  const { release, before, helmTimeoutMs } = request
  const beganMs = clock.nowMs()
  const leftMs = () => beganMs + helmTimeoutMs - clock.nowMs()
  const next = before.newestRevision + 1
  const what = before.newestRevision === 0 ? 'install' : 'upgrade'
  const attempt: Attempt = {
    request,
    what,
    ours: new Set(),
    beganWallMs: clock.wallMs(),
    helmHasSucceeded: false,
    goodbye: deadlineAfter(signal, cancelledMs, clock),
  }
  const watch = createWatch(next, dependencies)
  receipt.attempted = true
  receipt.live = undefined
  log.info(`Helm ${what}: revision ${next}, within ${formatDuration(helmTimeoutMs)}`)
  try {
    await timed('upgrade', () => watch.during(helmUpgrade))
    attempt.helmHasSucceeded = true
    const deployed = await confirm()
    await timed('readiness', () => waitUntilReady(deployed))
  } catch (error) {
    throw await undo(error, attempt, { ...dependencies, watch }, receipt)
  }

  async function helmUpgrade(): Promise<void> {
    const within = { signal, maxMs: helmTimeoutMs + graceMs }
    await helm.upgrade({ ...request, timeoutMs: helmTimeoutMs }, within).catch(tellSlow)
  }

  /** Its timeout bounds each hook and each wait; together they may take longer than there is time. */
  function tellSlow(error: unknown): never {
    if (!(error instanceof HelmError) || error.raw !== slowMark) throw error
    const waited = formatDuration(helmTimeoutMs)
    const slow = `The ${what} of ${release} was not done after ${waited}, and was ended.`
    throw new Failure('deploy-failed', slow, { advice: notReadyAdvice, cause: error })
  }

  /** What is deployed must be ours and hold our link, whatever Helm says of it. */
  async function confirm(): Promise<DeployedRevision> {
    const deployed = await persistently((within) => readDeployed(helm, within))
    receipt.live = { deployed }
    const revision = deployed?.revision
    const values =
      revision === undefined
        ? undefined
        : await persistently((within) => helm.valuesOf(revision, within))
    const problem = request.valuesProblem(values)
    if (revision !== undefined && (problem === undefined || revision === next)) {
      attempt.ours.add(revision)
    }
    if (deployed && problem === undefined) {
      if (deployed.revision > next) receipt.before = await persistently(readFormer)
      return deployed
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
  async function readFormer(within: Within): Promise<DeployedRevision | undefined> {
    const history = await helm.history(within)
    const former = formerRevision(history, attempt)
    const found = history.find(({ revision }) => revision === former)
    if (!found || former === before.deployed?.revision) return before.deployed
    return withChart(found, helm, within)
  }

  /** Our own judgement, since Helm 3 is content with less (helm.md, rule 3). */
  async function waitUntilReady({ revision }: DeployedRevision): Promise<void> {
    for (let delayMs = shortestDelayMs; ; delayMs = Math.min(2 * delayMs, longestDelayMs)) {
      const status = await persistently((within) => helm.status(within))
      const workloads = workloadsOf(status?.resources ?? {}, redactor.redact)
      if (workloads.every(({ isReady }) => isReady)) {
        if (workloads.length > 0) log.info(`Ready: ${describeWorkloads(workloads)}`)
        return
      }
      if (leftMs() <= 0) {
        const waited = formatDuration(helmTimeoutMs)
        const content = `Helm reported success, but revision ${revision} of ${release} was not ready within ${waited}.`
        throw new Failure('deploy-failed', content, { advice: notReadyAdvice })
      }
      watch.tell(describeWorkloads(workloads))
      await clock.sleep(Math.min(delayMs, leftMs()), signal)
    }
  }

  /** One answer that does not come must not undo a deployment that went well. */
  function persistently<T>(ask: (within: Within) => Promise<T>): Promise<T> {
    const untilMs = clock.nowMs() + Math.max(leftMs(), readingMs)
    return askPersistently(() => ask({ signal, maxMs: quickMs }), untilMs, dependencies).catch(
      explainCluster,
    )
  }
}
