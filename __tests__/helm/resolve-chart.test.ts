/** Which chart, in which version, over what is deployed. */
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { Failure } from '../../src/errors.ts'
import type { ChartReference } from '../../src/helm/chart.ts'
import { createHelm } from '../../src/helm/helm.ts'
import { createRedactor } from '../../src/helm/redactor.ts'
import type { DeployedRevision } from '../../src/helm/release.ts'
import { resolveChart } from '../../src/helm/resolve-chart.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { FakeHelm } from '../support/fake-helm.ts'

let directory: string
beforeAll(() => {
  directory = fs.mkdtempSync(path.join(tmpdir(), 'target-'))
})
afterAll(() => {
  fs.rmSync(directory, { recursive: true })
})

const within = { signal: new AbortController().signal, maxMs: 45_000 }
const versions = ['1.0.0', '1.3.0', '2.0.0']
const digest = `sha256:${'a'.repeat(64)}`

const fromRepository: ChartReference = {
  kind: 'repository',
  url: 'https://charts.test',
  name: 'docs',
}
const fromMachine: ChartReference = { kind: 'named', name: 'acme/docs' }
const oci = (rest = ''): ChartReference => ({
  kind: 'oci',
  url: `oci://r.test/charts/docs${rest}`,
  host: 'r.test',
  pinned: rest !== '',
})

const deployed = (version: string, name = 'docs'): DeployedRevision => ({
  revision: 4,
  chart: { name, version },
  updated: '',
})

function machine(major: 3 | 4 = 4) {
  const fake = new FakeHelm({
    clock: new FakeClock(),
    major,
    sources: {
      'https://charts.test': { name: 'docs', versions },
      acme: { name: 'docs', versions },
      'oci://r.test/charts/docs': { name: 'docs', versions },
      'oci://r.test/charts/docs:1.3.0': { name: 'docs', versions: ['1.3.0'] },
      [`oci://r.test/charts/docs@${digest}`]: { name: 'docs', versions: ['2.0.0'] },
    },
  })
  const helm = createHelm({
    run: fake.run,
    file: '/opt/helm',
    major,
    environment: {},
    directory,
    release: 'docs',
    namespace: 'default',
    kubeContext: undefined,
    redactor: createRedactor(),
  })
  const resolve = (chart: ChartReference, wanted?: string, now?: DeployedRevision) =>
    resolveChart(helm, chart, wanted, now, within)
  const refuse = async (...args: Parameters<typeof resolve>): Promise<Failure> => {
    const error = await resolve(...args).catch((caught: unknown) => caught)
    if (error instanceof Failure) return error
    throw new Error('it was found')
  }
  return { fake, resolve, refuse }
}

function folder(name: string, text: string): ChartReference {
  const target = path.join(directory, name)
  fs.mkdirSync(target)
  fs.writeFileSync(path.join(target, 'Chart.yaml'), text)
  return { kind: 'path', path: target }
}

describe.each([
  ['a repository', fromRepository, ['docs', '--repo', 'https://charts.test']],
  ['a repository of the machine', fromMachine, ['acme/docs']],
  ['a registry', oci(), ['oci://r.test/charts/docs']],
])('a chart from %s', (_where, chart, reference) => {
  test('stays at the version that is deployed, although there is a newer one', async () => {
    expect(await machine().resolve(chart, undefined, deployed('1.0.0'))).toEqual({
      identity: { name: 'docs', version: '1.0.0' },
      arguments: [...reference, '--version', '1.0.0'],
    })
  })

  test('changes to the version that is asked for', async () => {
    const { identity } = await machine().resolve(chart, '2.0.0', deployed('1.0.0'))
    expect(identity.version).toBe('2.0.0')
  })

  test('is deployed in the version that a range meant when it was looked at', async () => {
    expect(await machine().resolve(chart, '^1.0', deployed('1.0.0'))).toEqual({
      identity: { name: 'docs', version: '1.3.0' },
      arguments: [...reference, '--version', '1.3.0'],
    })
  })

  test('needs a version for the first install, and nothing is asked without', async () => {
    const { fake, refuse } = machine()
    const { code, message, advice } = await refuse(chart)
    expect(code).toBe('config')
    expect(message).toContain('`chart-version` is missing')
    expect(advice).toContain('first install')
    expect(fake.calls).toEqual([])
  })

  test('is not what the release was deployed from', async () => {
    const { code, message, advice } = await machine().refuse(
      chart,
      '1.0.0',
      deployed('1.0.0', 'shop'),
    )
    expect(code).toBe('config')
    expect(message).toContain('deployed from the chart shop, not from docs')
    expect(advice).toContain('`release`, `namespace` and `chart`')
  })

  test('whose deployed version is gone asks for `chart-version`', async () => {
    const { code, message, advice } = await machine().refuse(chart, undefined, deployed('1.1.0'))
    expect(code).toBe('config')
    expect(message).toContain('Version 1.1.0 of the chart, which is deployed and would be kept')
    expect(advice).toContain('`chart-version`')
  })

  test('that does not have the version asked for is another matter', async () => {
    const { code, message } = await machine().refuse(chart, '7.0.0', deployed('1.0.0'))
    expect(code).toBe('config')
    expect(message).not.toContain('would be kept')
    expect(message).toContain('7.0.0')
  })
})

