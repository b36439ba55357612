/**
 * The runner: its log, its outputs, its summary and its secrets. The only place that knows workflow
 * commands and the files behind `GITHUB_OUTPUT` and `GITHUB_STEP_SUMMARY`.
 */
import { appendFileSync, closeSync, constants, openSync, statSync } from 'node:fs'
import * as core from '@actions/core'
import { Failure } from './errors.ts'
import type { Log } from './log.ts'
import { clean } from './text.ts'

export interface Runner extends Log {
  /** The text of an input, or an empty string. */
  input(name: string): string
  /** Makes the runner hide a value in everything that is printed from now on. */
  mask(secret: string): void
  /**
   * Opens the outputs file for a moment, so that a whole wait is not lost for it.
   *
   * @throws Failure `environment`
   */
  checkOutputs(): void
  /** @throws Failure `environment` when it cannot be written */
  output(name: string, value: string): void
  /** The one annotation of a failed run. */
  error(title: string, message: string): void
  /** Adds to the run summary; rejects nothing: what cannot be written is a warning. */
  summary(markdown: string): void
}

export type Environment = Readonly<Record<string, string | undefined>>

/** "Max 10 annotations per type per step" (actions/runner, ExecutionContext.cs): the tenth says so. */
const maxWarnings = 9
const maxSummaryBytes = 64 * 1024
/** Above 1 MiB the runner drops the whole file (actions/runner, FileCommandManager.cs). */
const fullSummaryBytes = 900 * 1024

/** Connects to the runner that started this process. */
export function connectRunner(environment: Environment): Runner {
  const warned = new Set<string>()

  const runner: Runner = {
    input: (name) => core.getInput(name, { trimWhitespace: false }),
    mask(secret) {
      core.setSecret(secret)
    },
    info(line) {
      core.info(line)
    },
    details(title, lines) {
      if (lines.length === 0) {
        core.info(title)
        return
      }
      core.startGroup(title)
      for (const line of lines) core.info(line)
      core.endGroup()
    },
    debug(line) {
      core.debug(line)
    },
    warning(message) {
      if (warned.has(message)) return
      warned.add(message)
      if (warned.size <= maxWarnings) core.warning(message)
      else core.info(`Warning: ${message}`)
    },
    error(title, message) {
      core.error(message, { title })
    },
    checkOutputs() {
      try {
        closeSync(openSync(outputsFile(environment), constants.O_WRONLY | constants.O_APPEND))
      } catch (error) {
        throw unwritableOutputs(error)
      }
    },
    output(name, value) {
      try {
        outputsFile(environment) // without it, core prints the output to the log
        core.setOutput(name, value)
      } catch (error) {
        throw unwritableOutputs(error)
      }
    },
    summary(markdown) {
      const path = environment['GITHUB_STEP_SUMMARY']
      if (!path) {
        core.debug('GITHUB_STEP_SUMMARY is not set; no summary is written.')
        return
      }
      try {
        const stats = statSync(path, { throwIfNoEntry: false })
        // A pipe without a reader would hold the process for ever.
        if (stats && !stats.isFile()) throw new Error('it is not a file')
        if (stats && stats.size > fullSummaryBytes) throw new Error('it is nearly full')
        if (Buffer.byteLength(markdown) > maxSummaryBytes) throw new Error('the text is too long')
        appendFileSync(path, `\n${markdown}`)
      } catch (error) {
        runner.warning(`The run summary could not be written: ${reasonOf(error)}`)
      }
    },
  }
  return runner
}

function outputsFile(environment: Environment): string {
  const path = environment['GITHUB_OUTPUT']
  if (!path) throw new Error('it is not set')
  return path
}

function unwritableOutputs(error: unknown): Failure {
  const what = `The file of GITHUB_OUTPUT cannot be written: ${reasonOf(error)}`
  return new Failure('environment', what, { cause: error })
}

function reasonOf(error: unknown): string {
  return clean(Error.isError(error) ? error.message : String(error), 200)
}
