/** The inputs of the Helm action: what is read, and what is refused before anything is sent. */
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { load } from 'js-yaml'
import { systemDisk } from '../../src/disk.ts'
import { type HelmInputName, helmInputNames, readHelmInputs } from '../../src/helm/inputs.ts'
import { helmOutputNames } from '../../src/helm/outputs.ts'
import { InvalidInputs } from '../../src/input-reader.ts'
import { commandsIn } from '../support/runner-parser.ts'

type Given = Partial<Record<HelmInputName, string>>

const key = 'example_0123456789abcdef'
const good: Given = {
  'api-key': key,
  'base-url': 'https://api.example.com',
  'job-id': 'se_1',
  release: 'docs',
  chart: './chart',
}

let workspace: string
beforeAll(() => {
  workspace = fs.mkdtempSync(path.join(tmpdir(), 'helm-inputs-'))
  fs.mkdirSync(path.join(workspace, 'chart'))
  write('chart/Chart.yaml', 'name: docs\n')
})
afterAll(() => {
  fs.rmSync(workspace, { recursive: true })
})

function write(name: string, content: string | Uint8Array): string {
  const file = path.join(workspace, name)
  fs.writeFileSync(file, content)
  return file
}

async function read(given: Given) {
  const warnings: string[] = []
  const inputs = await readHelmInputs(
    (name) => given[name] ?? '',
    (message) => warnings.push(message),
    { disk: systemDisk, workspace },
  )
  return { inputs, warnings }
}

const accept = async (given: Given) => (await read({ ...good, ...given })).inputs
const warningsOf = async (given: Given) => (await read({ ...good, ...given })).warnings

async function problemsOf(given: Given): Promise<readonly string[]> {
  try {
    await read(given)
  } catch (error) {
    if (error instanceof InvalidInputs) return error.problems
    throw error
  }
  throw new Error('the inputs were accepted')
}

/** The problems with otherwise good inputs. */
const problems = (given: Given) => problemsOf({ ...good, ...given })

test('the least that is needed, and the defaults', async () => {
  expect(await read(good)).toEqual({
    warnings: [],
    inputs: {
      apiKey: key,
      baseUrl: new URL('https://api.example.com'),
      jobId: 'se_1',
      release: 'docs',
      chart: { kind: 'path', path: path.join(workspace, 'chart') },
      chartVersion: undefined,
      chartCredentials: undefined,
      namespace: 'default',
      createNamespace: false,
      callerValues: { files: [], text: undefined, setsVersion: false },
      existingValues: 'keep',
      version: undefined,
      valuesKey: 'staticExport',
      kubeconfig: undefined,
      kubeContext: undefined,
      helmVersion: undefined,
      timeoutMs: 1_800_000,
      helmTimeoutMs: 600_000,
      mirror: undefined,
      verifyUrl: undefined,
    },
  })
})

test('everything', async () => {
  const file = write('everything.yaml', 'a: 1\n')
  const config =
    'clusters: [{name: c, cluster: {server: "https://k"}}]\ncontexts: [{name: x@y, context: {cluster: c}}]'
  expect(
    await accept({
      chart: 'docs',
      'chart-repository': 'https://charts.example.com/',
      'chart-version': '^1.2 || 3.x',
      'chart-username': 'robot$ci',
      'chart-password': ' p:w "x" \n',
      namespace: 'team-1',
      'create-namespace': 'True',
      'values-files': ` ${file}\r\n\neverything.yaml \n`,
      values: '  b: 2\n  c: 3\n',
      'existing-values': 'keep',
      version: 'v1.2 {{ x }}',
      'values-key': 'docs.staticExport',
      kubeconfig: config,
      'kube-context': 'x@y',
      'helm-version': 'v3.21.4',
      'timeout-minutes': '0.5',
      'helm-timeout-minutes': '60',
      'mirror-bucket': 'my.bucket',
      'mirror-prefix': '/exports/docs/',
      'mirror-region': 'eu-central-1',
      'mirror-endpoint-url': 'http://minio.example.com:9000',
      'mirror-base-url': 'http://minio.storage.svc/my.bucket/exports/docs/',
      'verify-url': 'https://docs.example.com/guides/start?x=1#part',
    }),
  ).toMatchObject({
    chart: { kind: 'repository', url: 'https://charts.example.com', name: 'docs' },
    chartVersion: '^1.2 || 3.x',
    chartCredentials: { username: 'robot$ci', password: 'p:w "x"' },
    namespace: 'team-1',
    createNamespace: true,
    callerValues: { files: [file, file], text: '  b: 2\n  c: 3\n', setsVersion: false },
    existingValues: 'keep',
    version: 'v1.2 {{ x }}',
    valuesKey: 'docs.staticExport',
    kubeconfig: { text: `${config}\n`, context: 'x@y', secrets: [] },
    kubeContext: 'x@y',
    helmVersion: '3.21.4',
    timeoutMs: 30_000,
    helmTimeoutMs: 3_600_000,
    mirror: {
      bucket: 'my.bucket',
      prefix: 'exports/docs',
      region: 'eu-central-1',
      endpointUrl: new URL('http://minio.example.com:9000'),
      baseUrl: new URL('http://minio.storage.svc/my.bucket/exports/docs'),
    },
    verifyUrl: new URL('https://docs.example.com/guides/start?x=1'),
  })
})

