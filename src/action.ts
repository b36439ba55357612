/** One run of the action between its inputs and its outputs; the only place that catches. */
import type { PullRequest, PullRequestAddress } from './agent-job.ts'
import type { Clock } from './clock.ts'
import type { Disk } from './disk.ts'
import { type Failure, toFailure } from './errors.ts'
import { type Inputs, readInputs } from './inputs.ts'
import { type Network, type Storage, routeTo } from './network.ts'
import { outputNames, toOutputs } from './outputs.ts'
import { emptyReceipt } from './receipt.ts'
import { toAnnotation } from './report.ts'
import { run } from './run.ts'
import type { Environment, Runner } from './runner.ts'
import { toSummary } from './summary.ts'
import { assertWritable, targetsOf } from './targets.ts'
import { clean, shortestSecretLength } from './text.ts'
import { formatDuration } from './units.ts'

export interface ActionDependencies {
  readonly runner: Runner
  readonly environment: Environment
  readonly network: Network
  readonly storage: Storage
  readonly disk: Disk
  readonly machine: Machine
  readonly clock: Clock
  /** From 0 to 1. */
  readonly random: () => number
  /** Aborted, with a Failure as the reason, when the run is cancelled. */
  readonly signal: AbortSignal
  readonly readPullRequest: (
    address: PullRequestAddress,
    access: { apiUrl: string; token: string; signal: AbortSignal },
  ) => Promise<PullRequest>
}

/** What the process knows of the machine where the runner does not say it. */
export interface Machine {
  readonly platform: NodeJS.Platform
  readonly workingDirectory: string
  readonly homeDirectory: string
  readonly temporaryDirectory: string
}

export interface Action {
  /** Runs to the end, whatever it is; resolves with the exit code and never rejects. */
  run(): Promise<0 | 1>
  /** Reports a failure from outside the run (a signal, an uncaught error), unless the end was already reported. */
  fail(error: unknown): void
}

/** Prepares a run; nothing is sent before `run`. */
export function createAction(dependencies: ActionDependencies): Action {
  const { runner, environment, clock } = dependencies
  const receipt = emptyReceipt()
  const startedMs = clock.nowMs()
  const startedWallMs = clock.wallMs()
  // Read by itself, so that it holds also when another input is wrong.
  const writesSummary = !/^(?:false|False|FALSE)$/.test(runner.input('summary').trim())
  let inputs: Inputs | undefined
  let reported = false

  return {
    async run() {
      try {
        // Masked before anything can repeat it, also when it turns out to be no key.
        const apiKey = runner.input('api-key').trim()
        if (apiKey.length >= shortestSecretLength) runner.mask(apiKey)
        runner.checkOutputs()
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
        return report(undefined)
      } catch (error) {
        return report(toFailure(error))
      }
    },
    fail(error) {
      report(toFailure(error))
    },
  }

  /** Outputs first, since they are what other steps wait for; the annotation last, where people look. */
  function report(failure: Failure | undefined): 0 | 1 {
    if (reported) return 1
    reported = true
    const end = writeOutputs(failure)
    if (writesSummary) {
      const durationMs = clock.nowMs() - startedMs
      runner.summary(toSummary({ receipt, inputs, failure: end, startedWallMs, durationMs }))
    }
    if (!end) return 0
    runner.error(`Static export: ${end.code}`, toAnnotation(end, receipt))
    return 1
  }

  /** What is written last wins over anything that was injected before; a link is not left beside a failure. */
  function writeOutputs(failure: Failure | undefined): Failure | undefined {
    const unwritable = writeEach(failure)
    if (failure || !unwritable) return failure
    writeEach(unwritable)
    return unwritable
  }

  /** Writes every output that can be written, empty where it does not apply; returns the first problem. */
  function writeEach(failure: Failure | undefined): Failure | undefined {
    let problem: Failure | undefined
    const outputs = toOutputs(receipt, failure)
    for (const name of outputNames) {
      try {
        runner.output(name, outputs[name])
      } catch (error) {
        problem ??= toFailure(error)
      }
    }
    return problem
  }

  function storyDependencies({ githubToken: token }: Inputs) {
    const { network, storage, disk, machine, random, signal } = dependencies
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
    const route = routeTo(known.baseUrl, environment)
    if (route.via === 'unusable-proxy') {
      runner.warning(
        'The proxy variable of the environment (HTTPS_PROXY or HTTP_PROXY) is not an http address: requests may pass it by, or fail.',
      )
    }
    const { baseUrl, domain, jobId, version, paths, timeoutMs, pollIntervalMs, agentJob } = known
    const { bundleFile, siteDirectory, chartValues } = known.delivery
    const lines = [
      `Admin API: ${baseUrl.host}${baseUrl.pathname === '/' ? '' : clean(baseUrl.pathname)}`,
      route.via === 'proxy' ? `Proxy: ${route.proxyHost}` : 'Proxy: none',
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
