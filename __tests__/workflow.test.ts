/** The reusable workflow for Helm: its interface, and what keeps it safe, as text. `e2e` runs it. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import process from 'node:process'
import { describe, expect, test } from '@jest/globals'
import { load } from 'js-yaml'
import { withoutSelfReference } from '../scripts/self-reference.ts'

interface Input {
  readonly description: string
  readonly type: string
  readonly required?: boolean
  readonly default?: string | boolean
}

interface Step {
  readonly name: string
  readonly id?: string
  readonly uses?: string
  readonly run?: string
  readonly env?: Readonly<Record<string, string>>
  readonly with?: Readonly<Record<string, unknown>>
}

interface Job {
  readonly name: string
  readonly needs?: string
  readonly environment?: string
  readonly 'runs-on': string
  readonly 'timeout-minutes': number
  readonly permissions: Readonly<Record<string, string>>
  readonly concurrency: Readonly<Record<string, unknown>>
  readonly outputs: Readonly<Record<string, string>>
  readonly steps: readonly Step[]
}

interface Workflow {
  readonly on: {
    readonly workflow_call: {
      readonly inputs: Readonly<Record<string, Input>>
      readonly secrets: Readonly<Record<string, { description: string; required?: boolean }>>
      readonly outputs: Readonly<Record<string, { description: string; value: string }>>
    }
  }
  readonly permissions: object
  readonly jobs: { readonly export: Job; readonly deploy: Job }
}

const root = path.resolve(import.meta.dirname, '..')
const readText = (file: string) => readFileSync(path.join(root, file), 'utf8')

const file = '.github/workflows/export-and-deploy.yml'
const text = readText(file)
const workflow = load(text) as Workflow
const { inputs, secrets, outputs } = workflow.on.workflow_call
const { export: exportJob, deploy: deployJob } = workflow.jobs
const jobs = [exportJob, deployJob]
const steps = jobs.flatMap((job) => job.steps)
const stepOf = (job: Job, id: string) => job.steps.find((step) => step.id === id)

/** What the action in `helm` takes, each from an input of that name, or from a secret. */
const helmInputs: Readonly<Record<string, string>> = {
  'api-key': 'secrets.API_KEY',
  'base-url': 'inputs.base-url',
  'job-id': 'needs.export.outputs.jobId',
  release: 'inputs.release',
  chart: 'inputs.chart',
  'chart-version': 'inputs.chart-version',
  'chart-repository': 'inputs.chart-repository',
  'chart-username': 'secrets.CHART_USERNAME',
  'chart-password': 'secrets.CHART_PASSWORD',
  namespace: 'inputs.namespace',
  'create-namespace': 'inputs.create-namespace',
  'values-files': 'inputs.values-files',
  values: 'inputs.values',
  'existing-values': 'inputs.existing-values',
  version: 'inputs.version',
  'values-key': 'inputs.values-key',
  kubeconfig: 'secrets.KUBECONFIG',
  'kube-context': 'inputs.kube-context',
  'helm-version': 'inputs.helm-version',
  'timeout-minutes': 'inputs.timeout-minutes',
  'helm-timeout-minutes': 'inputs.helm-timeout-minutes',
  'mirror-bucket': 'inputs.mirror-bucket',
  'mirror-prefix': 'inputs.mirror-prefix',
  'mirror-region': 'inputs.mirror-region',
  'mirror-endpoint-url': 'inputs.mirror-endpoint-url',
  'mirror-base-url': 'inputs.mirror-base-url',
  'verify-url': 'inputs.verify-url',
}
const helmOutputs = [
  'jobId',
  'status',
  'pageCount',
  'releaseRevision',
  'bundleSha256',
  'failureCode',
]

describe('inputs', () => {
  test('are those of the export, of the runner and of the deployment', () => {
    const ofHelm = Object.values(helmInputs).flatMap((source) =>
      source.startsWith('inputs.') ? [source.replace('inputs.', '')] : [],
    )
    const own = ['domain', 'job-id', 'environment', 'runs-on']
    expect(Object.keys(inputs).sort()).toEqual([...ofHelm, ...own].sort())
  })

  test('require what has no default', () => {
    const required = Object.entries(inputs).filter(([, input]) => input.required)
    expect(required.map(([name]) => name)).toEqual(['base-url', 'release', 'chart'])
    const open = Object.values(inputs).filter(
      (input) => input.required !== true && input.default === undefined,
    )
    expect(open).toEqual([])
  })

  test('have the defaults of the actions', () => {
    const given = Object.entries(inputs).filter(([, input]) => input.default)
    expect(Object.fromEntries(given.map(([name, input]) => [name, input.default]))).toEqual({
      'timeout-minutes': '30',
      'runs-on': 'ubuntu-24.04',
      namespace: 'default',
      'values-key': 'staticExport',
      'helm-timeout-minutes': '10',
    })
  })

  test('are texts, since a dispatch passes numbers as such; flags are flags', () => {
    const flags = Object.entries(inputs).filter(([, { type }]) => type !== 'string')
    expect(flags).toMatchObject([['create-namespace', { type: 'boolean', default: false }]])
  })

  test.each(Object.entries(inputs))('%s says its default and its unit', (name, input) => {
    expect(input.description).toMatch(/^[A-Z].*\.$/)
    const silent = input.required !== true && input.default === ''
    if (silent) expect(input.description).toMatch(/\bdefault\b|Required (?:unless|with)/i)
    if (name.endsWith('-minutes')) expect(input.description).toMatch(/^Minutes\b.*up to \d+/)
  })
})

