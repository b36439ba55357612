/** Which chart, and which version of it. */
import path from 'node:path'
import { Failure } from '../errors.ts'
import { clean } from '../text.ts'
import { type ChartReference, chartArguments, hasVersions } from './chart.ts'
import { explainChart, missingDependencies } from './explain.ts'
import { type ChartIdentity, type Helm, HelmError, type Within } from './helm.ts'
import { recordOf } from './json.ts'
import type { DeployedRevision } from './release.ts'
import { parseYaml } from './yaml.ts'

export interface ResolvedChart {
  readonly identity: ChartIdentity
  /** For `helm upgrade`, with the version that was found, so that nothing newer slips in between. */
  readonly arguments: readonly string[]
}

/**
 * Finds the chart and its version: the one asked for, else the one that is deployed.
 *
 * @throws Failure `config` when there is no such chart, when the first install of a chart says no version,
 *   and when the release was deployed from another chart
 */
export async function resolveChart(
  helm: Helm,
  chart: ChartReference,
  wantedVersion: string | undefined,
  deployed: DeployedRevision | undefined,
  within: Within,
): Promise<ResolvedChart> {
  const choosable = hasVersions(chart)
  const version = wantedVersion ?? (choosable ? deployed?.chart.version : undefined)
  if (choosable) {
    assertSameChart(nameOf(chart), deployed)
    if (version === undefined) {
      throw new Failure(
        'config',
        '`chart-version` is missing: nothing is deployed yet whose version could be kept.',
        { advice: 'Set `chart-version` for the first install. Later runs keep what is deployed.' },
      )
    }
  }
  const { identity, hasDependencies } = readAbout(
    await helm
      .showChart(chartArguments(chart, version), within)
      .catch(keptVersionIsGone)
      .catch(explainChart),
  )
  assertSameChart(identity.name, deployed)
  const found = chartArguments(chart, identity.version)
  // What was packaged has all of them.
  if (chart.kind === 'path' && hasDependencies) await assertDependencies()
  return { identity, arguments: found }

  /** Else the upgrade would find it, after the export. What else is wrong with the chart may come of its values. */
  async function assertDependencies(): Promise<void> {
    await helm.renderAlone(found, within).catch((error: unknown) => {
      if (!(error instanceof HelmError)) throw error
      if (missingDependencies.test(error.raw)) explainChart(error)
    })
  }

  function keptVersionIsGone(error: unknown): never {
    const kept = choosable && wantedVersion === undefined
    if (kept && error instanceof HelmError && goneVersion.test(error.raw)) {
      throw new Failure(
        'config',
        `Version ${version ?? ''} of the chart, which is deployed and would be kept, is not in its repository any more.`,
        { advice: 'Set `chart-version` to one that is there.', cause: error },
      )
    }
    throw error
  }
}

/** As a repository says it, and a registry. */
const goneVersion =
  /chart "[^"]*" version "[^"]*" not found|no chart version found|: not found\s*$/i

/** The last part of a name or an address: Helm wants it to be the name of the chart. */
function nameOf(chart: ChartReference): string {
  const name = chart.kind === 'oci' ? chart.url : chart.kind === 'path' ? chart.path : chart.name
  return path.posix.basename(name)
}

function assertSameChart(name: string, deployed: DeployedRevision | undefined): void {
  if (!deployed || deployed.chart.name === name) return
  throw new Failure(
    'config',
    `The release was deployed from the chart ${clean(deployed.chart.name, 100)}, not from ${clean(name, 100)}.`,
    { advice: 'Check `release`, `namespace` and `chart`: one of them names something else.' },
  )
}

/** What `helm show chart` prints; Helm 4 puts the progress of a pull in front, which is a mapping too. */
function readAbout(shown: string) {
  let chart: unknown
  try {
    ;[chart] = parseYaml(shown, 'Chart.yaml', { duplicates: true })
  } catch (cause) {
    throw new Failure('config', 'The Chart.yaml of the chart is not YAML.', { cause })
  }
  const { name, version, type, dependencies } = recordOf(chart)
  if (type === 'library') {
    throw new Failure('config', 'The chart is a library, which cannot be installed.')
  }
  if (typeof name === 'string' && typeof version === 'string') {
    const hasDependencies = Array.isArray(dependencies) && dependencies.length > 0
    return { identity: { name, version }, hasDependencies }
  }
  throw new Failure('config', 'The Chart.yaml of the chart lacks its name or its version.')
}
