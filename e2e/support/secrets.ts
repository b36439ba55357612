/** What must be seen nowhere: searched for in everything that a run has printed, said and left. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { load } from 'js-yaml'
import { keys } from '../../emulator/keys.ts'
import { listProcesses } from '../act/processes.ts'
import type { WorkflowResult } from '../act/run-workflow.ts'

/** Every presigned link holds this. */
const mark = 'X-Amz-Signature='

/** The key of the Admin API, what every link holds, and the private key of a kubeconfig as it is and decoded. */
export function secretsOf(kubeconfig: string): string[] {
  const { users } = load(kubeconfig) as {
    readonly users: readonly { readonly user: Readonly<Record<string, string>> }[]
  }
  const clientKeys = users.map(({ user }) => user['client-key-data'] ?? '')
  const lines = clientKeys.flatMap((key) => Buffer.from(key, 'base64').toString().split('\n'))
  const tokens = users.map(({ user }) => user['token'] ?? '')
  const isLong = (text: string) => text.length >= 20 && !text.startsWith('-----')
  return [keys.good, mark, ...[...clientKeys, ...lines, ...tokens].filter(isLong)]
}

/** Searches a run for secrets, and for everything that it asked to be masked. It must have been unmasked. */
export function expectNoSecrets(result: WorkflowResult, secrets: readonly string[]): void {
  const masks = result.steps.flatMap((step) => step.masks).flatMap((mask) => mask.split('\n'))
  const all = new Set([...secrets, ...masks.filter((mask) => mask.trim().length >= 8)])
  for (const [place, text] of traces(result)) {
    for (const secret of all) {
      // Without the text: it would go into the log of the tests.
      assert.ok(!text.includes(secret), `A secret (${shape(secret)}) is in ${place}.`)
    }
  }
}

function* traces(result: WorkflowResult): Generator<readonly [place: string, text: string]> {
  yield ['the log', result.log]
  yield ['what act said', result.messages.join('\n')]
  yield ['the outputs', [...result.outputs.values()].join('\n')]
  for (const { step, summary, errors, outputs } of result.steps) {
    yield [`the summary of "${step}"`, summary]
    yield [`the errors of "${step}"`, errors.join('\n')]
    // The export action gives the link to those who deploy by themselves.
    const given = [...outputs].filter(([name]) => name !== 'bundleUrl')
    yield [`the outputs of "${step}"`, given.map(([, value]) => value).join('\n')]
  }
  for (const file of filesIn(result.leftovers)) {
    yield [path.relative(result.leftovers, file), readFileSync(file, 'latin1')]
  }
}

/** The files that a run left behind. */
export function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name))
}

/** Enough to find out which one it is. */
function shape(secret: string): string {
  if (secret === mark) return mark
  if (secret.startsWith('http')) return 'a link'
  return `${secret.slice(0, 4)}…, ${secret.length} characters`
}

/**
 * Looks, while a step deploys to a namespace, at the files that it has written: those with a secret are for their
 * owner alone.
 */
export function expectPrivateFiles(namespace: string): void {
  const helm = listProcesses().find(
    ({ args }) => args.includes(namespace) && args[0]?.endsWith('helm'),
  )
  assert.ok(helm, 'Helm does not run.')
  const environment = new Map(
    readFileSync(`/proc/${helm.pid}/environ`, 'utf8')
      .split('\0')
      .map((line) => line.split(/=(.*)/s, 2) as [string, string]),
  )
  const kubeconfig = environment.get('KUBECONFIG') ?? ''
  const secrets = secretsOf(readFileSync(kubeconfig, 'utf8'))
  const folder = environment.get('RUNNER_TEMP') ?? ''
  const found = filesIn(folder).filter((file) => {
    const text = readFileSync(file, 'latin1')
    return secrets.some((secret) => text.includes(secret))
  })
  assert.ok(found.includes(kubeconfig), 'The kubeconfig is somewhere else.')
  for (const file of found) assert.ok(isPrivate(file, folder), `${file} can be read by others.`)
}

/** Whether nobody else can come to a file that is below a folder, through all that is between them. */
function isPrivate(file: string, folder: string): boolean {
  const others = 0o077
  if ((statSync(file).mode & others) === 0) return true
  return file !== folder && isPrivate(path.dirname(file), folder)
}
