/** The story of a deployment: look at the release, wait for the export, take a link, upgrade, verify. */
import { toChartValues } from '../chart-values.ts'
import { measured } from '../clock.ts'
import { Failure } from '../errors.ts'
import { secretsOf } from '../link.ts'
import type { ObjectStorage } from '../network.ts'
import { type SessionDependencies, openSession } from '../session.ts'
import { clean } from '../text.ts'
import type { Verifier } from '../verify.ts'
import { quickMs } from './attempt.ts'
import { explainCluster } from './explain.ts'
import type { Within } from './helm.ts'
import { type Hiding, createHiding } from './hide.ts'
import type { HelmInputs } from './inputs.ts'
import { expiredLinkOf, holdsLink, labelOf, linkOf, valuesProblem } from './own-values.ts'
import { type Archive, prepareLink } from './pod-link.ts'
import type { HelmReceipt, HelmStep } from './receipt.ts'
import { type ReleaseState, assertUnlocked, readRelease, wayBackCommand } from './release.ts'
import { type ResolvedChart, namespaceExists, resolveChart } from './target.ts'
import { upgrade } from './upgrade.ts'
import { type Workplace, type WorkplaceDependencies, prepareWorkplace } from './workplace.ts'

export interface DeployDependencies
  extends SessionDependencies, Omit<WorkplaceDependencies, 'hiding'> {
  readonly objectStorage: ObjectStorage
  /** Called first of all: the job id must survive whatever comes next. */
  readonly onJobId: (jobId: string) => void
}

/** A chart is a download. */
const chartMs = 45_000

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
  const hiding = createHiding()
  hiding.add(inputs.apiKey)
  const startedMs = dependencies.clock.nowMs()
  const workplace = await prepareWorkplace(inputs, { ...dependencies, hiding })
  try {
    receipt.helmVersion = workplace.installed.version
    await deployFrom(workplace, { inputs, dependencies, hiding, startedMs }, receipt)
  } finally {
    workplace.close()
  }
}

interface Run {
  readonly inputs: HelmInputs
  readonly dependencies: DeployDependencies
  readonly hiding: Hiding
  readonly startedMs: number
}

