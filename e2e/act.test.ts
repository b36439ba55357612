/** The reusable workflow and the caller's own ones through act, with a stand-in for Helm: who gets what from whom. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import process from 'node:process'
import { test } from 'node:test'
import { startEmulator } from '../emulator/index.ts'
import { type Cancellation, listProcesses, sampleProcesses } from './act/processes.ts'
import { expectBuilt } from './act/repositories.ts'
import { runWorkflow, type WorkflowOptions } from './act/run-workflow.ts'
import { run as runProgram } from './parts/program.ts'
import { waitFor } from './parts/ready.ts'

/** Takes the place of the action in `helm`. Its input `values` tells it what to do. */
const standIn = {
  'helm/action.yml': `
name: Stand-in
description: Shows what it is given, and does what a test wants
runs:
  using: node24
  main: stand-in.mjs
`,
  'helm/stand-in.mjs': `
import { appendFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
const { GITHUB_OUTPUT, GITHUB_STEP_SUMMARY, RUNNER_TEMP, HOME } = process.env
const output = (name, value) => appendFileSync(GITHUB_OUTPUT, name + '=' + value + '\\n')
const given = Object.entries(process.env).filter(([name]) => /^(INPUT|AWS)_|^KUBECONFIG$/.test(name))
console.log('given ' + JSON.stringify(Object.fromEntries(given)))
output('jobId', process.env['INPUT_JOB-ID'])
output('releaseRevision', '7')
appendFileSync(GITHUB_STEP_SUMMARY, '## Live\\n\\nRevision 7\\n')
for (const folder of [RUNNER_TEMP, HOME, tmpdir()]) writeFileSync(folder + '/left-behind', 'here')
console.log('::add-mask::masked-by-the-step')
console.log('masked-by-the-step')
console.log('::stop-commands::token')
console.log('::error::only a text')
console.log('::token::')
switch (process.env.INPUT_VALUES) {
  case 'fail':
    output('failureCode', 'deploy-failed')
    console.log('::error::It did not%0Awork')
    process.exit(1)
  case 'wait':
    process.on('SIGINT', () => {
      output('failureCode', 'cancelled')
      process.exit(1)
    })
    setInterval(() => {}, 1000)
    console.log('waiting')
}
`,
}

/** Arguments of Node, with which it does nothing for a minute. */
const waiting = ['-e', 'setTimeout(() => {}, 60_000)']

await using emulator = await startEmulator({ queueSeconds: 0, jobSeconds: 0 })

function run(options: Partial<WorkflowOptions> = {}) {
  return runWorkflow({
    workflow: 'deploy.yml',
    projectFiles: standIn,
    variables: { ADMIN_API_URL: emulator.apiUrl },
    secrets: { ADMIN_API_KEY: emulator.keys.good },
    ...options,
  })
}

/** What the stand-in was given. */
function given(lines: readonly { text: string }[]): Record<string, string> {
  const line = lines.find(({ text }) => text.startsWith('given '))
  return JSON.parse(line?.text.slice('given '.length) ?? '{}') as Record<string, string>
}

