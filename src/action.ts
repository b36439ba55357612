/** An action between its first line and its last output; the only place that catches. */
import type { Clock } from './clock.ts'
import type { Disk } from './disk.ts'
import { type Failure, toFailure } from './errors.ts'
import type { Network, Storage } from './network.ts'
import type { Environment, Runner } from './runner.ts'
import { shortestSecretLength } from './text.ts'

/** What every action works with. */
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
}

/** What the process knows of the machine where the runner does not say it. */
export interface Machine {
  readonly platform: NodeJS.Platform
  readonly workingDirectory: string
  readonly homeDirectory: string
  readonly temporaryDirectory: string
}

/** What an action does, and what it says of it: all that differs between the actions. */
export interface Story<OutputName extends string> {
  /** Stands in front of the code in the annotation of a failure. */
  readonly title: string
  readonly outputNames: readonly OutputName[]
  /** Reads the inputs and does the work; rejects with a Failure, see errors.ts. */
  run(): Promise<void>
  /** What a failure from outside the run says, when the run cannot tell it any more. */
  interrupted?(failure: Failure): Failure
  /** The value of every output, empty where it does not apply. */
  outputs(failure: Failure | undefined): Readonly<Record<OutputName, string>>
  /** The text of the one annotation of a failed run. */
  annotation(failure: Failure): string
  /** The summary in Markdown, on every outcome; undefined when none is wanted. */
  summary(failure: Failure | undefined, times: RunTimes): string | undefined
}

export interface RunTimes {
  /** In epoch milliseconds. */
  readonly startedWallMs: number
  readonly durationMs: number
}

export interface Action {
  /** Runs to the end, whatever it is; resolves with the exit code and never rejects. */
  run(): Promise<0 | 1>
  /** Reports a failure from outside the run (a signal, an uncaught error), unless the end was already reported. */
  fail(error: unknown): void
}

/** Prepares a run; nothing happens before `run`. */
export function createAction<OutputName extends string>(
  { runner, clock }: Pick<ActionDependencies, 'runner' | 'clock'>,
  story: Story<OutputName>,
): Action {
  const startedMs = clock.nowMs()
  const startedWallMs = clock.wallMs()
  let reported = false

  return {
    async run() {
      try {
        // Masked before anything can repeat it, also when it turns out to be no key.
        const apiKey = runner.input('api-key').trim()
        if (apiKey.length >= shortestSecretLength) runner.mask(apiKey)
        runner.checkOutputs()
        await story.run()
        return report(undefined)
      } catch (error) {
        return report(toFailure(error))
      }
    },
    fail(error) {
      const failure = toFailure(error)
      report(story.interrupted?.(failure) ?? failure)
    },
  }

  /** Outputs first, since they are what other steps wait for; the annotation last, where people look. */
  function report(failure: Failure | undefined): 0 | 1 {
    if (reported) return 1
    reported = true
    const end = writeOutputs(failure)
    const durationMs = clock.nowMs() - startedMs
    const markdown = story.summary(end, { startedWallMs, durationMs })
    if (markdown !== undefined) runner.summary(markdown)
    if (!end) return 0
    runner.error(`${story.title}: ${end.code}`, story.annotation(end))
    return 1
  }

  /** What is written last wins over anything that was injected before; a link is not left beside a failure. */
  function writeOutputs(failure: Failure | undefined): Failure | undefined {
    const unwritable = writeEach(failure)
    if (failure || !unwritable) return failure
    writeEach(unwritable)
    return unwritable
  }

  /** Writes every output that can be written; returns the first problem. */
  function writeEach(failure: Failure | undefined): Failure | undefined {
    let problem: Failure | undefined
    const outputs = story.outputs(failure)
    for (const name of story.outputNames) {
      try {
        runner.output(name, outputs[name])
      } catch (error) {
        problem ??= toFailure(error)
      }
    }
    return problem
  }
}
