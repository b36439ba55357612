/** Helm: one method for each of its commands that is used, its output read, its errors told. */
import path from 'node:path'
import { Failure } from '../errors.ts'
import { formatDuration } from '../units.ts'
import type { Redactor } from './redactor.ts'
import { type JsonRecord, recordOf, recordsIn, textOf } from './json.ts'
import { CommandFault, type CommandResult, type RunCommand } from './process.ts'

export interface HelmDependencies {
  readonly run: RunCommand
  /** The binary. */
  readonly file: string
  readonly major: 3 | 4
  /** Without any input of the action; with what Helm needs to find the cluster. */
  readonly environment: Readonly<Record<string, string>>
  /** Empty: Helm prefers a folder below it to a chart of the same name in a repository. */
  readonly directory: string
  readonly release: string
  readonly namespace: string
  readonly kubeContext: string | undefined
  readonly redactor: Redactor
}

/** How long a command may take, and what ends it sooner. */
export interface Within {
  readonly signal: AbortSignal
  readonly maxMs: number
}

export interface ReleaseStatus {
  /** The newest revision, whatever became of it. */
  readonly revision: number
  /** `deployed`, `failed`, `pending-upgrade`, … */
  readonly status: string
  readonly lastDeployed: string
  /** Live objects by kind, with the pods of the workloads under `v1/Pod(related)`. */
  readonly resources: Readonly<Record<string, unknown>>
  /** Those of the chart; they are not among the resources, nor are their pods. */
  readonly hooks: readonly Hook[]
}

/** What a chart has Helm run before or after, most often a Job. */
export interface Hook {
  readonly kind: string
  readonly name: string
  /** `Running`, `Succeeded` or `Failed`; empty when this revision has not run it. */
  readonly phase: string
}

export interface Revision {
  readonly revision: number
  readonly status: string
  readonly updated: string
}

export interface ChartIdentity {
  readonly name: string
  readonly version: string
}

export interface Upgrade {
  /** The chart as arguments: its reference and where it comes from. */
  readonly chart: readonly string[]
  readonly existingValues: 'keep' | 'reset'
  /** Absolute paths, in order; ours come last, by standard input. */
  readonly valuesFiles: readonly string[]
  readonly ownValues: string
  readonly createNamespace: boolean
  /** Bounds each hook and each wait of Helm. */
  readonly timeoutMs: number
}

/** Methods reject with a {@link HelmError} when Helm says no, and with the reason of the signal. */
export interface Helm {
  /** Undefined when there is no such release. */
  status(within: Within): Promise<ReleaseStatus | undefined>
  /** Newest first. */
  history(within: Within): Promise<readonly Revision[]>
  chartOf(revision: number, within: Within): Promise<ChartIdentity>
  /** The values that a revision was given, without those of its chart. */
  valuesOf(revision: number, within: Within): Promise<unknown>
  /** What `helm show chart` prints. */
  showChart(chart: readonly string[], within: Within): Promise<string>
  /** Renders a chart without the cluster and without values. */
  renderAlone(chart: readonly string[], within: Within): Promise<void>
  /** All that the chart has rendered for a revision. */
  manifestOf(revision: number, within: Within): Promise<string>
  /** The hooks that the chart has rendered for a revision; they are no part of its manifest. */
  hooksOf(revision: number, within: Within): Promise<string>
  upgrade(upgrade: Upgrade, within: Within): Promise<void>
  rollback(revision: number, timeoutMs: number | undefined, within: Within): Promise<void>
  uninstall(timeoutMs: number | undefined, within: Within): Promise<void>
  /** Renders a chart with the cluster at hand, so that its `lookup`s are answered. */
  render(chartDirectory: string, values: string, within: Within): Promise<string>
  login(
    command: { readonly args: readonly string[]; readonly stdin: string },
    within: Within,
  ): Promise<void>
}

/** Helm ended with an error. */
export class HelmError extends Error {
  override readonly name = 'HelmError'
  /** The command, such as `helm upgrade`. */
  readonly command: string
  /** What Helm wrote to its error output, whole and raw: to be recognised, never to be shown. */
  readonly raw: string
  /** Its last words, without secrets, for a line of the log. */
  readonly said: string

