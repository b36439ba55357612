/** What a run leaves on the disk: each target whole or untouched, and nothing else. */
import { describe, expect, test } from '@jest/globals'
import { createHash } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'
import { type Disk, systemDisk } from '../src/disk.ts'
import { Failure } from '../src/errors.ts'
import { type Scenario, wholeRun } from './support/whole-run.ts'

const all = {
  'bundle-file': 'out/site.tar.gz',
  'site-directory': 'out/site',
  'values-file': 'out/values.yaml',
}

async function expectDelivered(scenario: Scenario) {
  const run = await wholeRun(scenario)
  expect(run.runner.lines.filter((line) => line.startsWith('Error: '))).toEqual([])
  expect(run.exitCode).toBe(0)
  expect(run.leftovers).toEqual([])
  return run
}

async function expectUntouched(scenario: Scenario, code: string) {
  const run = await wholeRun(scenario)
  expect(run.runner.outputs.get('failureCode')).toBe(code)
  expect(Object.keys(run.files)).toEqual([])
  expect(run.leftovers).toEqual([])
  for (const name of ['bundleFile', 'siteDirectory', 'valuesFile', 'bundleUrl']) {
    expect(run.runner.outputs.get(name)).toBe('')
  }
  return run
}

const downloads = ({ requests }: { requests: readonly { operation: string | undefined }[] }) =>
  requests.filter(({ operation }) => operation === 'download').length

describe('any combination takes one download at most', () => {
  test.each<[string[], string[], number]>([
    [['bundle-file'], ['out/site.tar.gz'], 1],
    [['site-directory'], ['out/site/index.html'], 1],
    [['values-file'], ['out/values.yaml'], 0],
    [['bundle-file', 'site-directory'], ['out/site.tar.gz', 'out/site/index.html'], 1],
    [['bundle-file', 'values-file'], ['out/site.tar.gz', 'out/values.yaml'], 1],
    [
      ['bundle-file', 'site-directory', 'values-file'],
      ['out/site.tar.gz', 'out/site/index.html', 'out/values.yaml'],
      1,
    ],
  ])('%j', async (names, files, times) => {
    const chosen = Object.entries(all).filter(([name]) => names.includes(name))
    const run = await expectDelivered({ inputs: Object.fromEntries(chosen) })
    expect(Object.keys(run.files)).toEqual(expect.arrayContaining(files))
    expect(
      Object.keys(run.files).every((file) => files.includes(file) || file.startsWith('out/site/')),
    ).toBe(true)
    expect(downloads(run)).toBe(times)
    expect(run.runner.outputs.get('bundleSha256')).toMatch(times === 0 ? /^$/ : /^[0-9a-f]{64}$/)
  })
})

test('the archive is the one of the checksum, the pages are those of the site', async () => {
  const run = await expectDelivered({
    inputs: all,
    inspect(workspace) {
      const archive = fs.readFileSync(path.join(workspace, 'out/site.tar.gz'))
      const values = path.join(workspace, 'out/values.yaml')
      return {
        sha256: createHash('sha256').update(archive).digest('hex'),
        valuesMode: fs.statSync(values).mode & 0o777,
      }
    },
  })
  expect(run.inspected).toEqual({
    sha256: run.runner.outputs.get('bundleSha256'),
    valuesMode: 0o600,
  })
  expect(run.files['out/site/guides/start.html']).toContain('How to start Acme')
  expect(run.files['out/values.yaml']).toContain(run.runner.outputs.get('bundleUrl'))
})

test('files of an earlier run are replaced, an emptied directory is filled', async () => {
  const run = await expectDelivered({
    inputs: all,
    furnish(workspace) {
      fs.mkdirSync(path.join(workspace, 'out/site'), { recursive: true })
      fs.writeFileSync(path.join(workspace, 'out/site.tar.gz'), 'old')
      fs.writeFileSync(path.join(workspace, 'out/values.yaml'), 'old', { mode: 0o644 })
    },
    inspect: (workspace) => fs.statSync(path.join(workspace, 'out/values.yaml')).mode & 0o777,
  })
  expect(run.files['out/site.tar.gz']).not.toBe('old')
  expect(run.inspected).toBe(0o600)
})