test('secrets are those that an environment or a repository can have, and only the first is required', () => {
  expect(Object.keys(secrets)).toEqual([
    'API_KEY',
    'KUBECONFIG',
    'CHART_USERNAME',
    'CHART_PASSWORD',
    'AWS_ACCESS_KEY_ID',
    'AWS_SECRET_ACCESS_KEY',
  ])
  const required = Object.entries(secrets).filter(([, secret]) => secret.required)
  expect(required.map(([name]) => name)).toEqual(['API_KEY'])
  expect(Object.values(secrets).filter(({ description }) => !description)).toEqual([])
})

describe('outputs', () => {
  test('are those of the deployment', () => {
    expect(Object.keys(outputs)).toEqual(helmOutputs)
    expect(Object.keys(deployJob.outputs)).toEqual(helmOutputs)
  })

  test('come from the deployment, else from the export', () => {
    for (const [name, { value }] of Object.entries(outputs)) {
      const exported = name in exportJob.outputs ? ` || jobs.export.outputs.${name}` : ''
      expect(value).toBe(`\${{ jobs.deploy.outputs.${name}${exported} }}`)
    }
    expect(Object.keys(exportJob.outputs)).toEqual(['jobId', 'status', 'pageCount', 'failureCode'])
  })

  test.each(jobs.map((job) => [job.name, job] as const))('of %s come from its steps', (_, job) => {
    for (const [name, value] of Object.entries(job.outputs)) {
      const sources = [...value.matchAll(/steps\.([\w-]+)\.outputs\.(\w+)/g)]
      expect(sources.length).toBeGreaterThan(0)
      for (const [, id = '', output] of sources) {
        expect(stepOf(job, id)).toBeDefined()
        expect(output).toBe(name)
      }
    }
  })

  test('never hold the link', () => {
    expect(text).not.toMatch(/bundleUrl|expiresAt|valuesFile/)
  })
})

