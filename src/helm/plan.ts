/** The plan of a deployment: the release as it is, and the chart that goes over it. */
import { Failure } from '../errors.ts'
import type { Log } from '../log.ts'
import { clean } from '../text.ts'
import { quickMs } from './attempt.ts'
import type { ChartReference } from './chart.ts'
import { explainCluster } from './explain.ts'
import { HelmError, type Within } from './helm.ts'
import type { HelmInputs } from './inputs.ts'
import { type LookupDependencies, lookUp } from './lookup.ts'
import type { HelmReceipt } from './receipt.ts'
import { type ReleaseState, assertUnlocked, readRelease } from './release.ts'
import { type ResolvedChart, resolveChart } from './resolve-chart.ts'

export interface Plan {
  readonly before: ReleaseState
  readonly chart: ResolvedChart
}

export interface PlanDependencies extends LookupDependencies {
  readonly inputs: HelmInputs
  /** As Helm knows it after a login. */
  readonly chart: ChartReference
  readonly receipt: HelmReceipt
  readonly log: Log
  readonly signal: AbortSignal
}

/** A chart is a download. */
const chartMs = 45_000

/**
 * Looks at everything that can be wrong before anybody waits for an export, and tells what is there.
 *
 * @throws Failure `config`, `release-locked`, or why the cluster or the chart could not be asked
 */
export async function makePlan(dependencies: PlanDependencies): Promise<Plan> {
  const before = await lookAtRelease(dependencies)
  const chart = await findChart(before, dependencies)
  for (const line of describe({ before, chart }, dependencies.inputs)) dependencies.log.info(line)
  if (before.newestRevision === 0) await assertNamespace(dependencies)
  return { before, chart }
}

/** Looks again, since an export, a download and a mirror take their time. @throws Failure as before */
export async function renewPlan(plan: Plan, dependencies: PlanDependencies): Promise<Plan> {
  const before = await lookAtRelease(dependencies)
  const [was, is] = [plan.before.deployed?.chart, before.deployed?.chart]
  const isSameChart = was?.name === is?.name && was?.version === is?.version
  return { before, chart: isSameChart ? plan.chart : await findChart(before, dependencies) }
}

/** What there is of the release now, noted in the receipt. @throws Failure `release-locked` */
export async function lookAtRelease({
  helm,
  inputs,
  receipt,
  signal,
}: PlanDependencies): Promise<ReleaseState> {
  const state = await readRelease(helm, { signal, maxMs: quickMs }).catch(explainCluster)
  receipt.before = state.deployed
  receipt.live = { deployed: state.deployed }
  assertUnlocked(state, inputs)
  return state
}

function describe({ before, chart }: Plan, inputs: HelmInputs): string[] {
  const { deployed, newestRevision } = before
  const never = newestRevision === 0 ? 'not installed yet' : 'never deployed'
  const state = deployed ? `revision ${deployed.revision} is deployed` : never
  const { name, version } = chart.identity
  const was = deployed?.chart.version
  const change = was === version ? ' (as deployed)' : was && ` (was ${clean(was, 80)})`
  const values =
    inputs.existingValues === 'keep'
      ? 'Values of the release: kept, below those of this run'
      : 'Values of the release: forgotten, only those of this run count'
  return [
    `Release ${inputs.release} in ${inputs.namespace}: ${state}`,
    `Chart ${clean(name, 80)} ${clean(version, 80)}${change ?? ''}`,
    ...(deployed ? [values] : []),
  ]
}

function findChart(
  { deployed }: ReleaseState,
  { helm, inputs, chart, signal }: PlanDependencies,
): Promise<ResolvedChart> {
  const within = { signal, maxMs: chartMs }
  return resolveChart(helm, chart, inputs.chartVersion, deployed, within)
}

/** Else Helm would say it after the export. An account that may not look goes on, and Helm says it then. */
async function assertNamespace(dependencies: PlanDependencies): Promise<void> {
  const { inputs, signal } = dependencies
  if (inputs.createNamespace) return
  const within = { signal, maxMs: quickMs }
  if ((await namespaceExists(inputs.namespace, dependencies, within)) !== false) return
  throw new Failure('config', `The namespace ${inputs.namespace} does not exist.`, {
    advice: 'Check `namespace`, create it, or set `create-namespace: true`.',
  })
}

const namespaceTemplate = `  exists: {{ not (empty (lookup "v1" "Namespace" "" .Values.namespace)) | toString | quote }}
`

/** Whether a namespace exists; undefined when the account may not know. */
async function namespaceExists(
  namespace: string,
  dependencies: LookupDependencies,
  within: Within,
): Promise<boolean | undefined> {
  try {
    const values = JSON.stringify({ namespace })
    const rendered = await lookUp(namespaceTemplate, values, dependencies, within)
    return /^ {2}exists: "true"$/m.test(rendered)
  } catch (error) {
    if (error instanceof HelmError) return undefined
    throw error
  }
}