await test('The reusable workflow exports, deploys with what the caller gave, and tells it', async () => {
  using result = await run({
    unmasked: true,
    inputs: {
      version: '1.10, "{{',
      release: 'handbook',
      namespace: 'documentation',
      'create-namespace': 'true',
      'values-files': 'values/production.yaml\nvalues/more.yaml',
      values: 'settings:\n  TITLE: a, b & c',
      'existing-values': 'keep',
      'helm-timeout-minutes': '0.5',
      'chart-version': '1.2.3',
      environment: 'production',
    },
    variables: {
      ADMIN_API_URL: emulator.apiUrl,
      MIRROR_BUCKET: 'bundles',
      MIRROR_BASE_URL: 'https://mirror.example.com',
    },
    secrets: {
      ADMIN_API_KEY: emulator.keys.good,
      KUBECONFIG: 'apiVersion: v1\nkind: Config\nusers: ["$HOME", \'`x`\']\n',
      CHART_PASSWORD: 'chart-password',
      AWS_ACCESS_KEY_ID: 'access-key',
    },
  })
  assert.equal(result.exitCode, 0, result.messages.join('\n'))
  const jobId = result.step('Export the site').outputs.get('jobId')
  assert.match(jobId ?? '', /^se_/)
  const environment = given(result.step('Deploy').lines)
  assert.deepEqual(withoutEmpty(environment), {
    'INPUT_API-KEY': emulator.keys.good,
    'INPUT_BASE-URL': emulator.apiUrl,
    'INPUT_JOB-ID': jobId,
    INPUT_RELEASE: 'handbook',
    INPUT_CHART: './chart',
    'INPUT_CHART-VERSION': '1.2.3',
    'INPUT_CHART-PASSWORD': 'chart-password',
    INPUT_NAMESPACE: 'documentation',
    'INPUT_CREATE-NAMESPACE': 'true',
    'INPUT_VALUES-FILES': 'values/production.yaml\nvalues/more.yaml',
    INPUT_VALUES: 'settings:\n  TITLE: a, b & c',
    'INPUT_EXISTING-VALUES': 'keep',
    INPUT_VERSION: '1.10, "{{',
    INPUT_KUBECONFIG: 'apiVersion: v1\nkind: Config\nusers: ["$HOME", \'`x`\']\n',
    'INPUT_HELM-TIMEOUT-MINUTES': '0.5',
    'INPUT_MIRROR-BUCKET': 'bundles',
    'INPUT_MIRROR-BASE-URL': 'https://mirror.example.com',
    AWS_ACCESS_KEY_ID: 'access-key',
  })
  assert.deepEqual(Object.fromEntries(result.outputs), {
    jobId,
    status: 'completed',
    pageCount: result.step('Export the site').outputs.get('pageCount'),
    releaseRevision: '7',
    bundleSha256: '',
    failureCode: '',
  })
  assert.deepEqual(
    result.steps.map(({ job, step, summary }) => [job, step, summary]),
    [
      ['export', 'Check inputs and secrets', ''],
      ['export', 'Export the site', ''],
      ['deploy', 'Check out the caller', ''],
      ['deploy', 'Deploy', '## Live\n\nRevision 7\n'],
    ],
  )
  // Not even without masks.
  const signature = /X-Amz-Signature=(\w+)/.exec(
    result.step('Export the site').outputs.get('bundleUrl') ?? '',
  )?.[1]
  assert.ok(signature)
  assert.ok(!result.log.includes(signature))
  assert.deepEqual(
    [...result.outputs.values()].filter((value) => value.includes('http')),
    [],
  )
})

await test('The reusable workflow needs little, and takes secrets by inheritance', async () => {
  const workflow = `
on: workflow_dispatch
jobs:
  docs:
    uses: OWNER/static-export-action/.github/workflows/export-and-deploy.yml@v1
    with:
      domain: docs.example.com
      base-url: ${emulator.apiUrl}
      release: docs
      chart: ./chart
    secrets: inherit
`
  using result = await run({
    workflow: 'least.yml',
    files: { '.github/workflows/least.yml': workflow },
    secrets: { API_KEY: emulator.keys.good, KUBECONFIG: 'kind: Config' },
    unmasked: true,
  })
  assert.equal(result.exitCode, 0, result.messages.join('\n'))
  assert.deepEqual(withoutEmpty(given(result.step('Deploy').lines)), {
    'INPUT_API-KEY': emulator.keys.good,
    'INPUT_BASE-URL': emulator.apiUrl,
    'INPUT_JOB-ID': result.outputs.get('jobId'),
    INPUT_RELEASE: 'docs',
    INPUT_CHART: './chart',
    INPUT_NAMESPACE: 'default',
    'INPUT_CREATE-NAMESPACE': 'false',
    'INPUT_VALUES-KEY': 'staticExport',
    INPUT_KUBECONFIG: 'kind: Config',
    'INPUT_TIMEOUT-MINUTES': '30',
    'INPUT_HELM-TIMEOUT-MINUTES': '10',
  })
})

await test('The reusable workflow deploys a given export, on a runner given as JSON', async () => {
  using first = await run()
  const jobId = first.outputs.get('jobId') ?? ''
  using second = await run({
    inputs: { domain: '', 'job-id': jobId, 'runs-on': '["self-hosted"]' },
  })
  assert.equal(second.exitCode, 0)
  assert.equal(second.outputs.get('jobId'), jobId)
})

await test('The reusable workflow does not deploy when the export fails, and says which one failed and why', async () => {
  emulator.failNextJob({ error: 'Out of paper.', afterPages: 1 })
  using result = await run()
  assert.equal(result.exitCode, 1)
  assert.deepEqual([...result.jobs], [['export', 'failure']])
  assert.match(result.step('Export the site').errors.join(), /Out of paper\./)
  const jobId = result.step('Export the site').outputs.get('jobId')
  assert.match(jobId ?? '', /^se_/)
  assert.deepEqual(withoutEmpty(Object.fromEntries(result.outputs)), {
    jobId,
    status: 'failed',
    pageCount: '1',
    failureCode: 'job-failed',
  })
})

