/** Helm as the action speaks to it: what it is told, and what is made of its answers. */
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { Failure } from '../../src/errors.ts'
import { type Helm, HelmError, type Upgrade, createHelm } from '../../src/helm/helm.ts'
import { createRedactor } from '../../src/helm/redactor.ts'
import { CommandFault, type CommandOptions, type RunCommand } from '../../src/helm/process.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { FakeHelm, type FakeHelmOptions } from '../support/fake-helm.ts'

let directory: string
beforeAll(() => {
  directory = fs.mkdtempSync(path.join(tmpdir(), 'helm-'))
  fs.mkdirSync(path.join(directory, 'empty'))
  fs.mkdirSync(path.join(directory, 'chart'))
  write('chart/Chart.yaml', 'apiVersion: v2\nname: docs\nversion: 1.0.0\n')
})
afterAll(() => {
  fs.rmSync(directory, { recursive: true })
})

function write(name: string, text: string): string {
  const file = path.join(directory, name)
  fs.writeFileSync(file, text)
  return file
}

const within = { signal: new AbortController().signal, maxMs: 30_000 }
const redactor = createRedactor()
redactor.add('X-Amz-Signature=0123456789abcdef')

interface Recorded {
  readonly file: string
  readonly args: readonly string[]
  readonly options: CommandOptions
}

interface Answer {
  readonly exitCode?: number | undefined
  readonly signalName?: NodeJS.Signals
  readonly stdout?: string
  readonly stderr?: string
}

/** A Helm that gives one answer to everything, and what it was told. */
function answering(answer: Answer | Error, { major = 4, kubeContext = '' } = {}) {
  const calls: Recorded[] = []
  const run: RunCommand = (file, args, options) => {
    calls.push({ file, args, options })
    if (answer instanceof Error) return Promise.reject(answer)
    return Promise.resolve({ exitCode: 0, stdout: '', stderr: '', ...answer })
  }
  const helm = createHelm({
    run,
    file: '/opt/helm',
    major: major === 3 ? 3 : 4,
    environment: { HOME: '/home/nobody' },
    directory,
    release: 'docs',
    namespace: 'web',
    kubeContext: kubeContext === '' ? undefined : kubeContext,
    redactor,
  })
  return { helm, calls, told: () => calls.map(({ args }) => args.join(' ')) }
}

/** A Helm with releases. */
function working(options: Partial<FakeHelmOptions> = {}): { helm: Helm; fake: FakeHelm } {
  const fake = new FakeHelm({ clock: new FakeClock(), ...options })
  const helm = createHelm({
    run: fake.run,
    file: '/opt/helm',
    major: options.major ?? 4,
    environment: {},
    directory: path.join(directory, 'empty'),
    release: 'docs',
    namespace: 'default',
    kubeContext: undefined,
    redactor,
  })
  return { helm, fake }
}

const upgrading = (more: Partial<Upgrade> = {}): Upgrade => ({
  chart: [path.join(directory, 'chart')],
  existingValues: 'keep',
  valuesFiles: [],
  ownValues: 'staticExport:\n  enabled: true\n',
  createNamespace: false,
  timeoutMs: 600_000,
  ...more,
})

