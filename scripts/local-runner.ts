/**
 * What a runner does around a JavaScript action, on this machine: defaults from `action.yml`, `INPUT_*`
 * variables, the files behind outputs and summary, and its reading of the log. For the demo and the tests.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import process from 'node:process'
import { createInterface } from 'node:readline'
import { load } from 'js-yaml'

interface ActionManifest {
  readonly inputs: Record<string, { readonly default?: string }>
  readonly runs: { readonly main: string }
}

export interface StepOptions {
  /** The folder of `action.yml`. */
  readonly action: string
  readonly inputs: Readonly<Record<string, string>>
  /** Added to a small environment of a runner; undefined removes a variable. */
  readonly environment?: Readonly<Record<string, string | undefined>>
  /** Called with each line of the log, as the process prints it. */
  readonly onLine?: (line: string, child: ChildProcess) => void
}

export interface StepResult {
  readonly exitCode: number | null
  readonly lines: readonly string[]
  readonly outputs: ReadonlyMap<string, string>
  readonly summary: string
}

/** Runs the action of a folder as a step. Resolves when its process has ended. */
export async function runStep(options: StepOptions): Promise<StepResult> {
  const manifest = load(
    readFileSync(path.join(options.action, 'action.yml'), 'utf8'),
  ) as ActionManifest
  const temporary = mkdtempSync(path.join(tmpdir(), 'runner-'))
  const outputFile = path.join(temporary, 'output')
  const summaryFile = path.join(temporary, 'summary.md')
  writeFileSync(outputFile, '')
  writeFileSync(summaryFile, '')
  try {
    // Spawned directly: a shell would drop variables such as INPUT_API-KEY.
    const child = spawn(process.execPath, [path.join(options.action, manifest.runs.main)], {
      cwd: temporary,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env['PATH'],
        HOME: process.env['HOME'],
        CI: 'true',
        GITHUB_ACTIONS: 'true',
        GITHUB_SERVER_URL: 'https://github.com',
        GITHUB_API_URL: 'https://api.github.com',
        GITHUB_WORKSPACE: temporary,
        GITHUB_OUTPUT: outputFile,
        GITHUB_STEP_SUMMARY: summaryFile,
        RUNNER_TEMP: temporary,
        ...inputVariables(manifest, options.inputs),
        ...options.environment,
      },
    })
    const lines: string[] = []
    const onLine = (line: string) => {
      lines.push(line)
      options.onLine?.(line, child)
    }
    createInterface(child.stdout).on('line', onLine)
    createInterface(child.stderr).on('line', onLine)
    const exitCode = await new Promise<number | null>((resolve, reject) => {
      child.on('error', reject)
      child.on('close', resolve)
    })
    return {
      exitCode,
      lines,
      outputs: parseOutputs(readFileSync(outputFile, 'utf8')),
      summary: readFileSync(summaryFile, 'utf8'),
    }
  } finally {
    rmSync(temporary, { recursive: true, force: true })
  }
}

function inputVariables(
  manifest: ActionManifest,
  inputs: Readonly<Record<string, string>>,
): Record<string, string> {
  const variables: Record<string, string> = {}
  for (const [name, input] of Object.entries(manifest.inputs)) {
    const fallback = input.default ?? ''
    // The only expression in use is the token of the workflow, and there is none here.
    const value = inputs[name] ?? (fallback.includes('${{') ? '' : fallback)
    variables[`INPUT_${name.replaceAll(' ', '_').toUpperCase()}`] = value
  }
  return variables
}

/** Reads an outputs file, `name<<delimiter` form (actions/runner, EnvFileKeyValuePairs); the last value wins. */
export function parseOutputs(text: string): Map<string, string> {
  const outputs = new Map<string, string>()
  const lines = text.split(/\r?\n/)
  for (let index = 0; index < lines.length; index += 1) {
    const [, name, delimiter] = /^([^=]+?)<<(.+)$/.exec(lines[index] ?? '') ?? []
    if (name === undefined || delimiter === undefined) continue
    const end = lines.indexOf(delimiter, index + 1)
    if (end === -1) throw new Error(`the value of ${name} has no end`)
    outputs.set(name, lines.slice(index + 1, end).join('\n'))
    index = end
  }
  return outputs
}

export interface Command {
  readonly name: string
  readonly properties: string
  readonly data: string
}

const commandNames =
  /^(?:add-mask|add-matcher|remove-matcher|add-path|set-env|set-output|save-state|debug|warning|error|notice|echo|group|endgroup|stop-commands)$/i

/**
 * The workflow command in a line, as the runner finds it (actions/runner, ActionCommand.cs): `::name k=v::data`
 * at the start, after white space, or `##[name k=v]data` anywhere.
 */
export function parseCommand(line: string): Command | undefined {
  const match =
    /^\s*::([^\s:]+)(?: ([^:]*))?::(.*)$/s.exec(line) ??
    /##\[([^\s\]]+)(?: ([^\]]*))?\](.*)$/s.exec(line)
  const [, name = '', properties = '', data = ''] = match ?? []
  return commandNames.test(name)
    ? { name: name.toLowerCase(), properties, data: unescape(data) }
    : undefined
}

function unescape(data: string): string {
  return data.replaceAll('%0D', '\r').replaceAll('%0A', '\n').replaceAll('%25', '%')
}

/** Turns lines of the process into what the run page shows: groups indented, commands carried out, secrets hidden. */
export function createLogView(print: (line: string) => void): (line: string) => void {
  const secrets: string[] = []
  let indent = ''
  const show = (text: string) => {
    for (const line of text.split('\n')) {
      print(indent + secrets.reduce((shown, secret) => shown.replaceAll(secret, '***'), line))
    }
  }
  return (line) => {
    const command = parseCommand(line)
    switch (command?.name) {
      case undefined:
        show(line)
        break
      case 'add-mask':
        secrets.push(command.data)
        break
      case 'group':
        show(`▼ ${command.data}`)
        indent = '    '
        break
      case 'endgroup':
        indent = ''
        break
      case 'error':
      case 'warning':
      case 'notice':
        show(`${command.name[0]?.toUpperCase() ?? ''}${command.name.slice(1)}: ${command.data}`)
        break
    }
  }
}