test('all problems are told at once, each with its fix', async () => {
  expect(await problemsOf({})).toEqual([
    '`api-key` is empty. Is the secret defined, and available to this event? (Pull requests from forks get none.)',
    '`base-url` is missing: the root address of the Admin API, such as https://api.example.com.',
    '`job-id` is missing: the export to deploy, which is the `jobId` output of its step.',
    '`release` is missing: the name of the Helm release.',
    '`chart` is missing: a path, oci://…, or a name with `chart-repository`.',
  ])
  await expect(
    read({ ...good, release: 'Docs', namespace: 'a.b', 'values-files': 'x.yaml\n-' }),
  ).rejects.toThrow(
    [
      '4 inputs need to be corrected:',
      '- `release` is not a name that Helm allows: lower-case letters, digits, hyphens and dots, at most 53 ("Docs").',
      '- `namespace` is not a name that Kubernetes allows: lower-case letters, digits and hyphens, at most 63 ("a.b").',
      '- `values-files` ("x.yaml") does not exist. Is there a checkout before this step?',
      '- `values-files` names standard input (-), where the link goes; put the values into a file or into `values`.',
    ].join('\n'),
  )
})

describe('release', () => {
  test.each(['d', 'docs', 'docs-2', 'a.b-c.d', '0', 'x'.repeat(53)])('%s', async (release) => {
    expect((await accept({ release })).release).toBe(release)
  })

  test.each(['-a', 'a-', 'a..b', '.a', 'a_b', 'Ä', 'a/b', 'x'.repeat(54), '--set=x'])(
    'not %s',
    async (release) => {
      expect(await problems({ release })).toEqual([
        `\`release\` is not a name that Helm allows: lower-case letters, digits, hyphens and dots, at most 53 ("${release}").`,
      ])
    },
  )
})