  constructor(command: string, raw: string, said: string) {
    super(`${command} failed: ${said}`)
    this.command = command
    this.raw = raw
    this.said = said
  }
}

/** So long an answer of Helm is read in an error message. */
const maxSaidLength = 700

export function createHelm(dependencies: HelmDependencies): Helm {
  const { major, release, namespace, kubeContext, redactor } = dependencies
  const place = [
    '--namespace',
    namespace,
    ...(kubeContext === undefined ? [] : ['--kube-context', kubeContext]),
  ]

  return {
    async status(within) {
      const live = major === 3 ? ['--show-resources'] : []
      const reply = await askIfExists(['status', release, ...place, ...live, '-o', 'json'], within)
      if (reply === undefined) return undefined
      const { version, info, hooks } = recordOf(reply)
      const { status, last_deployed: lastDeployed, resources } = recordOf(info)
      return {
        revision: Number(version),
        status: textOf(status),
        lastDeployed: textOf(lastDeployed),
        resources: recordOf(resources),
        hooks: recordsIn(hooks).map(toHook),
      }
    },

    async history(within) {
      const reply = await askIfExists(['history', release, ...place, '-o', 'json'], within)
      return recordsIn(reply)
        .map((entry) => ({
          revision: Number(entry['revision']),
          status: textOf(entry['status']),
          updated: textOf(entry['updated']),
        }))
        .sort((a, b) => b.revision - a.revision)
    },

    async chartOf(revision, within) {
      const args = ['get', 'metadata', release, ...place, '--revision', String(revision)]
      const { chart, version } = recordOf(await ask([...args, '-o', 'json'], within))
      return { name: textOf(chart), version: textOf(version) }
    },

    valuesOf: (revision, within) =>
      ask(
        ['get', 'values', release, ...place, '--revision', String(revision), '-o', 'json'],
        within,
      ),

    showChart: async (chart, within) => (await succeed(['show', 'chart', ...chart], within)).stdout,

    async renderAlone(chart, within) {
      await succeed(['template', release, ...chart, '--namespace', namespace], within)
    },

    manifestOf: (revision, within) => show('manifest', revision, within),

    hooksOf: (revision, within) => show('hooks', revision, within),

    async upgrade(upgrade, within) {
      const values = [...upgrade.valuesFiles.map(toListItem), '-']
      const args = [
        ...['upgrade', release, ...upgrade.chart, '--install', '--wait', ...place],
        ...['--timeout', toHelmDuration(upgrade.timeoutMs)],
        upgrade.existingValues === 'keep' ? '--reset-then-reuse-values' : '--reset-values',
        ...values.flatMap((file) => ['--values', file]),
        ...(upgrade.createNamespace ? ['--create-namespace'] : []),
      ]
      await succeed(args, within, upgrade.ownValues)
    },

    async rollback(revision, timeoutMs, within) {
      const args = ['rollback', release, String(revision), ...place, ...waiting(timeoutMs)]
      await succeed(args, within)
    },

    async uninstall(timeoutMs, within) {
      await succeed(['uninstall', release, ...place, ...waiting(timeoutMs)], within)
    },

    async render(chartDirectory, values, within) {
      const args = [
        ...['template', release, chartDirectory, ...place, '--dry-run=server'],
        // Else Helm 4 asks whether what is rendered exists, and loads the schema of the cluster for it.
        ...['--is-upgrade', '--disable-openapi-validation'],
      ]
      return (await succeed([...args, '--values', '-'], within, values)).stdout
    },

    async login({ args, stdin }, within) {
      await succeed(args, within, stdin)
    },
  }

  /** As JSON; undefined when Helm knows no such release. */
  async function askIfExists(args: readonly string[], within: Within): Promise<unknown> {
    try {
      return await ask(args, within)
    } catch (error) {
      if (error instanceof HelmError && /release: not found/.test(error.raw)) return undefined
      throw error
    }
  }

  async function show(what: string, revision: number, within: Within): Promise<string> {
    const args = ['get', what, release, ...place, '--revision', String(revision)]
    return (await succeed(args, within)).stdout
  }

  async function ask(args: readonly string[], within: Within): Promise<unknown> {
    const { stdout } = await succeed(args, within)
    try {
      return JSON.parse(stdout) as unknown
    } catch (cause) {
      const what = `\`helm ${commandOf(args)}\` gave an answer that is no JSON.`
      throw new Failure('deploy-failed', what, { cause })
    }
  }

  async function succeed(
    args: readonly string[],
    { signal, maxMs }: Within,
    input?: string,
  ): Promise<CommandResult> {
    const { file, environment, directory } = dependencies
    const command = `helm ${commandOf(args)}`
    let result: CommandResult
    try {
      const options = { environment, directory, input, signal, maxMs }
      result = await dependencies.run(file, args, options)
    } catch (error) {
      if (!(error instanceof CommandFault)) throw error
      if (error.kind === 'too-slow') throw tooSlow(command, maxMs)
      const what = `Helm could not be started (${path.basename(file)}, ${error.message}).`
      const advice = 'Is the `helm` on this machine a program for its system and processor?'
      throw new Failure('environment', what, { advice, cause: error })
    }
    if (result.exitCode === 0) return result
    const raw = result.stderr === '' ? result.stdout : result.stderr
    const words = shorten(redactor.redact(lastWords(raw) || silence(result)))
    throw new HelmError(command, raw, redactor.toLine(words, maxSaidLength))
  }
}