await test('The reusable workflow names what is missing before it asks for anything', async () => {
  const requestsBefore = emulator.requests.length
  const wrong = {
    release: '',
    'timeout-minutes': '360',
    namespace: 'Docs',
    'existing-values': 'forget',
    'helm-timeout-minutes': '10m',
  }
  using result = await run({
    secrets: {},
    inputs: wrong,
    variables: { ADMIN_API_URL: emulator.apiUrl, MIRROR_BUCKET: 'bundles' },
  })
  assert.equal(result.exitCode, 1)
  const [error = '', ...more] = result.step('Check inputs and secrets').errors
  assert.deepEqual(more, [])
  for (const name of ['API_KEY', 'mirror-base-url', ...Object.keys(wrong)]) {
    assert.match(error, RegExp(`[ -]${name}\\b`))
  }
  assert.deepEqual([...result.jobs], [['export', 'failure']])
  assert.equal(result.outputs.get('failureCode'), 'config')
  assert.equal(emulator.requests.length, requestsBefore)
})

await test('The reusable workflow says why the deployment failed', async () => {
  using result = await run({ inputs: { values: 'fail' } })
  assert.equal(result.exitCode, 1)
  assert.deepEqual(result.step('Deploy').errors, ['It did not\nwork'])
  assert.equal(result.step('Deploy').result, 'failure')
  assert.equal(result.outputs.get('failureCode'), 'deploy-failed')
  assert.equal(result.outputs.get('releaseRevision'), '7')
  assert.match(result.outputs.get('jobId') ?? '', /^se_/)
})

await test('The reusable workflow says so when the repository of the caller cannot be checked out', async () => {
  const workflow = '.github/workflows/export-and-deploy.yml'
  const text = readFileSync(path.join(import.meta.dirname, '..', workflow), 'utf8')
  using result = await run({
    projectFiles: {
      ...standIn,
      [workflow]: text.replace(/actions\/checkout@\S+/, '$/failing-checkout'),
      'failing-checkout/action.yml': `
name: Failing checkout
description: Fails
runs:
  using: node24
  main: fail.mjs
`,
      'failing-checkout/fail.mjs': 'process.exit(1)\n',
    },
  })
  assert.equal(result.exitCode, 1)
  assert.equal(result.step('Check out the caller').result, 'failure')
  assert.equal(result.outputs.get('failureCode'), 'environment')
  assert.match(result.outputs.get('jobId') ?? '', /^se_/)
})

const secrets = { ADMIN_API_KEY: emulator.keys.good, CLOUD_CREDENTIAL: 'kind: Config\n' }

await test('A job with its own login hands the cluster to the action', async () => {
  using result = await run({ workflow: 'own-login.yml', secrets, unmasked: true })
  assert.equal(result.exitCode, 0, result.messages.join('\n'))
  const environment = given(result.step('Deploy').lines)
  assert.match(environment['KUBECONFIG'] ?? '', /cluster\.yaml$/)
  assert.equal(environment['INPUT_JOB-ID'], result.step('Export the site').outputs.get('jobId'))
  assert.deepEqual(readdirSync(path.join(result.leftovers, 'docs')), ['left-behind'])
})

await test('A job with its own Helm hands it the values file', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'helm-'))
  const helm = path.join(folder, 'helm')
  writeFileSync(helm, '#!/bin/sh\necho "$KUBECONFIG" "$@"\ntail -n 4 "$VALUES_FILE"\n', {
    mode: 0o755,
  })
  try {
    using result = await run({ workflow: 'values-file.yml', secrets, helm, unmasked: true })
    assert.equal(result.exitCode, 0, result.messages.join('\n'))
    const [command = '', ...values] = result.step('Deploy').lines.map(({ text }) => text)
    assert.match(
      command,
      /cluster\.yaml upgrade docs \.\/chart --install --namespace docs --create-namespace --reset-then-reuse-values -f \S+static-export\.yaml --wait --timeout 10m$/,
    )
    const link = /bundleUrl: "(.+)"/.exec(values.join('\n'))?.[1] ?? ''
    assert.equal((await fetch(link)).status, 200)
    assert.deepEqual(readdirSync(path.join(result.leftovers, 'docs')), [])
  } finally {
    rmSync(folder, { recursive: true })
  }
})

await test('These tests see what masks hide, and what they do not', async () => {
  using masked = await run()
  using unmasked = await run({ unmasked: true })
  assert.ok(!masked.log.includes(emulator.keys.good))
  assert.match(masked.log, /"INPUT_API-KEY":"\*\*\*"/)
  assert.ok(unmasked.log.includes(emulator.keys.good))
  assert.ok(!masked.log.includes('masked-by-the-step'))
  assert.match(unmasked.log, /^masked-by-the-step$/m)
  assert.deepEqual(unmasked.step('Deploy').masks, ['masked-by-the-step'])
  assert.match(unmasked.log, /^::error::only a text$/m)
  assert.deepEqual(unmasked.step('Deploy').errors, [])
})