describe('tells Helm', () => {
  test('where the release is, in every command that concerns it', async () => {
    const { helm, told } = answering({ stdout: '{}' }, { kubeContext: 'eks' })
    await helm.status(within)
    await helm.history(within)
    await helm.chartOf(3, within)
    await helm.valuesOf(3, within)
    await helm.upgrade(upgrading(), within)
    await helm.rollback(2, 60_000, within)
    await helm.uninstall(60_000, within)
    await helm.render('/tmp/events', '', within)
    expect(told()).toHaveLength(8)
    for (const args of told()) {
      expect(args).toMatch(/\bdocs\b.* --namespace web --kube-context eks\b/)
    }
  })

  test.each([
    [3, 'status docs --namespace web --show-resources -o json'],
    [4, 'status docs --namespace web -o json'],
  ] as const)(
    'to show live objects, which Helm %i does not by itself or always does',
    async (major, args) => {
      const { helm, told } = answering({ stdout: '{}' }, { major })
      await helm.status(within)
      expect(told()).toEqual([args])
    },
  )

  test('to upgrade or install, to wait, and to roll nothing back by itself', async () => {
    const { helm, calls, told } = answering({})
    await helm.upgrade(upgrading({ chart: ['docs', '--repo', 'https://c.test'] }), within)
    expect(told()).toEqual([
      'upgrade docs docs --repo https://c.test --install --wait --namespace web --timeout 600s --reset-then-reuse-values --values -',
    ])
    expect(calls[0]?.options).toMatchObject({
      input: 'staticExport:\n  enabled: true\n',
      environment: { HOME: '/home/nobody' },
      directory,
    })
    expect(calls[0]?.file).toBe('/opt/helm')
  })

  test('to forget the values of the release, and to create the namespace, only when asked', async () => {
    const { helm, told } = answering({})
    await helm.upgrade(upgrading({ existingValues: 'reset', createNamespace: true }), within)
    expect(told()[0]).toContain(' --reset-values ')
    expect(told()[0]).not.toContain('reuse')
    expect(told()[0]).toMatch(/ --create-namespace$/)
  })

  test.each([
    [600_000, '600s'],
    [90_500, '91s'],
    [6, '1s'],
    [0, '1s'], // 0s is no limit at all
    [3_600_000, '3600s'],
  ])('a time of %i ms as %s', async (timeoutMs, duration) => {
    const { helm, calls } = answering({})
    await helm.upgrade(upgrading({ timeoutMs }), within)
    await helm.rollback(1, timeoutMs, within)
    await helm.uninstall(timeoutMs, within)
    for (const { args } of calls) expect(args[args.indexOf('--timeout') + 1]).toBe(duration)
  })

  test('not to wait when a rollback has no time for it', async () => {
    const { helm, told } = answering({})
    await helm.rollback(7, undefined, within)
    await helm.uninstall(undefined, within)
    expect(told()).toEqual(['rollback docs 7 --namespace web', 'uninstall docs --namespace web'])
  })

  test('to ask the cluster for no more than a template looks up', async () => {
    const { helm, told } = answering({})
    await helm.render('/tmp/events', '{}', within)
    expect(told()).toEqual([
      'template docs /tmp/events --namespace web --dry-run=server --is-upgrade --disable-openapi-validation --values -',
    ])
  })

  test('the password of a login by standard input only', async () => {
    const { helm, calls } = answering({})
    const args = ['registry', 'login', 'r.test', '--username', 'u', '--password-stdin']
    await helm.login({ args, stdin: 'pass-word-123' }, within)
    expect(calls[0]?.args).toEqual(args)
    expect(calls[0]?.options.input).toBe('pass-word-123')
  })

  test('how long it may take, and by which signal it ends', async () => {
    const { signal } = new AbortController()
    const { helm, calls } = answering({})
    await helm.rollback(1, 60_000, { signal, maxMs: 90_000 })
    expect(calls[0]?.options).toMatchObject({ signal, maxMs: 90_000 })
  })
})

