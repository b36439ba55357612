/** A whole run of the action in this process, on the emulator and in virtual time, written down. */
import fs from 'node:fs'
import path from 'node:path'
import { createExportAction } from '../../src/export-action.ts'
import type { PullRequest } from '../../src/agent-job.ts'
import type { Disk } from '../../src/disk.ts'
import { Failure } from '../../src/errors.ts'
import { type Emulator, type EmulatorOptions, startEmulator } from '../../emulator/index.ts'
import { createFakeMachine } from './fake-machine.ts'
import { type FakeRunner, createFakeRunner } from './fake-runner.ts'

export interface Scenario {
  readonly inputs?: Readonly<Record<string, string>>
  readonly emulator?: EmulatorOptions
  readonly environment?: Readonly<Record<string, string>>
  readonly pullRequest?: PullRequest
  /** Inputs that depend on the emulator, and what happens before the run. */
  readonly prepare?: (
    emulator: Emulator,
  ) => Promise<Record<string, string>> | Record<string, string> | undefined
  /** Cancels the run when a line of the log holds this text. */
  readonly cancelAt?: string
  readonly disk?: Disk
  /** Puts things into the workspace before the run. */
  readonly furnish?: (workspace: string) => void
  /** Looks at the workspace after the run. */
  readonly inspect?: (workspace: string) => unknown
  /** An output that cannot be written. */
  readonly unwritableOutput?: string
}

export interface WholeRun {
  readonly exitCode: number
  readonly runner: FakeRunner
  readonly requests: Emulator['requests']
  /** What is on the disk at the end, by its path in the workspace. */
  readonly files: Readonly<Record<string, string>>
  readonly inspected: unknown
  /** What is left in the directory for temporary files. */
  readonly leftovers: readonly string[]
  readonly virtualMs: number
  /** Everything above as one text, with ports, sizes and signatures made the same in each run. */
  readonly transcript: string
}

const smallSite = path.join(import.meta.dirname, 'site')

export async function wholeRun(scenario: Scenario): Promise<WholeRun> {
  using machine = createFakeMachine(scenario.disk ? { disk: scenario.disk } : {})
  const { clock } = machine
  await using emulator = await startEmulator({
    clock,
    seed: 'transcript',
    siteDirectory: smallSite,
    ...scenario.emulator,
  })
  const inputs: Record<string, string> = {
    'api-key': emulator.keys.good,
    'base-url': emulator.apiUrl,
    domain: 'docs.example.com',
    ...scenario.inputs,
    ...(await scenario.prepare?.(emulator)),
  }
  const received = emulator.requests.length
  const cancelling = new AbortController()
  const runner = createFakeRunner(inputs, {
    unwritableOutput: scenario.unwritableOutput,
    onLine(line) {
      if (scenario.cancelAt !== undefined && line.includes(scenario.cancelAt)) {
        cancelling.abort(new Failure('cancelled', 'Cancelled by SIGINT.'))
      }
    },
  })
  const action = createExportAction({
    runner,
    environment: scenario.environment ?? {},
    ...machine.dependencies,
    signal: cancelling.signal,
    readPullRequest: () =>
      scenario.pullRequest
        ? Promise.resolve(scenario.pullRequest)
        : Promise.reject(new Error('HTTP 404')),
  })
  scenario.furnish?.(machine.dependencies.machine.workingDirectory)
  const exitCode = await action.run()
  const requests = emulator.requests.slice(received)
  const { workingDirectory, temporaryDirectory } = machine.dependencies.machine
  const inspected = scenario.inspect?.(workingDirectory)
  const files = filesBelow(workingDirectory)
  const leftovers = fs.readdirSync(temporaryDirectory)

  const transcript = [
    '--- log',
    ...runner.lines,
    '--- requests',
    ...counted(
      requests.map(
        ({ method, path: target, body, status, fault }) =>
          `${method} ${target}${body && ` ${body}`} -> ${String(status ?? 'no answer')}${fault === undefined ? '' : ` (fault: ${fault})`}`,
      ),
    ),
    '--- outputs',
    ...runner.writes.map(([name, value]) => `${name}=${value}`),
    '--- summary',
    runner.markdown,
    `--- exit code ${exitCode}`,
  ]
    .join('\n')
    .replaceAll(machine.directory, '/machine')
    .replaceAll(new URL(emulator.apiUrl).host, 'api.test')
    .replaceAll(new URL(emulator.storageUrl).host, 'storage.test')
    .replaceAll(escapeColon(new URL(emulator.apiUrl).host), 'api.test')
    .replaceAll(escapeColon(new URL(emulator.storageUrl).host), 'storage.test')
    .replaceAll(/X-Amz-Signature=[0-9a-f]{64}/g, 'X-Amz-Signature=SIGNATURE')
    .replaceAll(/[0-9a-f]{64}/g, 'SHA256')
    .replaceAll(/(sizeBytes=|Bundle \(|Downloaded |\*\*Archive\*\* \| )[\d.]+( k?B)?/g, '$1SIZE')
  const virtualMs = clock.nowMs()
  return { exitCode, runner, requests, files, inspected, leftovers, virtualMs, transcript }
}

function filesBelow(directory: string): Record<string, string> {
  const entries = fs.readdirSync(directory, { recursive: true, withFileTypes: true })
  return Object.fromEntries(
    entries
      .filter((entry) => entry.isFile())
      .map((entry) => {
        const file = path.join(entry.parentPath, entry.name)
        return [path.relative(directory, file), fs.readFileSync(file, 'utf8')]
      }),
  )
}

/** The same lines in a row as one, with their number. */
function counted(lines: readonly string[]): string[] {
  const runs: { line: string; times: number }[] = []
  for (const line of lines) {
    const last = runs.at(-1)
    if (last?.line === line) last.times += 1
    else runs.push({ line, times: 1 })
  }
  return runs.map(({ line, times }) => (times === 1 ? line : `${line} (${times} times)`))
}

/** As the summary writes a host with its port. */
function escapeColon(host: string): string {
  return host.replace(':', '&#58;')
}