await test('These tests cancel a step as a runner does', async () => {
  const cancellations: Promise<Cancellation>[] = []
  using result = await run({
    inputs: { values: 'wait' },
    onLine: ({ text }, running) => {
      if (text === 'waiting') cancellations.push(running.cancelStep('helm/stand-in.mjs'))
    },
  })
  assert.equal(result.exitCode, 1)
  assert.equal(cancellations.length, 1)
  assert.equal((await cancellations[0])?.signal, 'SIGINT')
  assert.equal(result.outputs.get('failureCode'), 'cancelled')
})

await test('These tests find a secret in the arguments of a process, and none in those of a run', async () => {
  const secret = 'a-secret-of-this-test'
  using sampling = sampleProcesses([secret, emulator.keys.good])
  using result = await run({ secrets: { ADMIN_API_KEY: emulator.keys.good, KUBECONFIG: secret } })
  assert.equal(result.exitCode, 0)
  assert.deepEqual(sampling.exposures, [])
  assert.ok(sampling.programs.has('act'))
  assert.ok(sampling.looks > 10)

  const child = spawn(process.execPath, [...waiting, secret], { env: {} })
  try {
    await waitFor({
      what: 'found: a child without the marker',
      ask: () => Promise.resolve(sampling.exposures.length > 0 || undefined),
    })
  } finally {
    child.kill()
  }
  assert.deepEqual(sampling.exposures, [`node, process ${child.pid ?? ''}`])
})

await test('These tests find a secret in what was left by its parent, and none in what others have started', async () => {
  const secret = 'a-secret-of-this-test'
  using sampling = sampleProcesses([secret])
  const others = await startOrphan(secret, { E2E_RUN: 'another' })
  const ours = await startOrphan(secret)
  try {
    await waitFor({
      what: 'found: a process that was left by its parent',
      ask: () => Promise.resolve(sampling.exposures.length > 0 || undefined),
    })
    assert.deepEqual(sampling.exposures, [`node, process ${ours}`])
  } finally {
    process.kill(others)
    process.kill(ours)
  }
})

/** Starts a program with a secret as an argument, whose parent has ended. Resolves with its number. */
async function startOrphan(secret: string, environment: NodeJS.ProcessEnv = {}): Promise<number> {
  const start = '"$@" "$SECRET" >/dev/null 2>&1 & echo $!'
  const args = ['-c', start, 'sh', process.execPath, ...waiting]
  const pid = Number(
    await runProgram('sh', args, { environment: { SECRET: secret, ...environment } }),
  )
  await waitFor({
    what: 'to be seen: the secret',
    ask: () => {
      const seen = readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(secret)
      return Promise.resolve(seen || undefined)
    },
  })
  return pid
}

await test('These tests end what they started when they end act', async () => {
  using result = await run({
    inputs: { values: 'wait' },
    onLine: ({ text }, running) => {
      if (text === 'waiting') running.kill()
    },
  })
  assert.equal(result.exitCode, null)
  assert.match(result.log, /waiting/)
  await waitFor({
    what: 'gone: the step that waits',
    timeoutMs: 5_000,
    ask: () => {
      const left = listProcesses().some(({ args }) => args.join(' ').includes('helm/stand-in.mjs'))
      return Promise.resolve(!left || undefined)
    },
  })
})

await test('These tests say what to do when the project is not built', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'project-'))
  try {
    const action = (main: string) => `runs:\n  using: node24\n  main: ${main}\n`
    for (const name of ['helm', 'dist/helm'])
      mkdirSync(path.join(folder, name), { recursive: true })
    writeFileSync(path.join(folder, 'action.yml'), action('dist/index.js'))
    writeFileSync(path.join(folder, 'helm/action.yml'), action('../dist/helm/index.js'))
    writeFileSync(path.join(folder, 'dist/index.js'), '')
    assert.throws(() => {
      expectBuilt(folder)
    }, /Not built: dist\/helm\/index\.js\. Run "npm run build" first/)
    writeFileSync(path.join(folder, 'dist/helm/index.js'), '')
    expectBuilt(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

await test('These tests find what a step leaves behind', async () => {
  using result = await run()
  for (const folder of ['deploy', 'home', 'tmp']) {
    const file = path.join(result.leftovers, folder, 'left-behind')
    assert.equal(readFileSync(file, 'utf8'), 'here', folder)
  }
})

function withoutEmpty(values: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ''))
}