describe('values', () => {
  test('of several files are merged in their order, and ours win over all of them', async () => {
    const { helm, fake } = working()
    const first = write(
      'first.yaml',
      'a: 1\nb: 1\nstaticExport: {bundleUrl: stolen, theme: dark}\n',
    )
    const second = write('second.yaml', 'b: 2\nstaticExport: {enabled: false}\n')
    const ownValues = 'staticExport:\n  enabled: true\n  bundleUrl: "https://s.test/a"\n'
    await helm.upgrade(upgrading({ valuesFiles: [first, second], ownValues }), within)
    expect(await helm.valuesOf(1, within)).toEqual({
      a: 1,
      b: 2,
      staticExport: { enabled: true, bundleUrl: 'https://s.test/a', theme: 'dark' },
    })
    expect(fake.calls[0]?.args.join(' ')).toMatch(
      /--values \S+first.yaml --values \S+second.yaml --values -$/,
    )
  })

  test.each(['a,b.yaml', 'say "hello".yaml', '"quoted"', 'two words.yaml', 'one,"two",three'])(
    'come from the file %s, although Helm reads a list of files',
    async (name) => {
      const { helm } = working()
      await helm.upgrade(upgrading({ valuesFiles: [write(name, 'found: true\n')] }), within)
      expect(await helm.valuesOf(1, within)).toMatchObject({ found: true })
    },
  )

  test.each([
    ['keep', { replicas: 5, staticExport: { enabled: true, theme: 'dark' } }],
    ['reset', { staticExport: { enabled: true } }],
  ] as const)('of the release that are to %s', async (existingValues, expected) => {
    const { helm, fake } = working()
    fake.add({ values: { replicas: 5, staticExport: { enabled: false, theme: 'dark' } } })
    await helm.upgrade(upgrading({ existingValues }), within)
    expect(await helm.valuesOf(2, within)).toEqual(expected)
  })
})

describe('understands', () => {
  test.each([3, 4] as const)('the status of a release (Helm %i)', async (major) => {
    const { helm, fake } = working({ major })
    fake.add()
    fake.add({ status: 'pending-upgrade' })
    const status = await helm.status(within)
    expect(status).toMatchObject({
      revision: 2,
      status: 'pending-upgrade',
      lastDeployed: '2026-11-20T12:00:00.000929155Z',
    })
    expect(Object.keys(status?.resources ?? {})).toEqual(['v1/Deployment', 'v1/Pod(related)'])
  })

  test('a history, whose newest revision comes last', async () => {
    const { helm, fake } = working()
    for (let revision = 1; revision <= 11; revision += 1) fake.add()
    const history = await helm.history(within)
    expect(history.map(({ revision }) => revision)).toEqual([11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1])
    expect(history[0]).toEqual({
      revision: 11,
      status: 'deployed',
      updated: '2026-11-20T12:00:00.000929155Z',
    })
  })

  test('the chart of a revision, not that of the newest', async () => {
    const { helm, fake } = working()
    fake.add({ chart: { name: 'docs', version: '1.0.0' } })
    fake.add({ chart: { name: 'docs', version: '2.0.0' } })
    expect(await helm.chartOf(1, within)).toEqual({ name: 'docs', version: '1.0.0' })
  })

  test('a release without values of its own', async () => {
    const { helm, fake } = working()
    fake.add({ values: null })
    expect(await helm.valuesOf(1, within)).toBeNull()
  })

  test('that there is no such release', async () => {
    const { helm } = working()
    expect(await helm.status(within)).toBeUndefined()
    expect(await helm.history(within)).toEqual([])
  })

  test('that another thing is missing than the release', async () => {
    const error = 'Error: namespaces "web" not found\n'
    const { helm } = answering({ exitCode: 1, stderr: error })
    await expect(helm.status(within)).rejects.toThrow('namespaces "web" not found')
    await expect(helm.history(within)).rejects.toBeInstanceOf(HelmError)
  })

  test.each(['', 'Happy Helming!', '{"name":'])('no JSON in %j', async (stdout) => {
    const { helm } = answering({ stdout })
    const failure = await helm.status(within).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(Failure)
    expect(failure).toMatchObject({
      code: 'deploy-failed',
      message: '`helm status` gave an answer that is no JSON.',
    })
    await expect(helm.valuesOf(1, within)).rejects.toThrow('`helm get values` gave')
  })

  test.each(['[]', '"text"', '{"info":null}', '{"info":{"resources":[]}}'])(
    'a status that holds nothing (%s)',
    async (stdout) => {
      const { helm } = answering({ stdout })
      expect((await helm.status(within))?.resources ?? {}).toEqual({})
    },
  )
})

