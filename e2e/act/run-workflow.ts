/** Runs a workflow of the caller's repository through act, against this project as it is on the disk. */
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import process from 'node:process'
import { createInterface } from 'node:readline'
import { dump } from 'js-yaml'
import { carryOut, note } from '../parts/keeper.ts'
import { marker } from '../parts/program.ts'
import { tools } from '../tools/tools.ts'
import { ActLog, type LogLine, type Result, type StepResult } from './log.ts'
import { cancelStep, type Cancellation } from './processes.ts'
import { actionName, copyProject, leftoversStep, makeCaller, outputsJob } from './repositories.ts'

export interface WorkflowOptions {
  /** A file in `.github/workflows` of the caller: `deploy.yml`, `own-login.yml`, `values-file.yml`. */
  readonly workflow: string
  /** What is given to `workflow_dispatch`; the rest has its defaults. */
  readonly inputs?: Readonly<Record<string, string>>
  readonly secrets?: Readonly<Record<string, string>>
  readonly variables?: Readonly<Record<string, string>>
  /** Of the runner, and so of every step. HOME and TMPDIR are folders of the run unless given here. */
  readonly environment?: Readonly<Record<string, string>>
  /** Program that is `helm` for the steps; without it none is sure to be there. */
  readonly helm?: string
  /** Folder that becomes `chart` in the caller's repository. */
  readonly chart?: string
  /** More files of the caller's repository, by their path in it. */
  readonly files?: Readonly<Record<string, string>>
  /** Files put into the copy of this project, by their path in it, such as a stand-in for an action. */
  readonly projectFiles?: Readonly<Record<string, string>>
  /** Show what was really printed, not what masks leave of it. */
  readonly unmasked?: boolean
  /** Called with each line as it is printed. */
  readonly onLine?: (line: LogLine, run: RunningWorkflow) => void
  /** After that act is ended. */
  readonly limitSeconds?: number
}

export interface RunningWorkflow {
  /** Cancels the step that runs this JavaScript, such as `dist/helm/index.js`, as a runner does. */
  cancelStep(entry: string): Promise<Cancellation>
  /** Kills act. Its steps get a hang-up, as each has act as its terminal. */
  kill(): void
}

export interface WorkflowResult extends Disposable {
  readonly exitCode: number | null
  readonly seconds: number
  /** By their ids; without those that were skipped. */
  readonly jobs: ReadonlyMap<string, Result>
  readonly steps: readonly StepResult[]
  /** Those of the reusable workflow, also when it failed; empty for a workflow that calls none. */
  readonly outputs: ReadonlyMap<string, string>
  /** Everything that the steps printed. */
  readonly log: string
  /** What act itself had to say. */
  readonly messages: readonly string[]
  /** What the jobs left in RUNNER_TEMP, HOME and TMPDIR. Goes when the result is disposed. */
  readonly leftovers: string
  /** The step of that name, the only one. */
  step(name: string): StepResult
}

const root = path.resolve(import.meta.dirname, '../..')

/** Runs a workflow to its end. Rejects when act cannot be started. */
export async function runWorkflow(options: WorkflowOptions): Promise<WorkflowResult> {
  const folder = mkdtempSync(path.join(tmpdir(), 'act-'))
  const forget = note({ remove: folder })
  const remove = () => {
    carryOut({ remove: folder })
    forget()
  }
  try {
    return { ...(await runIn(folder, options)), [Symbol.dispose]: remove }
  } catch (error) {
    remove()
    throw error
  }
}

