/** The committed bundles, as a reviewer would look at them. Whether they are fresh is for `.ci/run` to say. */
import { readFileSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from '@jest/globals'

const root = path.resolve(import.meta.dirname, '..')

/** Where the bundler says that its modules come from, as `node_modules/@actions/core/lib/core.js`. */
const moduleComment =
  /^;?\/\/ (?:CONCATENATED|EXTERNAL) MODULE: \.\/(?:.*\/(?=node_modules\/))?(\S+)/gm

/** The bundler does not name the packages that are alone in their chunk. A large file of theirs tells. */
const largeFiles = {
  '@actions/github': '@octokit/plugin-rest-endpoint-methods/dist-src/generated/endpoints.js',
  '@aws-sdk/client-s3': '@aws-sdk/client-s3/dist-cjs/index.js',
  'js-yaml': 'js-yaml/dist/js-yaml.mjs',
  'tar-stream': 'tar-stream/extract.js',
  zod: 'zod/v4/core/schemas.js',
}
type Package = keyof typeof largeFiles

const bundles = [
  {
    folder: 'dist',
    nested: ['helm'],
    named: ['@actions/core', 'tunnel', 'undici', 'zod'],
    late: ['@actions/github', 'tar-stream', 'zod'],
    lacks: ['@aws-sdk/client-s3', 'js-yaml'],
  },
  {
    folder: 'dist/helm',
    nested: [],
    named: ['@actions/core', 'js-yaml', 'tunnel', 'undici', 'zod'],
    late: ['@aws-sdk/client-s3', 'tar-stream', 'zod'],
    lacks: ['@actions/github'],
  },
] satisfies {
  folder: string
  nested: string[]
  named: string[]
  late: Package[]
  lacks: Package[]
}[]

describe.each(bundles)('$folder', ({ folder, nested, named, late, lacks }) => {
  const files = readdirSync(path.join(root, folder))
  const scripts = new Map(
    files.filter((name) => name.endsWith('.js')).map((name) => [name, readText(folder, name)]),
  )
  const all = [...scripts.values()].join('\n')
  const entry = scripts.get('index.js') ?? ''

  test('consists of JavaScript, its licences and a manifest', () => {
    const known = /^(?:(?:\d+\.)?index\.js|licenses\.txt|package\.json)$/
    expect(files.filter((name) => !known.test(name))).toEqual(nested)
    expect(JSON.parse(readText(folder, 'package.json'))).toEqual({ type: 'module' })
  })

  test('has the licence of every package in it', () => {
    const lock = JSON.parse(readText('package-lock.json')) as {
      packages: Record<string, { version: string }>
    }
    const names = [...new Set([...packagesIn(all), ...late])].sort()
    expect(names).toEqual(expect.arrayContaining(named))

    const sections = licenceSections(readText(folder, 'licenses.txt'))
    const lacking = names.filter((name) => {
      const section = sections.find(({ heading }) => heading.startsWith(`${name} `))
      const version = lock.packages[`node_modules/${name}`]?.version ?? '?'
      return (
        !section?.heading.startsWith(`${name} ${version} `) ||
        section.text.length < 300 ||
        !/copyright|licen[cs]e/i.test(section.text)
      )
    })
    expect(lacking).toEqual([])
  })

  test('has one copy of @actions/http-client', () => {
    const paths = all.match(/\.\/\S*node_modules\/@actions\/http-client\/lib\/index\.js/g)
    expect(new Set(paths).size).toBe(1)
    expect(all.match(/^class HttpClient \{/gm)).toHaveLength(1)
  })

  test('is not minified, so that it can be reviewed', () => {
    for (const text of scripts.values()) {
      const lines = text.split('\n')
      expect(text.length / lines.length).toBeLessThan(80)
    }
  })

  test('is smaller than 2 MB, not counting what only a mirror needs', () => {
    const counted = [...scripts.values()].filter(
      (text) =>
        !holds(text, '@aws-sdk/client-s3') && !modulesIn(text).includes('src/object-storage.ts'),
    )
    expect(scripts.size - counted.length).toBe(folder === 'dist' ? 0 : 2)
    const sizes = counted.map((text) => Buffer.byteLength(text))
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(2_000_000)
  })

  test('loads no code from strings and no native addon', () => {
    expect(all.match(/\beval\(/g)).toBeNull()
    expect(all.match(/\bdlopen\b|\.node['"`]/g)).toBeNull()
  })

  test(`loads ${late.join(', ')} only when they are needed`, () => {
    for (const name of late) {
      expect({ name, early: holds(entry, name) }).toEqual({ name, early: false })
      expect({ name, there: [...scripts.values()].some((text) => holds(text, name)) }).toEqual({
        name,
        there: true,
      })
    }
    // A static import of a chunk would load it at the start all the same.
    expect(entry.match(/^import .*["']\.\/.*$/gm)).toBeNull()
  })

  test(`holds nothing of ${lacks.join(', ')}`, () => {
    for (const name of lacks) {
      expect(packagesIn(all)).not.toContain(name)
      expect([...scripts].filter(([, text]) => holds(text, name))).toEqual([])
    }
  })
})

test('dist holds nothing of the Helm action', () => {
  const sources = bundles.map(({ folder }) =>
    readdirSync(path.join(root, folder))
      .filter((name) => name.endsWith('.js'))
      .flatMap((name) => modulesIn(readText(folder, name)))
      .filter((name) => name.startsWith('src/')),
  )
  expect(sources[0]).toContain('src/session.ts')
  expect(sources[0]?.filter((name) => name.startsWith('src/helm/'))).toEqual([])
  expect(sources[1]).toContain('src/helm/deploy.ts')
})

function readText(...names: string[]): string {
  return readFileSync(path.join(root, ...names), 'utf8')
}

function modulesIn(text: string): string[] {
  return [...text.matchAll(moduleComment)].map(([, module = '']) => module)
}

function packagesIn(text: string): string[] {
  return modulesIn(text).flatMap(
    (module) => /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(module)?.[1] ?? [],
  )
}

/** Whether most long lines of a package's large file are there; the bundler rewrites some. */
function holds(text: string, name: Package): boolean {
  const toLines = (code: string) => code.split('\n').map((line) => line.trim())
  const long = toLines(readText('node_modules', largeFiles[name])).filter(
    ({ length }) => length > 30,
  )
  const there = new Set(toLines(text))
  return long.filter((line) => there.has(line)).length > long.length / 2
}

/** Sections begin with a line of name, version and licence, underlined. */
function licenceSections(text: string): { heading: string; text: string }[] {
  const headings = [...text.matchAll(/^(\S+ \S+ .+)\n(-+)\n/gm)].filter(
    ([, heading = '', line = '']) => heading.length === line.length,
  )
  return headings.map(([whole, heading = ''], index) => {
    const { index: start = 0 } = headings[index] ?? {}
    return { heading, text: text.slice(start + whole.length, headings[index + 1]?.index).trim() }
  })
}
