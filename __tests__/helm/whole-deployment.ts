/** A whole run of the Helm action in this process: on the emulator and an imitated Helm, in virtual time, written down. */
import fs from 'node:fs'
import path from 'node:path'
import { Failure } from '../../src/errors.ts'
import { createHelmAction } from '../../src/helm/action.ts'
import { formatElapsed } from '../../src/units.ts'
import { type Emulator, type EmulatorOptions, startEmulator } from '../../emulator/index.ts'
import { createFakeMachine } from '../support/fake-machine.ts'
import { type FakeSource, type HelmCall, FakeHelm } from '../support/fake-helm.ts'
import { type FakeRunner, createFakeRunner } from '../support/fake-runner.ts'

export interface Deployment {
  readonly inputs?: Readonly<Record<string, string>>
  readonly emulator?: EmulatorOptions
  readonly major?: 3 | 4
  readonly environment?: Readonly<Record<string, string>>
  /** What there is before the run. */
  readonly prepare?: (fake: FakeHelm, emulator: Emulator) => void
  /** Puts things into the workspace. */
  readonly furnish?: (workspace: string) => void
  /** Cancels the run when a line of the log holds this text. */
  readonly cancelAt?: string
  /** Reports the end from outside then, as at the end of the time that a cancelled run has. */
  readonly isOverAt?: string
  /** What must be true of the run, whatever its transcript looks like. */
  readonly check?: (run: WholeDeployment) => void
}

export interface WholeDeployment {
  readonly exitCode: number
  readonly runner: FakeRunner
  readonly fake: FakeHelm
  readonly calls: readonly HelmCall[]
  readonly requests: Emulator['requests']
  /** Left in the directory for temporary files. */
  readonly leftovers: readonly string[]
  /** What everybody who may see the run can read. */
  readonly seen: string
  readonly virtualMs: number
  /** Log, commands of Helm, outputs and summary as one text, the same in each run. */
  readonly transcript: string
}

/** A token that nobody may see; the rest of the file is no secret. */
export const clusterToken = 'token-of-the-cluster-0123456789'

export const kubeconfig = `apiVersion: v1
kind: Config
current-context: eks
clusters:
  - name: eks
    cluster:
      server: https://k8s.test
contexts:
  - name: eks
    context:
      cluster: eks
      user: deployer
users:
  - name: deployer
    user:
      token: ${clusterToken}
`

export const chartPassword = 'password-of-the-charts-0123456789'

const versions = ['1.0.0', '1.3.0', '2.0.0']
const sources: Readonly<Record<string, FakeSource>> = {
  'https://charts.test': { name: 'docs', versions },
  'https://private.test': {
    name: 'docs',
    versions,
    username: 'reader',
    password: chartPassword,
  },
}
const smallSite = path.join(import.meta.dirname, '../support/site')

