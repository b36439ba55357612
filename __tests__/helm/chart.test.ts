/** The chart: what `chart` may be, and what Helm is told. */
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { systemDisk } from '../../src/disk.ts'
import {
  type ChartReference,
  chartArguments,
  hasVersions,
  loginCommand,
  parseChart,
  parseChartVersion,
  parseRepository,
  privateHelmEnvironment,
} from '../../src/helm/chart.ts'
import { Problem } from '../../src/input-reader.ts'

let workspace: string
beforeAll(() => {
  workspace = fs.mkdtempSync(path.join(tmpdir(), 'helm-chart-'))
  for (const chart of ['deploy/chart', '.hidden', 'docs', 'bitnami/nginx']) {
    fs.mkdirSync(path.join(workspace, chart), { recursive: true })
    fs.writeFileSync(path.join(workspace, chart, 'Chart.yaml'), 'name: docs\n')
  }
  fs.mkdirSync(path.join(workspace, 'empty'))
  fs.writeFileSync(path.join(workspace, 'docs-1.2.3.tgz'), '')
  fs.writeFileSync(path.join(workspace, 'notes.txt'), '')
  fs.symlinkSync('deploy/chart', path.join(workspace, 'link'))
  fs.symlinkSync('nowhere', path.join(workspace, 'dangling'))
})
afterAll(() => {
  fs.rmSync(workspace, { recursive: true })
})

const digest = `sha256:${'0a'.repeat(32)}`
const read = (chart: string, repository?: string) =>
  parseChart(chart, repository, { disk: systemDisk, workspace })
const inWorkspace = (name: string): ChartReference => ({
  kind: 'path',
  path: path.join(workspace, name),
})
const oci = (rest: string, pinned = false): ChartReference => ({
  kind: 'oci',
  url: `oci://registry.example.com:5000/${rest}`,
  host: 'registry.example.com:5000',
  pinned,
})

describe('a chart by path', () => {
  test.each([
    ['./deploy/chart', 'deploy/chart'],
    ['deploy/chart/', 'deploy/chart'],
    ['.hidden', '.hidden'],
    ['./docs-1.2.3.tgz', 'docs-1.2.3.tgz'],
    ['./link', 'link'],
    // What exists in the workspace wins over a repository of the machine.
    ['docs', 'docs'],
    ['bitnami/nginx', 'bitnami/nginx'],
  ])('%s', (chart, target) => {
    expect(read(chart)).toEqual(inWorkspace(target))
    expect(read(path.join(workspace, target))).toEqual(inWorkspace(target))
  })

  test.each([
    ['./nowhere', 'does not exist. Is there a checkout before this step?'],
    ['/nowhere/at/all', 'does not exist. Is there a checkout before this step?'],
    ['../nowhere', 'does not exist. Is there a checkout before this step?'],
    ['./dangling', 'does not exist. Is there a checkout before this step?'],
    ['./empty', 'is a directory without a Chart.yaml, so it is no chart.'],
    ['empty', 'is a directory without a Chart.yaml, so it is no chart.'],
    ['./notes.txt', 'is neither the directory of a chart nor a packaged one (.tgz).'],
    ['/dev/null', 'is neither the directory of a chart nor a packaged one (.tgz).'],
    [
      'nowhere',
      'does not exist in the workspace. If it is the name of a chart, `chart-repository` has to say where; if it is a path, is there a checkout before this step?',
    ],
  ])('%s is none', (chart, problem) => {
    expect(() => read(chart)).toThrow(new Problem(`\`chart\` ("${chart}") ${problem}`))
  })

  test('does not go with a repository', () => {
    expect(() => read('./docs', 'https://charts.example.com')).toThrow(
      new Problem(
        '`chart` ("./docs") is a path, which does not go with `chart-repository`; leave one of them out.',
      ),
    )
    expect(() => read('~/chart')).toThrow(
      new Problem('`chart` begins with ~, which only a shell understands; write it out.'),
    )
  })
})