test('a link that a long download has used up is renewed before it is handed over', async () => {
  const run = await expectDelivered({
    inputs: all,
    emulator: {
      linkSeconds: 60,
      faults: [{ operation: 'download', kind: 'reply', status: 503, body: 'xml', retryAfter: 45 }],
    },
  })
  const bundles = run.requests.filter(({ operation }) => operation === 'bundle')
  expect(bundles).toHaveLength(2)
  expect(run.files['out/values.yaml']).toContain(run.runner.outputs.get('bundleUrl'))
})

test('a path is not read as a command of the runner', async () => {
  const run = await expectDelivered({ inputs: { 'bundle-file': 'x##[error]boo/site.tar.gz' } })
  expect(run.runner.lines.filter((line) => line.includes('##['))).toEqual([])
})

test('a mirrored archive is named by its checksum', async () => {
  const run = await expectDelivered({
    inputs: {
      'values-file': 'values.yaml',
      'values-bundle-url': 'https://mirror.test/{sha256}.tar.gz',
      version: '1.10',
    },
  })
  const sha256 = run.runner.outputs.get('bundleSha256') ?? ''
  expect(run.files['values.yaml']).toBe(`staticExport:
  enabled: true
  bundleUrl: "https://mirror.test/${sha256}.tar.gz"
  version: "1.10"
`)
  expect(run.runner.lines.join('\n')).not.toContain('Pods that start after')
})

describe('nothing is left of a run that fails', () => {
  test('by a broken byte in the archive', async () => {
    for (const inputs of [{ 'bundle-file': 'site.tar.gz' }, all]) {
      await expectUntouched(
        { inputs, emulator: { faults: [{ operation: 'download', kind: 'corrupt' }] } },
        'integrity',
      )
    }
  })

  test('by a connection that never holds', async () => {
    const faults = [{ operation: 'download', kind: 'reset', times: 'always' }] as const
    await expectUntouched({ inputs: all, emulator: { faults } }, 'network')
  })

  test('by a cancellation while it downloads', async () => {
    const run = await expectUntouched(
      {
        inputs: all,
        emulator: { faults: [{ operation: 'download', kind: 'reset', afterBytes: 900 }] },
        cancelAt: 'The download was interrupted',
      },
      'cancelled',
    )
    expect(run.runner.lines.at(-1)).toContain('has completed and stays available')
  })

  test('by a disk that fills while it unpacks', async () => {
    const disk: Disk = {
      ...systemDisk,
      create(file, mode) {
        if (file.endsWith('faq.html'))
          throw new Failure('disk', `${file}: the disk is full (0 B free).`)
        return systemDisk.create(file, mode)
      },
    }
    await expectUntouched({ inputs: all, disk }, 'disk')
  })
})

test('what stood there before a failure still stands there', async () => {
  const run = await wholeRun({
    inputs: all,
    furnish(workspace) {
      fs.mkdirSync(path.join(workspace, 'out'))
      fs.writeFileSync(path.join(workspace, 'out/site.tar.gz'), 'old')
    },
    emulator: { faults: [{ operation: 'download', kind: 'corrupt' }] },
  })
  expect(run.files).toEqual({ 'out/site.tar.gz': 'old' })
})

test('a disk that is full tells what is needed and what is free', async () => {
  const disk: Disk = {
    ...systemDisk,
    create(file, mode) {
      return {
        ...systemDisk.create(file, mode),
        write() {
          throw new Failure('disk', `${file}: the disk is full (12 kB free).`, {
            cause: Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' }),
          })
        },
      }
    },
  }
  const run = await wholeRun({ inputs: { 'bundle-file': 'site.tar.gz' }, disk })
  expect(run.runner.lines.at(-1)).toMatch(/the disk is full \(12 kB free\).*needs [\d.]+ kB/s)
})