describe('values', () => {
  const secret = 'hunter2-hunter2'

  test('of each kind that Helm reads', async () => {
    write('comment.yaml', '# nothing yet\n')
    write('empty.yaml', '')
    write('bom.yaml', '\ufeffa: 1\r\nb:\r\n  c: "x"\r\n')
    write('behind.yaml', '# head\n---\na: 1\n...\n---\n# nothing\n---\n')
    write('bracket.yaml', 'a: {\n  b: 1,\n}\nc: [\n  1\n]\n')
    write(
      'merge.yaml',
      'x: &x {a: 1}\ny: &y {b: 1}\nz:\n  <<: *x\n  <<: *y\n  a: 2\n1: !custom x\n',
    )
    write('json.yaml', '{\n\t"a": [true, null],\n\t"b": {\n\t\t"c": 1\n\t}\n}')
    fs.symlinkSync('json.yaml', path.join(workspace, 'link.yaml'))
    write('tags.yaml', 'a: !vault |\n  x\nb: !Ref [x]\nc: !!set {x, y}\nd: !!null ""\n')
    write(
      'names.yaml',
      ':a:\n  b: [c]\n:b: {c: 1}\n:c: 1\n__proto__: {x: 1}\nyes: 1\n2026-11-20: 1\n',
    )
    write('broken-lines.yaml', 'a: "b\nc"\nd: {\ne: 1\n}\n')
    write('aliases.yaml', `a: &a {b: 1}\nc: [${'*a,'.repeat(20_000)}]\n`)
    write('a, "b" c.yaml', 'a: 1')
    const names = ['comment', 'empty', 'bom', 'behind', 'bracket', 'merge', 'json', 'link', 'tags', 'names', 'broken-lines', 'aliases', 'a, "b" c'] // prettier-ignore
    const { callerValues } = await accept({
      'values-files': names.map((name) => `./${name}.yaml`).join('\n'),
    })
    expect(callerValues.files).toEqual(names.map((name) => path.join(workspace, `${name}.yaml`)))
  })

  test.each([
    ['- a\n', ' is YAML, but not a mapping of names to values, which Helm needs.'],
    [secret, ' is YAML, but not a mapping of names to values, which Helm needs.'],
    [
      `a: 1\n---\nb: ${secret}\n`,
      ' holds several YAML documents, of which Helm 3 reads the first and Helm 4 all; make them one.',
    ],
    [
      `---\n---\na: ${secret}\n`,
      ' holds several YAML documents, of which Helm 3 reads the first and Helm 4 all; make them one.',
    ],
    [`a: 1\nb: 2\na: ${secret}\n`, ' has the same key twice in one mapping (line 3).'],
    [`x:\n  - {b: 1, b: ${secret}}\n`, ' has the same key twice in one mapping (line 2).'],
    [`1: a\n"1": ${secret}\n`, ' has the same key twice in one mapping (line 2).'],
    [
      `a: 1\nb: {{ .Values.${secret} }}\n`,
      ' has a list or a mapping as a key (line 2); is it a {{ template }} that was not filled in, or needs quotes?',
    ],
    [
      `? - a\n: ${secret}\n`,
      ' has a list or a mapping as a key (line 2); is it a {{ template }} that was not filled in, or needs quotes?',
    ],
    [`a:\n\tb: ${secret}\n`, ' is not valid YAML (line 2, column 1: a tab where spaces belong).'],
    [`a:\n    b: 1\n  c: ${secret}\n`, ' is not valid YAML (line 3, column 3: the indentation does not fit).'], // prettier-ignore
    [`a: ["${secret}\n`, ' is not valid YAML (line 2, column 1: a quote or a bracket is missing, or what it holds is not indented).'], // prettier-ignore
    [`a: b: ${secret}\n`, ' is not valid YAML (line 1, column 5).'],
    [`a: "\\q${secret}"\n`, ' is not valid YAML (line 1, column 6).'],
    [`a: ${'['.repeat(5_000)}`, ' is nested too deeply.'],
    ['{'.repeat(5 * 1024 ** 2), ' is nested too deeply.'],
    [`a: *${secret}\n`, ' has an alias (*name) that leads nowhere, or to what cannot stand in its place, or too many of them.'], // prettier-ignore
    [`a:\n  <<: ${secret}\n`, ' has an alias (*name) that leads nowhere, or to what cannot stand in its place, or too many of them.'], // prettier-ignore
    [`a: &a [${secret}, *a]\n`, ' has an alias (*name) that leads nowhere, or to what cannot stand in its place, or too many of them.'], // prettier-ignore
    [bomb(), ' has an alias (*name) that leads nowhere, or to what cannot stand in its place, or too many of them.'], // prettier-ignore
    [`a: ${'x'.repeat(5 * 1024 ** 2)}`, ' is larger than 5 MiB.'],
  ])('that are not: %#', async (text, problem) => {
    write('wrong.yaml', text)
    expect(await problems({ 'values-files': 'wrong.yaml', values: text })).toEqual([
      `\`values-files\` ("wrong.yaml")${problem}`,
      `\`values\`${problem}`,
    ])
  })

  /** Nine levels of nine copies each. */
  function bomb(): string {
    const level = (name: string, of: string) => `${name}: &${name} [${`${of},`.repeat(9)}]\n`
    return 'abcdefghi'.replace(/./g, (name) =>
      level(name, name === 'a' ? 'lol' : `*${String.fromCharCode(name.charCodeAt(0) - 1)}`),
    )
  }

  test('in a file that is none', async () => {
    fs.symlinkSync('nowhere', path.join(workspace, 'dangling.yaml'))
    write('latin1.yaml', Buffer.from('a: "\xe9"', 'latin1'))
    write('utf16.yaml', Buffer.from('\ufeffa: 1', 'utf16le'))
    write('50%off.yaml', 'a: 1')
    const lines = [
      'chart',
      'dangling.yaml',
      'latin1.yaml',
      'utf16.yaml',
      '50%off.yaml',
      '/dev/null',
      '~/x.yaml',
      'https://me:hunter2@example.com/values.yaml',
      's3://bucket/values.yaml',
    ]
    expect(await problems({ 'values-files': lines.join('\n') })).toEqual([
      '`values-files` ("chart") is a directory; name the files themselves, one a line.',
      '`values-files` ("dangling.yaml") does not exist. Is there a checkout before this step?',
      '`values-files` ("latin1.yaml") is not a text in UTF-8.',
      '`values-files` ("utf16.yaml") is not a text in UTF-8.',
      '`values-files` ("50%off.yaml") has a % in its path, which Helm takes for the escape of an address; name a copy without.',
      '`values-files` ("/dev/null") is no regular file; name the files themselves, one a line.',
      '`values-files` begins with ~, which only a shell understands; write it out.',
      '`values-files` holds an address; fetch the file in an earlier step and name it here.',
      '`values-files` holds an address; fetch the file in an earlier step and name it here.',
    ])
  })

  test('ten thousand keys take no time', async () => {
    const lines = Array.from({ length: 10_000 }, (_, index) => `key${index}: value`)
    const startedMs = performance.now()
    await accept({ values: lines.join('\n') })
    expect(performance.now() - startedMs).toBeLessThan(10_000)
  })

  test('that are given forget those of the release, unless said otherwise', async () => {
    write('some.yaml', 'a: 1')
    expect(await accept({ values: 'a: 1' })).toMatchObject({ existingValues: 'reset' })
    expect(await accept({ 'values-files': 'some.yaml' })).toMatchObject({ existingValues: 'reset' })
    expect(await accept({ values: ' \n' })).toMatchObject({
      existingValues: 'keep',
      callerValues: { text: undefined },
    })
    expect(await accept({ values: 'a: 1', 'existing-values': 'keep' })).toMatchObject({
      existingValues: 'keep',
    })
    expect(await accept({ 'existing-values': 'reset' })).toMatchObject({ existingValues: 'reset' })
    expect(await problems({ 'existing-values': 'Keep' })).toEqual([
      '`existing-values` is keep or reset ("Keep").',
    ])
  })

  test('that set what this action sets have no effect, and are told', async () => {
    const values = 'docs:\n  staticExport: {enabled: false, bundleUrl: x, version: y}\n'
    write('ours.yaml', values)
    const given = { 'values-files': 'ours.yaml', values, 'values-key': 'docs.staticExport' }
    const told = (source: string, name: string) =>
      `${source} sets docs.staticExport.${name}, which has no effect: the value of this action comes last.`
    expect(await warningsOf(given)).toEqual([
      told('`values-files` ("ours.yaml")', 'enabled'),
      told('`values-files` ("ours.yaml")', 'bundleUrl'),
      told('`values`', 'enabled'),
      told('`values`', 'bundleUrl'),
    ])
    expect(await warningsOf({ ...given, version: 'v2' })).toHaveLength(6)
    expect(await warningsOf({ ...given, 'values-key': 'staticExport' })).toEqual([])
  })

  test.each([
    ['staticExport: {version: v1}', true],
    ['staticExport: {version: null}', true],
    ['base: &base {version: v1}\nstaticExport:\n  <<: *base\n', true],
    ['base: &base {version: v1}\nstaticExport: *base\n', true],
    ['staticExport: {label: v1}', false],
    ['staticExport: [version]', false],
    ['staticExport:\n', false],
    ['version: v1', false],
    ['other: {staticExport: {version: v1}}', false],
  ])('%j set a version: %s', async (values, setsVersion) => {
    expect((await accept({ values })).callerValues.setsVersion).toBe(setsVersion)
    write('version.yaml', values)
    const files = { 'values-files': 'version.yaml', values: 'a: 1' }
    expect((await accept(files)).callerValues.setsVersion).toBe(setsVersion)
  })
})