async function deployFrom(
  workplace: Workplace,
  { inputs, dependencies, hiding, startedMs }: Run,
  receipt: HelmReceipt,
): Promise<void> {
  const { clock, log, signal } = dependencies
  const { release, namespace, jobId, valuesKey } = inputs
  const { helm, directory } = workplace
  const within: Within = { signal, maxMs: quickMs }

  // What is wrong with the mirror, the release or the chart is told before anybody waits for an export.
  const links = await prepareLink(inputs, { ...dependencies, directory, timed })
  const early = await lookAtRelease()
  let chart = await findChart(early)
  tellPlan(early)
  if (early.newestRevision === 0 && !inputs.createNamespace) await assertNamespace()

  const session = openSession(
    { ...inputs, pollIntervalMs: undefined, maskBundleUrl: true },
    {
      ...dependencies,
      mask(secret) {
        dependencies.mask(secret)
        hiding.add(secret)
      },
    },
    receipt.exported,
  )
  let archive: Archive | undefined
  try {
    log.info(`Attached to export job ${jobId}`)
    await session.waitForEnd(jobId, undefined)
    await lookAtRelease() // nothing is minted for a release that was locked while we waited
    archive = await links.prepare(session, receipt)
  } finally {
    await session.close()
  }

  const verifier = await prepareVerifier(archive)
  await verifier?.before()
  // Once more, since a download and a mirror take their time.
  const before = await lookAtRelease()
  const { deployed } = before
  const isAsBefore =
    deployed?.chart.version === early.deployed?.chart.version &&
    deployed?.chart.name === early.deployed?.chart.name
  if (!isAsBefore) chart = await findChart(before)
  const formerValues =
    deployed && (await helm.valuesOf(deployed.revision, within).catch(explainCluster))
  const formerLink = linkOf(formerValues, valuesKey)
  // It may still work, and pods may quote it.
  if (formerLink) for (const secret of secretsOf(formerLink)) hiding.add(secret)
  const expiry = formerLinkExpiry()
  if (deployed && expiry !== undefined) {
    log.warning(
      `The link of revision ${deployed.revision}, which is deployed now, ${expiry}. Going back to it would start pods that cannot fetch their site; with a mirror (\`mirror-bucket\`) they could.`,
    )
  }
  const version = inputs.version ?? (dropsLabel(formerValues) ? null : undefined)
  const link = await links.settle(session, receipt)
  await upgrade(
    {
      release,
      namespace,
      before,
      chart: chart.arguments,
      existingValues: inputs.existingValues,
      valuesFiles: workplace.valuesFiles,
      ownValues: toChartValues({ key: valuesKey, bundleUrl: link, version }),
      createNamespace: inputs.createNamespace,
      helmTimeoutMs: inputs.helmTimeoutMs,
      valuesProblem: (values) => valuesProblem(values, valuesKey, link, inputs.version),
      rollbackWarning: warnOfFormerLink,
    },
    { ...dependencies, helm, hiding, startedMs, timed, temporaryDirectory: directory },
    receipt,
  )
  receipt.liveSinceMs = clock.wallMs()
  log.info(
    `Deployed: revision ${receipt.live?.deployed?.revision ?? ''} of ${release} in ${namespace}`,
  )
  await warnOfUnusedLink()
  if (verifier) {
    receipt.verified = await timed('verification', () => verifier.after()).catch(tellWayBack)
  }

  function warnOfFormerLink(): string | undefined {
    const expiry = formerLinkExpiry()
    return expiry && `Its link ${expiry}: pods that start now cannot fetch it.`
  }

  function formerLinkExpiry(): string | undefined {
    return expiredLinkOf(formerValues, valuesKey, session.client.serverWallMs())
  }

  /** Helm keeps values that no template reads, so that a wrong key goes through all else. */
  async function warnOfUnusedLink(): Promise<void> {
    const revision = receipt.live?.deployed?.revision ?? 0
    try {
      if (holdsLink(await helm.manifestOf(revision, within), link)) return
      if (holdsLink(await helm.hooksOf(revision, within), link)) return
    } catch (error) {
      // It must not turn what is deployed into a failure.
      log.debug(
        Error.isError(error) ? hiding.tell(error.message) : 'The manifest could not be read.',
      )
      return
    }
    log.warning(
      `Nothing that the chart has rendered holds the link: does it read ${valuesKey}.bundleUrl? If not, check \`values-key\`.`,
    )
  }

  /** What cannot be verified stays deployed: the page may be slow to change, and the way back is the user's. */
  function tellWayBack(error: unknown): never {
    if (!(error instanceof Failure)) throw error
    const { code, message, advice, cause } = error
    if (code !== 'verify-failed' && code !== 'cancelled') throw error
    const stays =
      code === 'cancelled'
        ? ` Revision ${receipt.live?.deployed?.revision ?? ''} stays deployed.`
        : ''
    const former = receipt.before?.revision
    const warning = former === deployed?.revision ? (warnOfFormerLink() ?? '') : ''
    const does = former === undefined ? 'takes it away' : 'goes back'
    const back = `\`${wayBackCommand(inputs, former)}\` ${does}. ${warning}`
    throw new Failure(code, `${message}${stays}`, { advice: `${advice} ${back.trim()}`, cause })
  }

  async function lookAtRelease(): Promise<ReleaseState> {
    const state = await readRelease(helm, within).catch(explainCluster)
    receipt.before = state.deployed
    receipt.live = { deployed: state.deployed }
    assertUnlocked(state, inputs)
    return state
  }

  /** Else Helm would say it after the export. An account that may not look goes on, and Helm says it then. */
  async function assertNamespace(): Promise<void> {
    const { disk } = dependencies
    const exists = await namespaceExists(
      namespace,
      { helm, disk, temporaryDirectory: directory },
      within,
    )
    if (exists !== false) return
    throw new Failure('config', `The namespace ${namespace} does not exist.`, {
      advice: 'Check `namespace`, create it, or set `create-namespace: true`.',
    })
  }

  function findChart({ deployed: current }: ReleaseState): Promise<ResolvedChart> {
    const chartWithin = { signal, maxMs: chartMs }
    return resolveChart(helm, workplace.chart, inputs.chartVersion, current, chartWithin)
  }

  function tellPlan({ deployed: current, newestRevision }: ReleaseState): void {
    const never = newestRevision === 0 ? 'not installed yet' : 'never deployed'
    const state = current ? `revision ${current.revision} is deployed` : never
    log.info(`Release ${release} in ${namespace}: ${state}`)
    const { name, version } = chart.identity
    const was = current?.chart.version
    const change = was === version ? ' (as deployed)' : was && ` (was ${clean(was, 80)})`
    log.info(`Chart ${clean(name, 80)} ${clean(version, 80)}${change ?? ''}`)
    if (!current) return
    log.info(
      inputs.existingValues === 'keep'
        ? 'Values of the release: kept, below those of this run'
        : 'Values of the release: forgotten, only those of this run count',
    )
  }

  /** A label that no longer belongs to what is deployed would stay with the values that are kept. */
  function dropsLabel(former: unknown): boolean {
    const keeps = inputs.existingValues === 'keep' && !inputs.callerValues.setsVersion
    return keeps && labelOf(former, valuesKey) !== undefined
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
