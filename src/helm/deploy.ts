/** The story of a deployment: look at the release, wait for the export, take a link, upgrade, verify. */
import { toChartValues } from '../chart-values.ts'
import { measured } from '../clock.ts'
import { Failure } from '../errors.ts'
import { secretsOf } from '../link.ts'
import type { ObjectStorage } from '../network.ts'
import { type SessionDependencies, openSession } from '../session.ts'
import type { Verifier } from '../verify.ts'
import { quickMs } from './attempt.ts'
import { explainCluster } from './explain.ts'
import type { Within } from './helm.ts'
import { type Redactor, createRedactor } from './redactor.ts'
import type { HelmInputs } from './inputs.ts'
import { type OwnValues, ownValuesOf, valuesProblem } from './own-values.ts'
import { lookAtRelease, makePlan, renewPlan } from './plan.ts'
import { type Archive, prepareLink } from './pod-link.ts'
import type { HelmReceipt, HelmStep } from './receipt.ts'
import { type DeployedRevision, wayBackCommand } from './release.ts'
import { warnOfUnusedLink } from './rendered.ts'
import { upgrade } from './upgrade.ts'
import { type Workplace, type WorkplaceDependencies, prepareWorkplace } from './workplace.ts'

export interface DeployDependencies
  extends SessionDependencies, Omit<WorkplaceDependencies, 'redactor'> {
  readonly objectStorage: ObjectStorage
  /** Called first of all: the job id must survive whatever comes next. */
  readonly onJobId: (jobId: string) => void
}

/**
 * Deploys the export and notes in the receipt what it learns, so that a failure leaves it filled as far as the
 * run came.
 *
 * @throws Failure, see errors.ts
 */
export async function deploy(
  inputs: HelmInputs,
  dependencies: DeployDependencies,
  receipt: HelmReceipt,
): Promise<void> {
  receipt.exported.jobId = inputs.jobId
  dependencies.onJobId(inputs.jobId)
  const redactor = createRedactor()
  redactor.add(inputs.apiKey)
  const startedMs = dependencies.clock.nowMs()
  const workplace = await prepareWorkplace(inputs, { ...dependencies, redactor })
  try {
    receipt.helmVersion = workplace.installed.version
    receipt.contextName = workplace.contextName
    await deployFrom(workplace, { inputs, dependencies, redactor, startedMs }, receipt)
  } finally {
    workplace.close()
  }
}

interface Run {
  readonly inputs: HelmInputs
  readonly dependencies: DeployDependencies
  readonly redactor: Redactor
  readonly startedMs: number
}