describe('the chart and what goes with it', () => {
  const oci = 'oci://registry.example.com/charts/docs'
  const user = { 'chart-username': 'me', 'chart-password': 'hunter2' }

  test.each<[Given, string[]]>([
    [
      { 'chart-version': '1.2.3' },
      [
        '`chart-version` does not go with a chart that is a path: its version is in its Chart.yaml.',
      ],
    ],
    [
      { chart: `${oci}:1.2.3`, 'chart-version': '1.2.3' },
      ['`chart-version` does not go with a tag or a digest in `chart`; leave one of them out.'],
    ],
    [
      { chart: oci, 'chart-version': 'latest' },
      ['`chart-version` is a version such as 1.2.3, or a range such as ^1.2 ("latest").'],
    ],
    [
      user,
      ['`chart-username` and `chart-password` are for `chart-repository` and oci:// charts only.'],
    ],
    [
      { chart: oci, 'chart-username': 'me' },
      [
        '`chart-username` and `chart-password` belong together; the password is missing. (Is the secret defined?)',
      ],
    ],
    [
      { chart: oci, 'chart-password': 'hunter2' },
      [
        '`chart-username` and `chart-password` belong together; the user name is missing. (Is the secret defined?)',
      ],
    ],
    [
      { chart: oci, 'chart-username': 'me:hunter2', 'chart-password': 'hunter2\nx' },
      [
        '`chart-username` holds a character that no user name has, such as a colon or the end of a line.',
        '`chart-password` holds the end of a line or another control character.',
      ],
    ],
    // A repository that is wrong is one problem, not two.
    [
      { chart: 'docs', 'chart-repository': 'charts.example.com' },
      ['`chart-repository` is not an https address ("charts.example.com").'],
    ],
  ])('%j', async (given, expected) => {
    expect(await problems(given)).toEqual(expected)
  })

  test('a repository without TLS is a warning, except on this machine', async () => {
    const given = { chart: 'docs', 'chart-repository': 'http://charts.example.com' }
    expect(await warningsOf(given)).toEqual([
      '`chart-repository` is not https: anyone on the way can change the chart.',
    ])
    expect(await warningsOf({ ...given, ...user })).toEqual([
      '`chart-repository` is not https: anyone on the way can change the chart and read the password.',
    ])
    expect(await warningsOf({ ...given, 'chart-repository': 'http://127.0.0.1:8080' })).toEqual([])
  })
})