describe('tells of an error', () => {
  const failing = async (stderr: string, stdout = ''): Promise<HelmError> => {
    const { helm } = answering({ exitCode: 1, stderr, stdout })
    const error = await helm.upgrade(upgrading(), within).catch((caught: unknown) => caught)
    expect(error).toBeInstanceOf(HelmError)
    return error as HelmError
  }

  test('what Helm says last, without the warnings in front of it', async () => {
    const error = await failing(
      'level=WARN msg="upgrade failed" name=docs error="resource Deployment/web/docs not ready"\nError: UPGRADE FAILED: resource Deployment/web/docs not ready. status: InProgress, message: Updated: 1/2\ncontext deadline exceeded\n',
    )
    expect(error.said).toBe(
      'resource Deployment/web/docs not ready. status: InProgress, message: Updated: 1/2 context deadline exceeded',
    )
    expect(error.message).toBe(`helm upgrade failed: ${error.said}`)
    expect(error.raw).toContain('level=WARN')
  })

  test.each([
    // A chart that fails on purpose, and a webhook (3.21.4 and 4.2.4).
    'execution error at (docs/templates/a.yaml:1:3): Error: replicaCount must be set',
    'admission webhook "policy.example.com" denied the request: ValidationError: replicas is too low',
  ])('what it says of an error inside it: %s', async (text) => {
    expect((await failing(`Error: UPGRADE FAILED: ${text}\n`)).said).toBe(text)
    expect((await failing(`Error: the login\nlevel=WARN msg="x"\nError: ${text}\n`)).said).toBe(
      text,
    )
  })

  test('the link nowhere, which a schema error quotes whole', async () => {
    const error = await failing(
      "Error: UPGRADE FAILED: values don't meet the specifications of the schema(s) in the following chart(s):\ndocs:\n- at '/staticExport/bundleUrl': 'https://s.test/a?X-Amz-Signature=0123456789abcdef' does not match pattern '^ftp://'\n",
    )
    expect(error.said).toContain("'…' does not match pattern")
    expect(error.message).not.toContain('0123456789abcdef')
  })

  test('no more than a few lines, whatever Helm says', async () => {
    const story = `Job.batch "docs" is invalid: ${'a long story '.repeat(10_000)}: field is immutable`
    const error = await failing(`Error: ${story}`)
    expect(error.said.length).toBeLessThanOrEqual(700)
    expect(error.said).toMatch(/^Job\.batch "docs" is invalid: a long .* … .*: field is immutable$/)
  })

  test('what stands on the other output when the first is empty', async () => {
    expect((await failing('', 'exec format error')).said).toBe('exec format error')
    expect((await failing('')).said).toBe('nothing (exit code 1)')
  })

  test('no command of the runner', async () => {
    const { said } = await failing('Error: ::add-mask::x\n::set-output name=a::b ##[error]c\n')
    expect(said).not.toMatch(/^::/)
    expect(said).not.toMatch(/\n|##\[/)
  })

  test('that Helm was killed by somebody else', async () => {
    const { helm } = answering({ exitCode: undefined, signalName: 'SIGKILL', stderr: '' })
    await expect(helm.rollback(1, undefined, within)).rejects.toThrow(
      'helm rollback failed: nothing (it was ended by SIGKILL; does this machine have memory enough?)',
    )
  })

  test('that Helm gave no answer in time', async () => {
    const { helm } = answering(new CommandFault('too-slow', 'no answer within 30 s'))
    const error = await helm.history(within).catch((caught: unknown) => caught)
    expect(error).toBeInstanceOf(HelmError)
    expect((error as HelmError).said).toBe('nothing (it was ended after 30 s).')
  })

  test('that Helm cannot be started', async () => {
    const { helm } = answering(new CommandFault('cannot-start', 'EACCES'))
    await expect(helm.history(within)).rejects.toMatchObject({
      code: 'environment',
      message: 'Helm could not be started (helm, EACCES).',
    })
  })

  test('nothing of its own when the run was cancelled', async () => {
    const reason = new Failure('cancelled', 'Cancelled by SIGINT.')
    const { helm } = answering(reason)
    await expect(helm.upgrade(upgrading(), within)).rejects.toBe(reason)
  })
})