describe('jobs', () => {
  test('are the export, and then the deployment in its environment', () => {
    expect(Object.keys(workflow.jobs)).toEqual(['export', 'deploy'])
    expect(exportJob.environment).toBeUndefined()
    expect(exportJob.needs).toBeUndefined()
    expect(deployJob.environment).toBe('${{ inputs.environment }}')
    expect(deployJob.needs).toBe('export')
  })

  test('may do nothing but read the repository, and say why', () => {
    expect(workflow.permissions).toEqual({})
    expect(exportJob.permissions).toEqual({})
    expect(deployJob.permissions).toEqual({ contents: 'read' })
    const [, exporting] = text.split('\n  export:')
    expect(exporting).toMatch(/^ {4}permissions: \{\} # \w+/m)
    expect(exporting).toMatch(/^ {6}contents: read # \w+/m)
  })

  test('wait for others of the same target, and cancel none', () => {
    const target = '${{ inputs.environment }}/${{ inputs.namespace }}/${{ inputs.release }}'
    const group = (job: string) => ({
      group: `static-export/helm/${job}/${target}`,
      'cancel-in-progress': false,
    })
    expect(exportJob.concurrency).toEqual(group('export'))
    expect(deployJob.concurrency).toEqual(group('deploy'))
    expect(workflow).not.toHaveProperty('concurrency')
  })

  test('end after a constant time, within what a hosted runner gives and after what the export may take', () => {
    expect(jobs.map((job) => job['timeout-minutes'])).toEqual([360, 360])
  })

  test('run where the caller says', () => {
    const { 'runs-on': expression } = exportJob
    expect(expression).toBe(
      "${{ (startsWith(inputs.runs-on, '[') || startsWith(inputs.runs-on, '{')) && fromJSON(inputs.runs-on) || inputs.runs-on }}",
    )
    expect(deployJob['runs-on']).toBe(expression)
  })

  test('have names that are readable when they are skipped, which GitHub shows as written', () => {
    const names = [...jobs, ...steps].map(({ name }) => name)
    expect(names.filter((name) => !/^[A-Z][\w ]+$/.test(name))).toEqual([])
  })
})

describe('steps', () => {
  test('put no expression into a script, and no secret beside one', () => {
    const scripts = steps.flatMap((step) => (step.run === undefined ? [] : [step]))
    expect(scripts.map(({ name }) => name)).toEqual(['Check inputs and secrets'])
    for (const { run, env = {} } of scripts) {
      expect(run).not.toContain('${{')
      const secret = Object.values(env).filter((value) => value.includes('secrets.'))
      expect(secret).toEqual(["${{ secrets.API_KEY != '' }}"])
    }
  })

  test('use only this repository, and actions of GitHub by their commit', () => {
    const uses = [...text.matchAll(/^ *uses: (.*)$/gm)].map(([, name]) => name)
    expect(uses).toEqual([
      '$/',
      expect.stringMatching(/^actions\/checkout@[0-9a-f]{40} # v\d+\.\d+\.\d+$/),
      '$/helm',
    ])
    const checkout = deployJob.steps.find((step) => step.uses?.startsWith('actions/checkout@'))
    expect(checkout?.with).toEqual({ 'persist-credentials': false })
  })

  test('export with the API key alone', () => {
    expect(stepOf(exportJob, 'export')?.with).toEqual({
      'api-key': '${{ secrets.API_KEY }}',
      'base-url': '${{ inputs.base-url }}',
      domain: '${{ inputs.domain }}',
      'job-id': '${{ inputs.job-id }}',
      version: '${{ inputs.version }}',
      'timeout-minutes': '${{ inputs.timeout-minutes }}',
      summary: false,
    })
    const used = JSON.stringify(exportJob).match(/secrets\.\w+/g)
    expect(new Set(used)).toEqual(new Set(['secrets.API_KEY']))
  })

  test('deploy with everything that the action takes', () => {
    const expected = Object.entries(helmInputs).map(([name, source]) => [name, `\${{ ${source} }}`])
    const deploy = stepOf(deployJob, 'deploy')
    expect(deploy?.with).toEqual(Object.fromEntries(expected))
    expect(deploy?.env).toEqual({
      AWS_ACCESS_KEY_ID: '${{ secrets.AWS_ACCESS_KEY_ID }}',
      AWS_SECRET_ACCESS_KEY: '${{ secrets.AWS_SECRET_ACCESS_KEY }}',
    })
  })
})

test('the action in helm has those inputs, defaults and outputs', () => {
  const manifest = load(readText('helm/action.yml')) as {
    inputs: Record<string, { default?: string }>
    outputs: object
  }
  expect(Object.keys(manifest.inputs)).toEqual(Object.keys(helmInputs))
  expect(Object.keys(manifest.outputs)).toEqual(helmOutputs)
  for (const [name, { default: fallback = '' }] of Object.entries(manifest.inputs)) {
    const ours = inputs[name]?.default
    if (ours !== undefined) expect([name, String(ours)]).toEqual([name, fallback])
  }
})

describe('the check before the export', () => {
  const good = {
    HAS_API_KEY: 'true',
    BASE_URL: 'https://api.example.com',
    DOMAIN_OR_JOB_ID: 'docs.example.com',
    RELEASE: 'docs',
    CHART: './chart',
    NAMESPACE: 'default',
    EXISTING_VALUES: '',
    TIMEOUT_MINUTES: '30',
    HELM_TIMEOUT_MINUTES: '10',
    MIRROR_BUCKET: '',
    MIRROR_BASE_URL: '',
  }
  const passed = { status: 0, log: '', outputs: '' }

  test('has a variable for each of them', () => {
    expect(Object.keys(stepOf(exportJob, 'check')?.env ?? {})).toEqual(Object.keys(good))
  })

  test.each(['', '0.5', '350', '350.0', 'soon'])('lets through %p minutes', (minutes) => {
    expect(check({ ...good, TIMEOUT_MINUTES: minutes })).toEqual(passed)
  })

  test.each([
    { RELEASE: `${'a'.repeat(51)}.9`, NAMESPACE: 'n'.repeat(63) },
    { RELEASE: '1', NAMESPACE: '' },
    { RELEASE: ' docs\n', NAMESPACE: 'a-1\n' },
    { EXISTING_VALUES: 'keep' },
    { EXISTING_VALUES: 'reset\n' },
    { HELM_TIMEOUT_MINUTES: '' },
    { HELM_TIMEOUT_MINUTES: '0.05' },
    { HELM_TIMEOUT_MINUTES: '60.0\n' },
    { MIRROR_BUCKET: 'mirror', MIRROR_BASE_URL: 'https://mirror.example.com' },
  ])('lets through %p', (change) => {
    expect(check({ ...good, ...change })).toEqual(passed)
  })

  test.each([
    ['API_KEY', { HAS_API_KEY: 'false' }],
    ['base-url', { BASE_URL: '' }],
    ['domain', { DOMAIN_OR_JOB_ID: '' }],
    ['release', { RELEASE: '' }],
    ['chart', { CHART: '' }],
    ['timeout-minutes', { TIMEOUT_MINUTES: '350.5' }],
    ['timeout-minutes', { TIMEOUT_MINUTES: '1440' }],
    ['release', { RELEASE: 'Docs' }],
    ['release', { RELEASE: 'r'.repeat(54) }],
    ['release', { RELEASE: 'docs\nmore' }],
    ['namespace', { NAMESPACE: 'docs.example' }],
    ['namespace', { NAMESPACE: '-docs' }],
    ['namespace', { NAMESPACE: '$(exit)' }],
    ['existing-values', { EXISTING_VALUES: 'kept' }],
    ['helm-timeout-minutes', { HELM_TIMEOUT_MINUTES: '10m' }],
    ['helm-timeout-minutes', { HELM_TIMEOUT_MINUTES: '60.1' }],
    ['helm-timeout-minutes', { HELM_TIMEOUT_MINUTES: '0.0' }],
    ['helm-timeout-minutes', { HELM_TIMEOUT_MINUTES: '-1' }],
    ['mirror-base-url', { MIRROR_BUCKET: 'mirror' }],
    ['mirror-bucket', { MIRROR_BASE_URL: 'https://mirror.example.com' }],
  ])('names %s', (name, change) => {
    const { status, log, outputs: written } = check({ ...good, ...change })
    expect(status).toBe(1)
    expect(log).toMatch(/^::error title=[^:]+::[^\n]+\n$/)
    expect(log.split('%0A- ')).toEqual([expect.any(String), expect.stringContaining(name)])
    expect(written).toBe('failureCode=config\n')
  })

  test('names all that is missing in one error', () => {
    const none = Object.fromEntries(Object.keys(good).map((name) => [name, '']))
    const { log } = check(none)
    expect(log.match(/::error /g)).toHaveLength(1)
    expect(log.split('%0A- ')).toHaveLength(6)
  })

  /** Runs the script as the runner runs `shell: bash`. */
  function check(env: Readonly<Record<string, string>>) {
    const folder = mkdtempSync(path.join(tmpdir(), 'check-'))
    try {
      const output = path.join(folder, 'output')
      writeFileSync(output, '')
      const script = stepOf(exportJob, 'check')?.run ?? ''
      const { status, stdout, stderr } = spawnSync(
        'bash',
        ['--noprofile', '--norc', '-e', '-o', 'pipefail', '-c', script],
        { env: { PATH: process.env['PATH'], GITHUB_OUTPUT: output, ...env }, encoding: 'utf8' },
      )
      return { status, log: stdout + stderr, outputs: readFileSync(output, 'utf8') }
    } finally {
      rmSync(folder, { recursive: true })
    }
  }
})

describe('the text for GitHub Enterprise Server', () => {
  const rewritten = withoutSelfReference(text, 'OWNER/static-export-action', 'v1')

  test('names this repository where it was meant', () => {
    const uses = [...rewritten.matchAll(/^ *uses: (.*)$/gm)].map(([, name]) => name)
    expect(uses).toEqual([
      'OWNER/static-export-action@v1',
      expect.stringMatching(/^actions\/checkout@/),
      'OWNER/static-export-action/helm@v1',
    ])
  })

  test('changes nothing else', () => {
    const back = rewritten
      .replace('OWNER/static-export-action@v1', '$/')
      .replace('OWNER/static-export-action/helm@v1', '$/helm')
    expect(back).toBe(text)
  })

  test.each([
    ['- uses: $/ # root', '- uses: o/r@v1 # root'],
    ["    uses: '$/helm'", "    uses: 'o/r/helm@v1'"],
    ['  uses: $/.github/workflows/x.yml', '  uses: o/r/.github/workflows/x.yml@v1'],
    ['run: echo uses: $/', 'run: echo uses: $/'],
    ['  # uses: $/', '  # uses: $/'],
  ])('of %s is %s', (before, after) => {
    expect(withoutSelfReference(before, 'o/r', 'v1')).toBe(after)
  })
})