describe('a chart by name', () => {
  test('in the repository that is given, whatever is in the workspace', () => {
    const url = 'https://charts.example.com'
    expect(read('docs', url)).toEqual({ kind: 'repository', url, name: 'docs' })
  })

  test('in a repository of the machine', () => {
    expect(read('stable/docs')).toEqual({ kind: 'named', name: 'stable/docs' })
  })

  test.each(['--debug', 'a b', 'docs;x', '$(x)', 'docs/'])('is not %s', (chart) => {
    expect(() => read(chart, 'https://charts.example.com')).toThrow(
      new Problem(
        `\`chart\` ("${chart}") is not a name of a chart: letters, digits, dots, hyphens and underscores.`,
      ),
    )
  })
})

describe('a chart in a registry', () => {
  test.each([
    ['charts/docs', false],
    ['docs', false],
    ['charts/docs:1.2.3', true],
    ['charts/docs:1.2.3_build', true],
    [`charts/docs@${digest}`, true],
    [`charts/docs:1.2.3@${digest}`, true],
  ])('%s', (rest, pinned) => {
    expect(read(`oci://registry.example.com:5000/${rest}`)).toEqual(oci(rest, pinned))
  })

  test('may end in a slash', () => {
    expect(read('oci://registry.example.com:5000/docs/')).toEqual(oci('docs'))
  })

  test.each([
    'oci://',
    'oci://registry.example.com',
    'oci://registry.example.com/',
    'oci://:5000/docs',
    'oci://registry.example.com/a b',
    'oci://registry.example.com/docs?x=y',
    'oci://registry.example.com/docs@sha256:12',
    'oci://registry.example.com/docs:a:b',
    'oci://registry .example.com/docs',
  ])('not %s', (chart) => {
    expect(() => read(chart)).toThrow(
      new Problem(
        `\`chart\` ("${chart}") is not the address of a chart, such as oci://registry.example.com/charts/docs.`,
      ),
    )
  })

  test('does not go with a repository, holds no password, and is no other address', () => {
    expect(() => read('oci://registry.example.com/docs', 'https://charts.example.com')).toThrow(
      new Problem(
        '`chart` ("oci://registry.example.com/docs") is a whole address, which does not go with `chart-repository`; leave one of them out.',
      ),
    )
    expect(() => read('oci://me:hunter2@registry.example.com/docs')).toThrow(
      new Problem(
        '`chart` ("oci://registry.example.com/docs") holds a user name or password; they go into `chart-username` and `chart-password`.',
      ),
    )
    expect(() => read('https://me:hunter2@charts.example.com/docs-1.2.3.tgz')).toThrow(
      new Problem(
        '`chart` ("https://charts.example.com/docs-1.2.3.tgz") is an address that is not oci://; put the repository into `chart-repository` and the name of the chart here.',
      ),
    )
  })
})

describe('chart-repository', () => {
  test.each([
    ['https://charts.example.com', 'https://charts.example.com'],
    ['https://charts.example.com/stable/', 'https://charts.example.com/stable'],
    ['HTTP://127.0.0.1:8080', 'http://127.0.0.1:8080'],
  ])('%s', (given, url) => {
    expect(parseRepository(given)).toBe(url)
  })

  test.each([
    ['charts.example.com', '`chart-repository` is not an https address ("charts.example.com").'],
    ['stable', '`chart-repository` is not an https address ("stable").'],
    ['file:///charts', '`chart-repository` is not an https address ("file:///charts").'],
    ['https://a b', '`chart-repository` is not an https address ("https://a b").'],
    [
      'https://me:hunter2@charts.example.com',
      '`chart-repository` holds a user name or password; they go into `chart-username` and `chart-password`.',
    ],
    [
      'https://charts.example.com/?token=hunter2',
      '`chart-repository` has a query or a fragment behind https://charts.example.com/; leave it out.',
    ],
    [
      'oci://registry.example.com/charts/',
      '`chart-repository` is for repositories that speak http ("oci://registry.example.com/charts/"). Write the whole address into `chart`: oci://registry.example.com/charts/NAME.',
    ],
  ])('not %s', (given, problem) => {
    expect(() => parseRepository(given)).toThrow(new Problem(problem))
  })
})

test.each(['1', '1.2.3', 'v1.2.3', '1.2.3-rc.1+build', '^1.2', '>=1.0.0, <2 || 3.x', '*', 'x'])(
  'chart-version %s is left to Helm',
  (version) => {
    expect(parseChartVersion(version)).toBe(version)
  },
)