function waiting(timeoutMs: number | undefined): string[] {
  return timeoutMs === undefined ? [] : ['--wait', '--timeout', toHelmDuration(timeoutMs)]
}

/** A duration as Go reads it; at least a second. */
function toHelmDuration(durationMs: number): string {
  return `${Math.max(1, Math.ceil(durationMs / 1000))}s`
}

/** `--values` takes a list in CSV. */
function toListItem(file: string): string {
  return /[",\n]/.test(file) ? `"${file.replaceAll('"', '""')}"` : file
}

/** The words before the first name or flag. */
function commandOf(args: readonly string[]): string {
  const [first = '', second = ''] = args
  return ['get', 'show', 'repo', 'registry'].includes(first) ? `${first} ${second}` : first
}

/**
 * Helm's error is its last paragraph; warnings and debugging stand before it. Only at the start of a line: a chart or a
 * webhook may speak of an error in the middle of it.
 */
function lastWords(raw: string): string {
  const at = `\n${raw}`.lastIndexOf('\nError: ')
  const words = at === -1 ? raw : raw.slice(at + 'Error: '.length)
  return (
    words
      .replace(/^[A-Z]+ FAILED: /, '')
      // A schema of a chart quotes the value that it refuses, which may be anybody's password.
      .replace(/(at '[^'\n]*': )'[^]*?'(?= (?:does not match pattern|is not valid))/g, "$1'…'")
      .trim()
  )
}

/** What a Helm that has said nothing ended with. */
function silence({ exitCode, signalName }: CommandResult): string {
  if (signalName === undefined) return `nothing (exit code ${exitCode ?? 'unknown'})`
  return `nothing (it was ended by ${signalName}; does this machine have memory enough?)`
}

/** Kubernetes quotes whole objects, and gives its reason behind them. */
function shorten(words: string): string {
  if (words.length <= maxSaidLength) return words
  const half = Math.floor(maxSaidLength / 2) - 2
  return `${words.slice(0, half)} … ${words.slice(-half)}`
}

/** In place of Helm's words when it was ended for being slow. */
export const slowMark = 'too slow'

function tooSlow(command: string, maxMs: number): HelmError {
  return new HelmError(command, slowMark, `nothing (it was ended after ${formatDuration(maxMs)}).`)
}

function toHook({ kind, name, last_run: lastRun }: JsonRecord): Hook {
  return { kind: textOf(kind), name: textOf(name), phase: textOf(recordOf(lastRun)['phase']) }
}