describe('the mirror', () => {
  const mirror = { 'mirror-bucket': 'bucket', 'mirror-base-url': 'https://cdn.example.com/x' }

  test.each([
    ['', ''],
    ['/', ''],
    ['docs', 'docs'],
    ['//a.b/c_d-e/', 'a.b/c_d-e'],
  ])('prefix %j is %j', async (given, prefix) => {
    expect((await accept({ ...mirror, 'mirror-prefix': given })).mirror?.prefix).toBe(prefix)
  })

  test.each<[Given, string[]]>([
    [
      { 'mirror-prefix': 'docs', 'mirror-base-url': 'https://cdn.example.com' },
      [
        '`mirror-prefix` has no effect without `mirror-bucket`, which switches the mirror on.',
        '`mirror-base-url` has no effect without `mirror-bucket`, which switches the mirror on.',
      ],
    ],
    [
      { 'mirror-bucket': 'bucket' },
      [
        '`mirror-base-url` is missing: where pods find what is in `mirror-bucket`, its prefix included.',
      ],
    ],
    [
      { ...mirror, 'mirror-bucket': 's3://bucket/docs' },
      [
        '`mirror-bucket` is the name of a bucket alone, 3 to 63 letters, digits, dots and hyphens ("s3://bucket/docs").',
      ],
    ],
    [
      { ...mirror, 'mirror-prefix': 'a/../b' },
      [
        '`mirror-prefix` is letters, digits, dots, hyphens and underscores, with slashes between ("a/../b").',
      ],
    ],
    [
      { ...mirror, 'mirror-region': 'eu central' },
      ['`mirror-region` is the name of a region, such as eu-central-1 ("eu central").'],
    ],
    [
      {
        ...mirror,
        'mirror-endpoint-url': 'minio:9000',
        'mirror-base-url': 'https://cdn.example.com/?token=hunter2',
      },
      [
        '`mirror-endpoint-url` is not an http address ("minio:9000").',
        '`mirror-base-url` has a query or a fragment; the name of the archive is added at its end, so leave it out.',
      ],
    ],
    [
      { ...mirror, 'mirror-endpoint-url': 'https://me:hunter2@minio.example.com' },
      ['`mirror-endpoint-url` holds a user name or password; leave them out.'],
    ],
  ])('%j', async (given, expected) => {
    expect(await problems(given)).toEqual(expected)
  })

  test('warns when the base URL lacks the prefix', async () => {
    const given = { ...mirror, 'mirror-prefix': 'exports/docs' }
    expect(await warningsOf(given)).toEqual([
      '`mirror-base-url` does not end in `mirror-prefix` (exports/docs). Pods find nothing there, unless something in between adds it.',
    ])
    const right = { ...given, 'mirror-base-url': 'https://cdn.example.com/exports/docs/' }
    expect(await warningsOf(right)).toEqual([])
  })
})