async function deployFrom(
  workplace: Workplace,
  { inputs, dependencies, redactor, startedMs }: Run,
  receipt: HelmReceipt,
): Promise<void> {
  const { clock, log, signal } = dependencies
  const { release, namespace, jobId, valuesKey } = inputs
  const { helm, directory } = workplace
  const within: Within = { signal, maxMs: quickMs }
  const looking = {
    ...dependencies,
    ...{ helm, inputs, receipt, chart: workplace.chart, temporaryDirectory: directory },
  }

  // What is wrong with the mirror, the release or the chart is told before anybody waits for an export.
  const links = await prepareLink(inputs, { ...dependencies, directory, timed })
  const early = await makePlan(looking)

  const session = openSession(
    { ...inputs, pollIntervalMs: undefined, maskBundleUrl: true },
    {
      ...dependencies,
      mask(secret) {
        dependencies.mask(secret)
        redactor.add(secret)
      },
    },
    receipt.exported,
  )
  let archive: Archive | undefined
  try {
    log.info(`Attached to export job ${jobId}`)
    await session.waitForEnd(jobId, undefined)
    await lookAtRelease(looking) // nothing is minted for a release that was locked while we waited
    archive = await links.prepare(session, receipt)
  } finally {
    await session.close()
  }

  const verifier = await prepareVerifier(archive)
  await verifier?.before()
  const { before, chart } = await renewPlan(early, looking)
  const former = await readFormer(before.deployed)
  const version = inputs.version ?? (dropsLabel() ? null : undefined)
  const link = await links.settle(session, receipt)
  await upgrade(
    {
      release,
      namespace,
      kubeContext: inputs.kubeContext,
      before,
      chart: chart.arguments,
      existingValues: inputs.existingValues,
      valuesFiles: workplace.valuesFiles,
      ownValues: toChartValues({ key: valuesKey, bundleUrl: link, version }),
      createNamespace: inputs.createNamespace,
      helmTimeoutMs: inputs.helmTimeoutMs,
      valuesProblem: (values) => valuesProblem(values, valuesKey, link, inputs.version),
      rollbackWarning,
    },
    { ...dependencies, helm, redactor, startedMs, timed, temporaryDirectory: directory },
    receipt,
  )
  receipt.liveSinceMs = clock.wallMs()
  const revision = receipt.live?.deployed?.revision ?? 0
  log.info(`Deployed: revision ${revision} of ${release} in ${namespace}`)
  await warnOfUnusedLink({ revision, link, valuesKey }, { ...dependencies, helm, redactor }, within)
  if (verifier) {
    receipt.verified = await timed('verification', () => verifier.after()).catch(tellWayBack)
  }

  /** What the revision that is deployed was given; warns when the way back to it would not work. */
  async function readFormer(deployed: DeployedRevision | undefined): Promise<OwnValues> {
    const values =
      deployed && (await helm.valuesOf(deployed.revision, within).catch(explainCluster))
    const own = ownValuesOf(values, valuesKey)
    // Its link may still work, and pods may quote it.
    if (own.link) for (const secret of secretsOf(own.link)) redactor.add(secret)
    const expiry = own.expiry(session.client.serverWallMs())
    if (deployed && expiry !== undefined) {
      log.warning(
        `The link of revision ${deployed.revision}, which is deployed now, ${expiry}. Going back to it would start pods that cannot fetch their site; with a mirror (\`mirror-bucket\`) they could.`,
      )
    }
    return own
  }

  function rollbackWarning(): string | undefined {
    const expiry = former.expiry(session.client.serverWallMs())
    return expiry && `Its link ${expiry}: pods that start now cannot fetch it.`
  }

  /** A label that no longer belongs to what is deployed would stay with the values that are kept. */
  function dropsLabel(): boolean {
    return inputs.existingValues === 'keep' && !inputs.callerValues.setsVersion && former.hasLabel
  }

  /** What cannot be verified stays deployed: the page may be slow to change, and the way back is the user's. */
  function tellWayBack(error: unknown): never {
    if (!(error instanceof Failure)) throw error
    const { code, message, advice, cause } = error
    if (code !== 'verify-failed' && code !== 'cancelled') throw error
    const stays = code === 'cancelled' ? ` Revision ${revision} stays deployed.` : ''
    const to = receipt.before?.revision
    const does = to === undefined ? 'takes it away' : 'goes back'
    const warning = to === before.deployed?.revision ? (rollbackWarning() ?? '') : ''
    const back = `\`${wayBackCommand(inputs, to)}\` ${does}. ${warning}`
    throw new Failure(code, `${message}${stays}`, { advice: `${advice} ${back.trim()}`, cause })
  }

  async function prepareVerifier(downloaded: Archive | undefined): Promise<Verifier | undefined> {
    const { verifyUrl: url, helmTimeoutMs: timeoutMs } = inputs
    if (!url || !downloaded) return undefined
    const { createVerifier } = await import('../verify.ts')
    const { file: archiveFile, sizeBytes: archiveBytes } = downloaded
    const timeoutInput = 'helm-timeout-minutes'
    const request = { url, archiveFile, archiveBytes, timeoutMs, timeoutInput }
    return createVerifier(request, { ...dependencies, deadline: session.deadline })
  }

  function timed<T>(step: HelmStep, work: () => Promise<T>): Promise<T> {
    return measured(step, receipt.stepMs, clock, work)
  }
}