export async function wholeDeployment(scenario: Deployment): Promise<WholeDeployment> {
  using machine = createFakeMachine()
  const { clock, directory } = machine
  const { workingDirectory, temporaryDirectory } = machine.dependencies.machine
  await using emulator = await startEmulator({
    clock,
    seed: 'deployment',
    siteDirectory: smallSite,
    queueSeconds: 0,
    jobSeconds: 2,
    ...scenario.emulator,
  })
  const fake = new FakeHelm({ clock, sources, major: scenario.major ?? 4 })
  scenario.prepare?.(fake, emulator)
  scenario.furnish?.(workingDirectory)
  const programs = path.join(directory, 'bin')
  fs.mkdirSync(programs)
  fs.writeFileSync(path.join(programs, 'helm'), '', { mode: 0o755 })

  const inputs: Record<string, string> = {
    'api-key': emulator.keys.good,
    'base-url': emulator.apiUrl,
    'job-id': await startExport(emulator),
    release: 'docs',
    chart: 'docs',
    'chart-repository': 'https://charts.test',
    kubeconfig,
    ...scenario.inputs,
  }
  const received = emulator.requests.length
  const cancelling = new AbortController()
  const runner = createFakeRunner(inputs, {
    onLine(line) {
      if (scenario.isOverAt !== undefined && line.includes(scenario.isOverAt)) {
        action.fail(new Failure('cancelled', 'Cancelled by SIGINT.'))
      }
      if (scenario.cancelAt !== undefined && line.includes(scenario.cancelAt)) {
        cancelling.abort(new Failure('cancelled', 'Cancelled by SIGINT.'))
      }
    },
  })
  const variables = Object.entries(inputs).map(
    ([name, value]) => [`INPUT_${name.toUpperCase()}`, value] as const,
  )
  const action = createHelmAction({
    ...machine.dependencies,
    runner,
    environment: {
      ...Object.fromEntries(variables),
      PATH: programs,
      HELM_DEBUG: '1',
      ...scenario.environment,
    },
    signal: cancelling.signal,
    runCommand: fake.run,
    architecture: 'x64',
    objectStorage: () => {
      throw new Error('there is no mirror here')
    },
  })
  const exitCode = await action.run()
  const requests = emulator.requests.slice(received)
  const tidy = (text: string) =>
    text
      .replaceAll(directory, '/machine')
      .replaceAll(/\/static-export-\w+/g, '/PRIVATE')
      .replaceAll(new URL(emulator.apiUrl).host, 'api.test')
      .replaceAll(new URL(emulator.storageUrl).host, 'storage.test')
      .replaceAll(new URL(emulator.apiUrl).host.replace(':', '&#58;'), 'api.test')
      .replaceAll(new URL(emulator.storageUrl).host.replace(':', '&#58;'), 'storage.test')
      .replaceAll(/X-Amz-Signature=[0-9a-f]{64}/g, 'X-Amz-Signature=SIGNATURE')
      .replaceAll(/[0-9a-f]{64}/g, 'SHA256')
      .replaceAll(/(Bundle \(|Downloaded |\*\*Archive\*\* \| )[\d.]+( k?B)?/g, '$1SIZE')
  const transcript = [
    '--- log',
    ...runner.lines,
    '--- helm',
    ...told(fake.calls),
    '--- outputs',
    ...runner.writes.map(([name, value]) => `${name}=${value}`),
    '--- summary',
    runner.markdown,
    `--- exit code ${exitCode}`,
  ].join('\n')
  return {
    exitCode,
    runner,
    fake,
    calls: fake.calls,
    requests,
    leftovers: fs.readdirSync(temporaryDirectory),
    seen: [...runner.lines, runner.markdown].join('\n'),
    virtualMs: clock.nowMs(),
    transcript: tidy(transcript),
  }
}

async function startExport(emulator: Emulator): Promise<string> {
  const reply = await fetch(`${emulator.apiUrl}/v1/static-export/jobs`, {
    method: 'POST',
    headers: { authorization: `Bearer ${emulator.keys.good}`, 'content-type': 'application/json' },
    body: JSON.stringify({ domain: 'docs.example.com' }),
  })
  return ((await reply.json()) as { jobId: string }).jobId
}

/** The commands with their standard input; the same one in a row once, with its number. */
function told(calls: readonly HelmCall[]): string[] {
  const runs: { text: string; atMs: number; times: number }[] = []
  for (const { args, input, atMs } of calls) {
    const lines = (input ?? '').split('\n').filter((line) => line !== '')
    const text = [args.join(' '), ...lines.map((line) => `          < ${line}`)].join('\n')
    const last = runs.at(-1)
    if (last?.text === text) last.times += 1
    else runs.push({ text, atMs, times: 1 })
  }
  return runs.map(({ text, atMs, times }) => {
    const [command = '', ...input] = text.split('\n')
    const often = times === 1 ? '' : ` (${times} times)`
    return [`[${formatElapsed(atMs)}] helm ${command}${often}`, ...input].join('\n')
  })
}