test.each(['stable', '-1', '1\n2', `1${'0'.repeat(100)}`])(
  'chart-version %j is none',
  (version) => {
    expect(() => parseChartVersion(version)).toThrow(
      /^`chart-version` is a version such as 1\.2\.3, or a range such as \^1\.2 \("/,
    )
  },
)

describe('the arguments of Helm', () => {
  const repository: ChartReference = { kind: 'repository', url: 'https://c.example', name: 'docs' }
  const named: ChartReference = { kind: 'named', name: 'stable/docs' }
  const local: ChartReference = { kind: 'oci', url: 'oci://127.0.0.1:5000/docs', host: '127.0.0.1:5000', pinned: false } // prettier-ignore

  test.each<[ChartReference, string]>([
    [{ kind: 'path', path: '/w/chart' }, '/w/chart'],
    [named, 'stable/docs --version ^1'],
    [repository, 'docs --repo https://c.example --version ^1'],
    [oci('docs'), 'oci://registry.example.com:5000/docs --version ^1'],
    [oci('docs:1', true), 'oci://registry.example.com:5000/docs:1'],
    [local, 'oci://127.0.0.1:5000/docs --version ^1 --plain-http'],
  ])('%j', (chart, line) => {
    expect(chartArguments(chart, '^1').join(' ')).toBe(line)
    expect(chartArguments(chart, undefined).join(' ')).toBe(line.replace(' --version ^1', ''))
    expect(hasVersions(chart)).toBe(line.includes('--version'))
  })

  test('for logging in, with the password on standard input', () => {
    const user = { username: 'me', password: 'hunter2' }
    expect(loginCommand(repository, user, 3)).toEqual({
      args: ['repo', 'add', 'private', 'https://c.example', '--username', 'me', '--password-stdin'],
      stdin: 'hunter2',
      chart: { kind: 'named', name: 'private/docs' },
    })
    expect(loginCommand(oci('charts/docs'), user, 4)).toEqual({
      args: ['registry', 'login', 'registry.example.com:5000', '--username', 'me', '--password-stdin'], // prettier-ignore
      stdin: 'hunter2',
      chart: oci('charts/docs'),
    })
    const args = ['registry', 'login', '127.0.0.1:5000', '--username', 'me', '--password-stdin']
    expect(loginCommand(local, user, 3).args).toEqual(args)
    expect(loginCommand(local, user, 4).args).toEqual([...args, '--plain-http'])
    expect(() => loginCommand(named, user, 4)).toThrow('a chart of kind named needs no login')
  })

  test('never begin with what Helm would take for an option', () => {
    const text = fc.oneof(fc.string(), fc.webUrl(), fc.constantFrom('-f', '--set=x', 'oci://-/-'))
    fc.assert(
      fc.property(text, fc.option(fc.webUrl(), { nil: undefined }), (chart, repository) => {
        try {
          const [first = '-'] = chartArguments(read(chart, repository), undefined)
          expect(first).toMatch(/^[A-Za-z0-9/]/)
        } catch (error) {
          if (!(error instanceof Problem)) throw error
        }
      }),
    )
  })
})

test('the files of a login stay in a folder, and out of the key chain of the machine', () => {
  const folder = fs.mkdtempSync(path.join(workspace, 'private-'))
  const environment = privateHelmEnvironment(folder, systemDisk)
  expect(environment).toEqual({
    HELM_REPOSITORY_CONFIG: path.join(folder, 'repositories.yaml'),
    HELM_REPOSITORY_CACHE: path.join(folder, 'repository'),
    HELM_CONTENT_CACHE: path.join(folder, 'content'),
    HELM_REGISTRY_CONFIG: path.join(folder, 'registry.json'),
  })
  const config = path.join(folder, 'registry.json')
  expect(fs.statSync(config).mode & 0o777).toBe(0o600)
  // Any entry keeps Helm from looking for a key chain.
  expect(JSON.parse(fs.readFileSync(config, 'utf8'))).toEqual({ auths: { 'placeholder.invalid': {} } }) // prettier-ignore
})
