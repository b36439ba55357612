/** The Helm action: from its inputs through the story to its outputs. */
import { type Action, type ActionDependencies, createAction } from '../action.ts'
import type { ObjectStorage } from '../network.ts'
import { emptyReceipt } from '../receipt.ts'
import { toAnnotation } from '../report.ts'
import { shortestSecretLength } from '../text.ts'
import { deploy } from './deploy.ts'
import { type HelmInputs, readHelmInputs } from './inputs.ts'
import type { HelmReleases } from './installation.ts'
import { helmOutputNames, toHelmOutputs } from './outputs.ts'
import type { RunCommand } from './process.ts'
import { emptyHelmReceipt } from './receipt.ts'
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
    outputs: (failure) => toHelmOutputs(receipt, failure),
    annotation: (failure) => toAnnotation(failure, receipt.exported),
    summary: (failure, times) => toHelmSummary({ receipt, inputs, failure, ...times }),
  })
}
