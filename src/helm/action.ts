/** The Helm action: from its inputs through the story to its outputs. */
import { type Action, type ActionDependencies, createAction } from '../action.ts'
import { Failure } from '../errors.ts'
import type { ObjectStorage } from '../network.ts'
import { describeLink } from '../link.ts'
import { emptyReceipt } from '../receipt.ts'
import { toAnnotation } from '../report.ts'
import { routeLines } from '../route.ts'
import { clean, shortestSecretLength } from '../text.ts'
import { count, formatDuration } from '../units.ts'
import { type ChartReference, hasVersions } from './chart.ts'
import { deploy } from './deploy.ts'
import type { HelmReleases } from './helm-download.ts'
import { type HelmInputs, readHelmInputs } from './inputs.ts'
import { helmOutputNames, toHelmOutputs } from './outputs.ts'
import type { RunCommand } from './process.ts'
import { emptyHelmReceipt } from './receipt.ts'
import { lookFirst } from './release.ts'
import { toHelmSummary } from './summary.ts'

export interface HelmActionDependencies extends ActionDependencies {
  readonly runCommand: RunCommand
  readonly architecture: string
  readonly objectStorage: ObjectStorage
  /** Only tests set others. */
  readonly releases?: HelmReleases
}

/** Prepares a deployment; nothing is sent before it runs. */
export function createHelmAction(dependencies: HelmActionDependencies): Action {
  const { runner, environment, machine } = dependencies
  const receipt = emptyHelmReceipt(emptyReceipt())
  let inputs: HelmInputs | undefined

  return createAction(dependencies, {
    title: 'Helm deployment',
    outputNames: helmOutputNames,
    async run() {
      const workspace = environment['GITHUB_WORKSPACE'] || machine.workingDirectory
      const password = runner.input('chart-password')
      if (password.length >= shortestSecretLength) runner.mask(password)
      inputs = await readHelmInputs(
        (name) => runner.input(name),
        (message) => {
          runner.warning(message)
        },
        { disk: dependencies.disk, workspace },
      )
      logInputs(inputs)
      await deploy(
        inputs,
        {
          ...dependencies,
          ...machine,
          workspace,
          temporaryDirectory: environment['RUNNER_TEMP'] || machine.temporaryDirectory,
          log: runner,
          mask: (secret) => {
            runner.mask(secret)
          },
          onJobId: (jobId) => {
            runner.output('jobId', jobId)
          },
        },
        receipt,
      )
    },
    interrupted(failure) {
      if (!inputs || !receipt.attempted || receipt.live) return failure
      const look = lookFirst(inputs, receipt.before?.revision)
      return new Failure(failure.code, `${failure.message} What it left is not known. ${look}`)
    },
    outputs: (failure) => toHelmOutputs(receipt, failure),
    annotation: (failure) => toAnnotation(failure, receipt.exported),
    summary: (failure, times) => toHelmSummary({ receipt, inputs, failure, ...times }),
  })

  function logInputs(known: HelmInputs): void {
    const { mirror, verifyUrl, callerValues } = known
    const ownValues = [
      callerValues.files.length > 0 && count(callerValues.files.length, 'file'),
      callerValues.text !== undefined && 'text',
    ].filter((part) => typeof part === 'string')
    const lines = [
      ...routeLines(known.baseUrl, environment, runner),
      `Export job: ${known.jobId}`,
      `Release: ${known.release} in ${known.namespace}`,
      `Chart: ${clean(describeChart(known.chart))}`,
      hasVersions(known.chart) && `Chart version: ${clean(known.chartVersion ?? 'as deployed')}`,
      `Your values: ${ownValues.length === 0 ? 'none' : ownValues.join(' and ')}`,
      `Values key: ${known.valuesKey}`,
      known.version && `Version: ${clean(known.version)}`,
      `Timeout: ${formatDuration(known.timeoutMs)}, of Helm ${formatDuration(known.helmTimeoutMs)}`,
      mirror && `Mirror: bucket ${clean(mirror.bucket)}, ${clean(mirror.baseUrl.href)} for pods`,
      verifyUrl && `Verify: ${describeLink(verifyUrl)}`,
    ]
    runner.details(
      'Inputs',
      lines.filter((line) => typeof line === 'string'),
    )
  }
}

function describeChart(chart: ChartReference): string {
  switch (chart.kind) {
    case 'path':
      return chart.path
    case 'oci':
      return chart.url
    case 'repository':
      return `${chart.name} of ${chart.url}`
    case 'named':
      return chart.name
  }
}
