/** Where a run may write: what is wrong with a place is told before anything is sent. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { systemDisk } from '../src/disk.ts'
import { InvalidInputs } from '../src/input-reader.ts'
import { type InputName, readInputs } from '../src/inputs.ts'
import { assertWritable, targetProblem } from '../src/targets.ts'

let root: string
let workspace: string
let home: string

beforeEach(() => {
  root = fs.mkdtempSync(path.join(tmpdir(), 'targets-'))
  workspace = path.join(root, 'work/repository')
  home = path.join(root, 'home/me')
  fs.mkdirSync(workspace, { recursive: true })
  fs.mkdirSync(home, { recursive: true })
  fs.writeFileSync(path.join(workspace, 'file'), '')
  fs.mkdirSync(path.join(workspace, 'directory/below'), { recursive: true })
  fs.mkdirSync(path.join(workspace, 'empty'))
  fs.symlinkSync('file', path.join(workspace, 'link'))
  fs.symlinkSync('empty', path.join(workspace, 'link-to-empty'))
})

afterEach(() => {
  fs.rmSync(root, { recursive: true })
})

function read(given: Partial<Record<InputName, string>>) {
  const all: Partial<Record<InputName, string>> = {
    'api-key': 'mint_0123456789abcdef',
    'base-url': 'https://api.example.com',
    domain: 'docs.example.com',
    ...given,
  }
  return readInputs(
    (name) => all[name] ?? '',
    () => undefined,
    { disk: systemDisk, workspace, home },
  ).delivery
}

function problemsOf(given: Partial<Record<InputName, string>>): readonly string[] {
  try {
    read(given)
    return []
  } catch (error) {
    if (error instanceof InvalidInputs) return error.problems
    throw error
  }
}

test('relative paths begin in the workspace, absolute ones stay', () => {
  const absolute = path.join(root, 'elsewhere/values.yaml')
  expect(
    read({
      'bundle-file': 'out/site.tar.gz',
      'site-directory': '../site',
      'values-file': absolute,
    }),
  ).toEqual({
    bundleFile: path.join(workspace, 'out/site.tar.gz'),
    siteDirectory: path.join(root, 'work/site'),
    chartValues: { file: absolute, key: 'staticExport', bundleUrl: undefined, version: undefined },
  })
})

test('a file that stands there may be replaced, an empty directory may be filled', () => {
  expect(problemsOf({ 'bundle-file': 'file', 'site-directory': 'empty' })).toEqual([])
})

describe.each<[InputName, string, RegExp]>([
  ['bundle-file', 'link', /symbolic link/],
  ['values-file', 'link', /symbolic link/],
  ['site-directory', 'link-to-empty', /symbolic link/],
  ['bundle-file', 'directory', /is a directory, where a file/],
  ['values-file', 'directory', /is a directory, where a file/],
  ['site-directory', 'file', /is a file, where a directory/],
  ['site-directory', '.', /workspace or a directory above it/],
  ['site-directory', '..', /workspace or a directory above it/],
  ['site-directory', '/', /workspace or a directory above it/],
  ['site-directory', 'directory', /not empty/],
  ['site-directory', '.git/site', /inside a \.git directory/],
  ['site-directory', 'vendor/.GIT/site', /inside a \.git directory/],
  ['site-directory', '../../home', /home directory/],
  ['values-file', 'file/values.yaml', /stands where a directory is needed/],
  ['site-directory', 'file/deeper/site', /stands where a directory is needed/],
])('%s: %s', (name, target, why) => {
  test('is refused with the reason', () => {
    expect(problemsOf({ [name]: target })).toEqual([expect.stringMatching(why)])
  })
})

test('a mount point is refused, since nothing can take its place', () => {
  const disk = { ...systemDisk, isMountPoint: () => true }
  const problem = targetProblem('site-directory', path.join(workspace, 'empty'), {
    disk,
    workspace,
    home,
  })
  expect(problem).toMatch(/is a mount point/)
})

describe('two targets', () => {
  test.each([
    [{ 'bundle-file': 'out/a', 'values-file': './out/a' }, /name the same place/],
    [{ 'bundle-file': 'out/site/a.tar.gz', 'site-directory': 'out/site' }, /inside/],
    [{ 'values-file': 'out/site/a.yaml', 'site-directory': 'out/site' }, /inside/],
    [{ 'bundle-file': 'out', 'site-directory': 'out/site' }, /inside/],
  ])('%j overlap', (given, why) => {
    expect(problemsOf(given)).toEqual([expect.stringMatching(why)])
  })

  test('overlap by way of a link in the path, too', () => {
    fs.symlinkSync(path.join(workspace, 'empty'), path.join(workspace, 'alias'))
    const given = { 'bundle-file': 'alias/a', 'values-file': 'empty/a' }
    expect(problemsOf(given)).toEqual([expect.stringMatching(/name the same place/)])
  })

  test('with names that only begin alike do not', () => {
    const given = {
      'bundle-file': 'out/site.tar.gz',
      'site-directory': 'out/site',
      'values-file': 'out/..site',
    }
    expect(problemsOf(given)).toEqual([])
  })
})

describe('the chart values', () => {
  test.each([
    [{ 'values-bundle-url': 'https://mirror.test/a' }, /needs `values-file`/],
    [{ 'values-file': 'v', 'values-bundle-url': 'mirror/a' }, /not an http address/],
    [{ 'values-file': 'v', 'values-bundle-url': 'https://mirror.test/a b' }, /printable ASCII/],
    [{ 'values-file': 'v', 'values-key': 'a..b' }, /names with dots/],
  ])('%j is refused', (given, why) => {
    expect(problemsOf(given)).toEqual([expect.stringMatching(why)])
  })

  test('take the version along, and a link with the checksum', () => {
    const given = {
      'values-file': 'v',
      'values-key': 'docs.staticExport',
      'values-bundle-url': 'http://mirror.cluster.local/{sha256}.tar.gz',
      version: '1.10',
    }
    expect(read(given).chartValues).toEqual({
      file: path.join(workspace, 'v'),
      key: 'docs.staticExport',
      bundleUrl: 'http://mirror.cluster.local/{sha256}.tar.gz',
      version: '1.10',
    })
  })
})

test('a parent that cannot be written is `disk`, before any request', () => {
  const disk = { ...systemDisk, isWritable: (directory: string) => directory !== '/read-only' }
  expect(() => {
    assertWritable(['/read-only/values.yaml'], disk)
  }).toThrow(expect.objectContaining({ code: 'disk' }))
})