describe('a version that would be kept is not gone', () => {
  const failing = async (chart: ChartReference, stderr: string) => {
    const { fake, refuse } = machine()
    fake.failNext('show chart', `Error: ${stderr}\n`)
    return refuse(chart, undefined, deployed('1.0.0'))
  }
  const repository =
    'looks like "https://charts.test" is not a valid chart repository or cannot be reached:'

  test.each([
    ['when no step has added its repository', fromMachine, 'config', 'repo acme not found'],
    [
      'when its repository has moved',
      fromRepository,
      'config',
      `${repository} failed to fetch https://charts.test/index.yaml : 404 Not Found`,
    ],
    [
      'when its registry wants a password',
      oci(),
      'auth',
      'failed to perform "FetchReference" on source: GET "https://r.test/v2/charts/docs/manifests/1.0.0": basic credential not found',
    ],
    [
      'when its registry does not answer',
      oci(),
      'network',
      'failed to perform "FetchReference" on source: Get "https://r.test/v2/": dial tcp 10.0.0.1:443: connect: connection refused',
    ],
  ] as const)('%s', async (_when, chart, code, stderr) => {
    const failure = await failing(chart, stderr)
    expect(failure.code).toBe(code)
    expect(failure.message).not.toContain('not in its repository any more')
  })
})

describe('a chart with one version', () => {
  test('on the disk has the version of its Chart.yaml, whatever is deployed', async () => {
    const chart = folder('chart', 'apiVersion: v2\nname: docs\nversion: 0.7.0\n')
    expect(await machine().resolve(chart, undefined, deployed('1.0.0'))).toEqual({
      identity: { name: 'docs', version: '0.7.0' },
      arguments: [path.join(directory, 'chart')],
    })
    expect((await machine().resolve(chart)).identity.version).toBe('0.7.0') // a first install
  })

  test('on the disk may lie in a folder of another name, but not be another chart', async () => {
    const chart = folder('deploy', 'apiVersion: v2\nname: docs\nversion: 0.7.0\n')
    await expect(machine().resolve(chart, undefined, deployed('1.0.0'))).resolves.toBeDefined()
    const { code, message } = await machine().refuse(chart, undefined, deployed('1.0.0', 'shop'))
    expect([code, message]).toEqual([
      'config',
      'The release was deployed from the chart shop, not from docs.',
    ])
  })

  test.each([
    [':1.3.0', '1.3.0'],
    [`@${digest}`, '2.0.0'],
  ])('of a registry, pinned by %s, keeps nothing', async (rest, version) => {
    expect(await machine().resolve(oci(rest), undefined, deployed('1.0.0'))).toEqual({
      identity: { name: 'docs', version },
      arguments: [`oci://r.test/charts/docs${rest}`],
    })
  })
})

describe.each([3, 4] as const)('a chart with dependencies (Helm %i)', (major) => {
  const about = 'apiVersion: v2\nname: docs\nversion: 0.7.0\ndependencies:\n  - name: common\n'

  test('that are not in it is refused', async () => {
    const chart = folder(`bare-${major}`, about)
    const { code, message, advice } = await machine(major).refuse(chart)
    expect(code).toBe('config')
    expect(message).toMatch(/^The chart lacks charts that it depends on\. .*charts\/ directory: common"$/) // prettier-ignore
    expect(advice).toContain('helm dependency build')
  })

  test('that are in it is fine, also when it needs values to be rendered', async () => {
    const chart = folder(`whole-${major}`, about)
    fs.mkdirSync(path.join(directory, `whole-${major}`, 'charts/common'), { recursive: true })
    const { fake, resolve } = machine(major)
    fake.failNext('template', 'Error: execution error at (docs/templates/a.yaml:1:4): set `title`')
    expect((await resolve(chart)).identity.version).toBe('0.7.0')
  })
})

test.each([3, 4] as const)(
  'reads the chart also behind the progress of a pull (Helm %i)',
  async (major) => {
    const { identity } = await machine(major).resolve(oci(), '1.3.0')
    expect(identity).toEqual({ name: 'docs', version: '1.3.0' })
  },
)

test.each([
  ['no YAML', 'name: [', 'is not YAML'],
  ['no version', 'name: docs\n', 'lacks its name or its version'],
  ['a number for a version', 'name: docs\nversion: 1.0\n', 'lacks its name or its version'],
  ['nothing', '', 'lacks its name or its version'],
  ['a list', '- docs\n', 'lacks its name or its version'],
])('refuses a chart whose Chart.yaml holds %s', async (_what, stdout, words) => {
  const helm = createHelm({
    run: () => Promise.resolve({ exitCode: 0, stdout, stderr: '' }),
    file: '/opt/helm',
    major: 4,
    environment: {},
    directory,
    release: 'docs',
    namespace: 'default',
    kubeContext: undefined,
    redactor: createRedactor(),
  })
  const chart: ChartReference = { kind: 'path', path: '/chart' }
  const resolved = resolveChart(helm, chart, undefined, undefined, within)
  const failure = await resolved.catch((error: unknown) => error)
  expect(failure).toMatchObject({ code: 'config' })
  expect((failure as Failure).message).toContain(words)
})
