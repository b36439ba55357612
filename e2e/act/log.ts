/** What `act --json` prints, read back into steps. */
import { parseCommand } from '../../scripts/local-runner.ts'

/** A line that a step printed, or a workflow command of it such as `error`. */
export interface LogLine {
  /** The id of the job in its workflow. */
  readonly job: string
  /** The name of the step. */
  readonly step: string
  readonly text: string
  /** The name of the command, when the line is one. */
  readonly command?: string
}

export interface StepResult {
  readonly job: string
  readonly step: string
  readonly lines: LogLine[]
  /** The texts of its error annotations. */
  readonly errors: string[]
  /** What it asked to be masked from then on. */
  readonly masks: string[]
  readonly outputs: Map<string, string>
  /** Markdown, empty without one. */
  summary: string
  result: Result | undefined
}

/** What is skipped does not appear at all. */
export type Result = 'success' | 'failure'

/** One line of act's own log. Only `msg` is masked; the other fields show what a mask would hide. */
interface Entry {
  readonly msg: string
  readonly level?: string
  readonly jobID?: string
  readonly step?: string
  readonly stage?: string
  readonly raw_output?: boolean
  readonly command?: string
  readonly name?: string
  readonly arg?: string
  readonly stepResult?: Result
  readonly jobResult?: Result
}

/** Takes the lines of act one by one. */
export class ActLog {
  readonly steps: StepResult[] = []
  readonly jobs = new Map<string, Result>()
  /** What act itself says, such as why it could not start. */
  readonly messages: string[] = []
  readonly #onLine: (line: LogLine) => void

  constructor(onLine: (line: LogLine) => void) {
    this.#onLine = onLine
  }

  add(text: string): void {
    const entry = parseEntry(text)
    const { jobID: job, jobResult } = entry
    if (job !== undefined && jobResult !== undefined) this.jobs.set(job, jobResult)
    if (job === undefined || entry.step === undefined || entry.stage !== 'Main') {
      this.messages.push(entry.msg)
      return
    }
    this.#addToStep(this.#stepOf(job, entry.step), entry)
  }

  #stepOf(job: string, step: string): StepResult {
    const known = this.steps.find((one) => one.job === job && one.step === step)
    if (known !== undefined) return known
    const added: StepResult = {
      job,
      step,
      lines: [],
      errors: [],
      masks: [],
      outputs: new Map(),
      summary: '',
      result: undefined,
    }
    this.steps.push(added)
    return added
  }

  #addToStep(step: StepResult, entry: Entry): void {
    if (entry.stepResult !== undefined) step.result = entry.stepResult
    if (entry.raw_output === true) {
      this.#print(step, { text: entry.msg.replace(/\r?\n$/, '') })
    } else if (entry.command === 'set-output') {
      step.outputs.set(entry.name ?? '', entry.arg ?? '')
    } else if (entry.command === 'summary') {
      step.summary += entry.msg.replace(/^\s*\S+\s+Summary - /, '')
    } else if (entry.command === 'add-mask') {
      step.masks.push(entry.arg ?? '')
    } else if (entry.command !== undefined) {
      // act puts a sign before the line that the step printed.
      const text = entry.msg.replace(/^\s*[^\s:#]+\s+/, '').trimEnd()
      const command = entry.command === 'ignored' ? undefined : parseCommand(text)
      if (command === undefined) {
        this.#print(step, { text })
        return
      }
      if (command.name === 'error') step.errors.push(command.data)
      this.#print(step, { text: command.data, command: command.name })
    }
  }

  #print(step: StepResult, line: Omit<LogLine, 'job' | 'step'>): void {
    const whole = { job: step.job, step: step.step, ...line }
    step.lines.push(whole)
    this.#onLine(whole)
  }
}

function parseEntry(text: string): Entry {
  try {
    return JSON.parse(text) as Entry
  } catch {
    return { msg: text }
  }
}
