/** The committed bundle, as a reviewer would look at it. Whether it is fresh is for `.ci/run` to say. */
import { readFileSync, readdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from '@jest/globals'

const dist = path.resolve(import.meta.dirname, '../dist')
const files = readdirSync(dist)
const scripts = new Map(
  files.filter((name) => name.endsWith('.js')).map((name) => [name, readText(name)]),
)
const all = [...scripts.values()].join('\n')

/** Where the bundler says that its modules come from, as `@actions/core/lib/core.js`. */
const moduleComment = /^;?\/\/ (?:CONCATENATED|EXTERNAL) MODULE: \.\/(?:.*\/)?node_modules\/(\S+)/gm
const modules = modulesIn(all)

test('consists of JavaScript, its licences and a manifest', () => {
  const known = /^(?:(?:\d+\.)?index\.js|licenses\.txt|package\.json)$/
  expect(files.filter((name) => !known.test(name))).toEqual([])
  expect(JSON.parse(readText('package.json'))).toEqual({ type: 'module' })
})

test('has the licence of every package in it', () => {
  const lock = JSON.parse(readFileSync(path.join(dist, '../package-lock.json'), 'utf8')) as {
    packages: Record<string, { version: string }>
  }
  const names = [...new Set(modules.map(packageOf))].sort()
  expect(names).toEqual(expect.arrayContaining(['@actions/core', 'tunnel', 'undici', 'zod']))

  const sections = licenceSections(readText('licenses.txt'))
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

test('is smaller than 2 MB', () => {
  const sizes = [...scripts.keys()].map((name) => statSync(path.join(dist, name)).size)
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(2_000_000)
})

test('loads no code from strings and no native addon', () => {
  expect(all.match(/\beval\(/g)).toBeNull()
  expect(all.match(/\bdlopen\b|\.node['"`]/g)).toBeNull()
})

test('loads zod, @actions/github and tar-stream only when they are needed', () => {
  const late = ['zod', '@actions/github', 'tar-stream']
  const [entry = '', others] = [scripts.get('index.js'), [...scripts.values()]]
  expect(
    modulesIn(entry)
      .map(packageOf)
      .filter((name) => late.includes(name)),
  ).toEqual([])
  expect(others.flatMap((text) => modulesIn(text).map(packageOf))).toEqual(
    expect.arrayContaining(late),
  )
  // A static import of a chunk would load it at the start all the same.
  expect(entry.match(/^import .*["']\.\/.*$/gm)).toBeNull()
})

function readText(name: string): string {
  return readFileSync(path.join(dist, name), 'utf8')
}

function modulesIn(text: string): string[] {
  return [...text.matchAll(moduleComment)].map(([, module = '']) => module)
}

function packageOf(module: string): string {
  return /^(?:@[^/]+\/)?[^/]+/.exec(module)?.[0] ?? ''
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
