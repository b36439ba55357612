/** The export action: from its inputs through the story to its outputs. */
import { type Action, type ActionDependencies, createAction } from './action.ts'
import type { PullRequest, PullRequestAddress } from './agent-job.ts'
import { type Inputs, readInputs } from './inputs.ts'
import { outputNames, toOutputs } from './outputs.ts'
import { emptyReceipt } from './receipt.ts'
import { toAnnotation } from './report.ts'
import { routeLines } from './route.ts'
import { run } from './run.ts'
import { toSummary } from './summary.ts'
import { assertWritable, targetsOf } from './targets.ts'
import { clean, shortestSecretLength } from './text.ts'
import { formatDuration } from './units.ts'

export interface ExportActionDependencies extends ActionDependencies {
  readonly readPullRequest: (
    address: PullRequestAddress,
    access: { apiUrl: string; token: string; signal: AbortSignal },
  ) => Promise<PullRequest>
}

/** Prepares an export; nothing is sent before it runs. */
export function createExportAction(dependencies: ExportActionDependencies): Action {
  const { runner, environment } = dependencies
  const receipt = emptyReceipt()
  // Read by itself, so that it holds also when another input is wrong.
  const writesSummary = !/^(?:false|False|FALSE)$/.test(runner.input('summary').trim())
  let inputs: Inputs | undefined

  return createAction(dependencies, {
    title: 'Static export',
    outputNames,
    async run() {
      inputs = readInputs(
        (name) => runner.input(name),
        (message) => {
          runner.warning(message)
        },
        {
          disk: dependencies.disk,
          workspace: environment['GITHUB_WORKSPACE'] || dependencies.machine.workingDirectory,
          home: dependencies.machine.homeDirectory,
        },
      )
      assertWritable(targetsOf(inputs.delivery), dependencies.disk)
      if (inputs.githubToken.length >= shortestSecretLength) runner.mask(inputs.githubToken)
      logInputs(inputs)
      await run(inputs, storyDependencies(inputs), receipt)
    },
    outputs: (failure) => toOutputs(receipt, failure),
    annotation: (failure) => toAnnotation(failure, receipt),
    summary: (failure, times) =>
      writesSummary ? toSummary({ receipt, inputs, failure, ...times }) : undefined,
  })

  function storyDependencies({ githubToken: token }: Inputs) {
    const { network, storage, disk, machine, clock, random, signal } = dependencies
    const serverUrl = URL.parse(environment['GITHUB_SERVER_URL'] ?? '')
    const apiUrl = environment['GITHUB_API_URL'] ?? 'https://api.github.com'
    return {
      network,
      storage,
      disk,
      platform: machine.platform,
      temporaryDirectory: environment['RUNNER_TEMP'] || machine.temporaryDirectory,
      clock,
      random,
      signal,
      log: runner,
      mask: (secret: string) => {
        runner.mask(secret)
      },
      onJobId: (jobId: string) => {
        runner.output('jobId', jobId)
      },
      serverUrl: serverUrl ?? new URL('https://github.com'),
      readPullRequest: (address: PullRequestAddress, readSignal: AbortSignal) =>
        dependencies.readPullRequest(address, { apiUrl, token, signal: readSignal }),
    }
  }

  function logInputs(known: Inputs): void {
    const { baseUrl, domain, jobId, version, paths, timeoutMs, pollIntervalMs, agentJob } = known
    const { bundleFile, siteDirectory, chartValues } = known.delivery
    const lines = [
      ...routeLines(baseUrl, environment, runner),
      domain && `Domain: ${domain}`,
      jobId && `Attach to job: ${jobId}`,
      version && `Version: ${clean(version)}`,
      paths.length > 0 && `Paths: ${clean(paths.join(', '))}`,
      `Timeout: ${formatDuration(timeoutMs)}`,
      `Poll interval: ${pollIntervalMs === undefined ? 'adaptive' : formatDuration(pollIntervalMs)}`,
      bundleFile && `Archive to: ${clean(bundleFile)}`,
      siteDirectory && `Site to: ${clean(siteDirectory)}`,
      chartValues && `Chart values to: ${clean(chartValues.file)} (${chartValues.key})`,
      agentJob && `Agent job: ${agentJob.jobId}${agentJob.wait ? ' (wait until it ends)' : ''}`,
    ]
    runner.details(
      'Inputs',
      lines.filter((line) => typeof line === 'string'),
    )
  }
}
