/**
 * `npm run e2e [FILE…]`: installs what is missing, runs the end-to-end tests one file after another, and ends with a
 * table in Markdown. The exit code is 1 when a test has failed.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import process from 'node:process'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'

const root = path.resolve(import.meta.dirname, '..')
/** For one test; the longest take a minute on a machine that does nothing else. */
const testTimeoutMs = 5 * 60_000

interface Row {
  readonly scenario: string
  readonly helm: string
  readonly passed: boolean
  readonly seconds: number
}

process.exitCode = (await install()) ? await testAll(process.argv.slice(2)) : 1

async function install(): Promise<boolean> {
  const installer = path.join(root, 'e2e/tools/install.ts')
  const child = spawn(process.execPath, [installer], { stdio: 'inherit' })
  const [code] = (await once(child, 'exit')) as [number | null]
  return code === 0
}

/** @returns the exit code */
async function testAll(named: readonly string[]): Promise<0 | 1> {
  const files = named.length > 0 ? [...named] : globSync('e2e/**/*.test.ts', { cwd: root }).sort()
  const rows: Row[] = []
  for (const file of files.map((name) => path.resolve(root, name))) {
    const stream = run({ cwd: root, files: [file], execArgv: optionsFor(file) })
    const add = (passed: boolean) => (test: Ended) => {
      if (test.details.type !== 'suite') rows.push(toRow(test, passed))
    }
    stream.on('test:pass', add(true))
    stream.on('test:fail', add(false))
    const output = stream.compose(spec)
    output.pipe(process.stdout, { end: false })
    await once(output, 'end')
  }

  const failed = rows.filter(({ passed }) => !passed).length
  console.log(`\n${toTable(rows)}\n\n${rows.length - failed} passed, ${failed} failed`)
  return failed > 0 || rows.length === 0 ? 1 : 0
}

/**
 * What a failed test has left open must not keep the next file from its turn. A file that awaits its tests one by one
 * would be ended after the first.
 */
function optionsFor(file: string): string[] {
  const isOneByOne = /^ *await test\(/m.test(readFileSync(file, 'utf8'))
  return [`--test-timeout=${testTimeoutMs}`, ...(isOneByOne ? [] : ['--test-force-exit'])]
}

interface Ended {
  readonly name: string
  readonly details: { readonly type?: string; readonly duration_ms: number }
}

function toRow({ name, details }: Ended, passed: boolean): Row {
  const [, major = ''] = /\bHelm ([34])\b/.exec(/\(Helm [34]\)$/.exec(name)?.[0] ?? name) ?? []
  const scenario = name.replace(/ \(Helm [34]\)$/, '').replaceAll('|', '\\|')
  return { scenario, helm: major, passed, seconds: details.duration_ms / 1000 }
}

function toTable(rows: readonly Row[]): string {
  const lines = rows.map(({ scenario, helm, passed, seconds }) => {
    return `| ${scenario} | ${helm} | ${passed ? 'passed' : '**failed**'} | ${seconds.toFixed(1)} |`
  })
  return ['| scenario | Helm | result | seconds |', '| --- | --- | --- | ---: |', ...lines].join(
    '\n',
  )
}