async function runIn(
  folder: string,
  options: WorkflowOptions,
): Promise<Omit<WorkflowResult, typeof Symbol.dispose>> {
  const project = path.join(folder, 'project')
  const caller = path.join(folder, 'caller')
  const leftovers = path.join(folder, 'leftovers')
  copyProject(project, options.projectFiles ?? {})
  makeCaller(caller, options.chart ?? path.join(root, 'e2e/chart'), options.files ?? {})
  for (const name of ['home', 'tmp']) mkdirSync(path.join(leftovers, name), { recursive: true })

  const start = performance.now()
  const child = spawn(tools.act, actArguments(folder, project, options), {
    cwd: caller,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
    // act hands its own environment to the steps, so that nothing of this machine may be in it.
    env: {
      PATH: pathOf(options),
      HOME: path.join(leftovers, 'home'),
      TMPDIR: path.join(leftovers, 'tmp'),
      LANG: 'C.UTF-8',
      E2E_LEFTOVERS: leftovers,
      NODE_OPTIONS: `--import=${new URL('linger.ts', import.meta.url).href}`,
      ...marker,
      ...options.environment,
    },
  })
  const kill = () => child.kill('SIGKILL')
  const running: RunningWorkflow = {
    cancelStep: (entry) => cancelStep(folder, entry),
    kill,
  }
  const log = new ActLog((line) => {
    options.onLine?.(line, running)
  })
  const forget = child.pid === undefined ? undefined : note({ kill: child.pid })
  const limitSeconds = options.limitSeconds ?? 300
  const limit = setTimeout(kill, limitSeconds * 1000)
  createInterface(child.stdout).on('line', (line) => {
    log.add(line)
  })
  createInterface(child.stderr).on('line', (line) => {
    log.add(line)
  })
  const exitCode = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', resolve)
  }).finally(() => {
    clearTimeout(limit)
    forget?.()
  })

  const isOurs = ({ job, step }: StepResult) => job === outputsJob || step === leftoversStep
  const steps = log.steps.filter((step) => !isOurs(step))
  return {
    exitCode,
    seconds: (performance.now() - start) / 1000,
    jobs: new Map([...log.jobs].filter(([id]) => id !== outputsJob)),
    steps,
    outputs: log.steps.find(({ job }) => job === outputsJob)?.outputs ?? new Map(),
    log: steps.flatMap(({ lines }) => lines.map(({ text }) => `${text}\n`)).join(''),
    messages: log.messages,
    leftovers,
    step: (name) => {
      const found = steps.filter(({ step }) => step === name)
      if (found.length === 1 && found[0]) return found[0]
      throw new Error(
        `${found.length} steps are named "${name}"; act said:\n${log.messages.slice(-20).join('\n')}`,
      )
    },
  }
}

function actArguments(folder: string, project: string, options: WorkflowOptions): string[] {
  // In files and not as arguments, where a look at the process list would find the secrets.
  const settings = path.join(folder, 'settings')
  mkdirSync(settings, { mode: 0o700 })
  const file = (name: string, values: Readonly<Record<string, string>> = {}) => {
    const target = path.join(settings, `${name}.yaml`)
    writeFileSync(target, dump(values), { mode: 0o600 })
    return target
  }
  return [
    'workflow_dispatch',
    ...['--workflows', path.join('.github/workflows', options.workflow)],
    ...['--local-repository', `${actionName}=${project}`],
    ...['--platform', 'ubuntu-24.04=-self-hosted', '--platform', 'self-hosted=-self-hosted'],
    ...['--input-file', file('inputs', options.inputs)],
    ...['--secret-file', file('secrets', options.secrets)],
    ...['--var-file', file('variables', options.variables)],
    ...['--env-file', file('environment')],
    ...['--action-cache-path', path.join(folder, 'cache'), '--no-cache-server'],
    '--json',
    ...(options.unmasked === true ? ['--insecure-secrets'] : []),
  ]
}

/** Node 24 comes first, since act runs what it finds; then the chosen Helm. */
function pathOf({ helm }: WorkflowOptions): string {
  return [
    path.dirname(process.execPath),
    ...(helm === undefined ? [] : [path.dirname(helm)]),
    process.env['PATH'] ?? '',
  ].join(path.delimiter)
}