test.each<[HelmInputName, string, string]>([
  [
    'helm-timeout-minutes',
    '60.1',
    '`helm-timeout-minutes` is a number of minutes above 0 and at most 60, without a unit ("60.1").',
  ],
  [
    'helm-timeout-minutes',
    '5m',
    '`helm-timeout-minutes` is a number of minutes above 0 and at most 60, without a unit ("5m").',
  ],
  ['kube-context', 'a\nb', '`kube-context` is one name on one line ("a b").'],
  ['verify-url', 'docs.example.com', '`verify-url` is not an http address ("docs.example.com").'],
  [
    'verify-url',
    'https://me:hunter2@docs.example.com/',
    '`verify-url` holds a user name or password; leave them out.',
  ],
  [
    'helm-version',
    '3.20.0',
    '`helm-version` is 3, 4, 4.2.4 or 3.21.4, whose checksums are known ("3.20.0"). For another, install it before this step, with azure/setup-helm for example, and leave `helm-version` empty.',
  ],
  [
    'kubeconfig',
    'hunter2',
    '`kubeconfig` is not a kubeconfig, neither as YAML nor in base64. Is the secret whole? (`kubectl config view --raw --flatten --minify` prints what belongs into it.)',
  ],
  ['values', `a: ${key}`, '`values` holds the API key, which belongs into `api-key` alone.'],
  ['values-files', key, '`values-files` holds the API key, which belongs into `api-key` alone.'],
])('%s %j is refused', async (name, text, problem) => {
  expect(await problems({ [name]: text })).toEqual([problem])
})

test('whatever the inputs hold: they are read or refused, and no problem has a secret or a command', async () => {
  const text = fc.oneof(
    fc.string(),
    fc.string({ unit: 'binary' }),
    fc.webUrl(),
    fc.constantFrom('', '\r::error::x', 'x\n##[add-mask]y', 'https://u:p@h', 'true', '1', '-', './chart', 'oci://h/c:1', 'a: [1', 'a: b: c'), // prettier-ignore
  )
  const given = fc.record(
    Object.fromEntries(helmInputNames.map((name) => [name, text])) as Record<
      HelmInputName,
      fc.Arbitrary<string>
    >,
  )
  const suffix = fc.stringMatching(/^[0-9a-zA-Z]{12,20}$/)
  await fc.assert(
    fc.asyncProperty(given, suffix, async (all, secret) => {
      const messages: string[] = []
      try {
        await readHelmInputs(
          (name) =>
            /^(?:api-key|values|chart-password|kubeconfig)$/.test(name)
              ? `${all[name]}${secret}`
              : all[name],
          (message) => messages.push(message),
          { disk: systemDisk, workspace },
        )
      } catch (error) {
        if (!(error instanceof InvalidInputs)) throw error
        expect(error.problems.length).toBeGreaterThan(0)
        messages.push(...error.problems)
      }
      expect(messages.join('\n')).not.toContain(secret)
      expect(commandsIn(messages.join('\n'))).toEqual([])
    }),
  )
})

describe('helm/action.yml', () => {
  const file = path.resolve(import.meta.dirname, '../../helm/action.yml')
  const manifest = load(fs.readFileSync(file, 'utf8')) as {
    inputs: Record<HelmInputName, { description: string; required?: boolean; default?: string }>
    outputs: Record<string, { description: string }>
    runs: { using: string; main: string }
  }

  test('declares the inputs that are read and the outputs that are written', () => {
    expect(Object.keys(manifest.inputs)).toEqual(helmInputNames)
    expect(Object.keys(manifest.outputs)).toEqual(helmOutputNames)
  })

  test('has the defaults that the code has', async () => {
    const byManifest = await accept(
      Object.fromEntries(
        helmInputNames.map((name) => [name, good[name] ?? manifest.inputs[name].default ?? '']),
      ),
    )
    expect(byManifest).toEqual(await accept({}))
  })

  test('requires what the code requires', async () => {
    const required = helmInputNames.filter((name) => manifest.inputs[name].required)
    expect(required).toEqual(Object.keys(good))
    expect(await problemsOf({})).toHaveLength(required.length)
  })

  test('names inputs and outputs that exist', () => {
    const texts = [...Object.values(manifest.inputs), ...Object.values(manifest.outputs)]
    const named = texts.flatMap(({ description }) =>
      [...description.matchAll(/`([a-z]+(?:-[a-z]+)+)`/g)].map(([, name]) => name),
    )
    expect([...helmInputNames, 'verify-failed']).toEqual(expect.arrayContaining(named))
  })

  test('runs a program beside it', () => {
    expect(manifest.runs).toEqual({ using: 'node24', main: '../dist/helm/index.js' })
  })
})
