import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { randomBytes } from 'node:crypto'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { gzipSync } from 'node:zlib'
import { defaultLimits, unpack, type UnpackDependencies } from '../src/archive.ts'
import { deadlineIn, systemClock } from '../src/clock.ts'
import { systemDisk } from '../src/disk.ts'
import { type Entry, tar, tgz } from './support/tar.ts'

let scratch: string
let sandbox: string
let warnings: string[]

beforeAll(() => {
  scratch = fs.mkdtempSync(path.join(tmpdir(), 'archive-'))
})

afterAll(() => {
  fs.rmSync(scratch, { recursive: true })
})

beforeEach(() => {
  sandbox = fs.mkdtempSync(path.join(scratch, 'run-'))
  warnings = []
})

async function unpackBytes(bytes: Uint8Array, options: Partial<UnpackDependencies> = {}) {
  const file = path.join(sandbox, 'site.tar.gz')
  fs.writeFileSync(file, bytes)
  return unpack(file, bytes.length, path.join(sandbox, 'site'), {
    disk: systemDisk,
    clock: systemClock,
    deadline: deadlineIn(60_000, systemClock),
    signal: new AbortController().signal,
    warn: (message) => warnings.push(message),
    platform: 'linux',
    ...options,
  })
}

function unpackEntries(entries: readonly Entry[], options: Partial<UnpackDependencies> = {}) {
  return unpackBytes(tgz(entries), options)
}

/** Every path below the target, files with their content. */
function unpacked(): Record<string, string | null> {
  const root = path.join(sandbox, 'site')
  const found = fs.readdirSync(root, { recursive: true, encoding: 'utf8' }).sort()
  return Object.fromEntries(
    found.map((name) => {
      const file = path.join(root, name)
      return [name, fs.statSync(file).isDirectory() ? null : fs.readFileSync(file, 'utf8')]
    }),
  )
}

const file = (name: string): Entry => ({ name, body: 'x' })

describe('unpacks', () => {
  test('files and directories, as tar writes them', async () => {
    const result = await unpackEntries([
      { name: './', flag: '5' },
      { name: './index.html', body: 'home' },
      { name: './guides/', flag: '5' },
      { name: './guides/start.html', body: 'start' },
      { name: 'empty/', flag: '5' },
      { name: 'assets/deep/er/logo.svg', body: '' },
    ])
    expect(result).toEqual({ fileCount: 3, sizeBytes: 9 })
    expect(unpacked()).toEqual({
      'index.html': 'home',
      guides: null,
      'guides/start.html': 'start',
      empty: null,
      assets: null,
      'assets/deep': null,
      'assets/deep/er': null,
      'assets/deep/er/logo.svg': '',
    })
    expect(warnings).toEqual([])
  })

  test('directories as old archives mark them', async () => {
    await unpackEntries([{ name: 'guides/', flag: '0' }, file('guides/a.html')])
    expect(unpacked()).toEqual({ guides: null, 'guides/a.html': 'x' })
  })

  test('long and non-ASCII names by PAX and GNU headers', async () => {
    const long = `${'d'.repeat(200)}/${'f'.repeat(200)}.html`
    await unpackEntries([
      { name: 'short', pax: { path: 'guides/größenänderung.html', mtime: '1.5' }, body: 'a' },
      { name: 'short', gnuLongName: long, body: 'b' },
      { name: '日本語.html', body: 'c' },
    ])
    expect(unpacked()).toMatchObject({
      'guides/größenänderung.html': 'a',
      [long]: 'b',
      '日本語.html': 'c',
    })
  })

  test('a file of many chunks, to the byte', async () => {
    const body = Buffer.alloc(3_000_001, 'static export ')
    await unpackEntries([{ name: 'big.bin', body }])
    expect(fs.readFileSync(path.join(sandbox, 'site/big.bin')).equals(body)).toBe(true)
  })

  test('an archive that begins evenly, since the whole of it counts', async () => {
    const even = { name: 'a.bin', body: Buffer.alloc(11 * 1024 ** 2) }
    const uneven = { name: 'b.bin', body: randomBytes(100_000) }
    expect(await unpackEntries([even, uneven])).toMatchObject({ fileCount: 2 })
  })

  test('without the rights that the archive asks for', async () => {
    await unpackEntries([{ name: 'run.sh', body: 'x' }])
    expect(fs.statSync(path.join(sandbox, 'site/run.sh')).mode & 0o7111).toBe(0)
  })

  test('names that only Windows cannot hold, with one warning', async () => {
    const entries = ['ab:c.html', 'aux.html', 'dot.', 'star*.html'].map((name) => ({
      name,
      body: 'x',
    }))
    await unpackEntries(entries)
    expect(warnings).toHaveLength(1)
    expect(Object.keys(unpacked())).toHaveLength(4)
  })
})

const refused: Record<string, [entries: readonly Entry[], named: string]> = {
  'a symbolic link': [[{ name: 'a', flag: '2', link: '/etc/passwd' }], 'a'],
  'a hard link': [[{ name: 'a', flag: '1', link: 'b' }], 'a'],
  'a character device': [[{ name: 'a', flag: '3' }], 'a'],
  'a block device': [[{ name: 'a', flag: '4' }], 'a'],
  'a FIFO': [[{ name: 'a', flag: '6' }], 'a'],
  'a contiguous file': [[{ name: 'a', flag: '7', body: 'x' }], 'a'],
  'an old GNU sparse file': [[{ name: 'a', flag: 'S', body: 'x' }], 'a'],
  'a type that nobody knows': [[{ name: 'a', flag: 'Z' }], 'a'],
  'a PAX sparse file': [[{ ...file('a'), pax: { 'GNU.sparse.major': '1' } }], 'a'],
  'a directory with a content': [[{ name: 'a/', flag: '5', body: 'x' }], 'a/'],
  'a size that is given twice': [[{ ...file('a'), pax: { size: '512' } }], 'a'],
  'the parent': [[file('../evil.html')], '../evil.html'],
  'a parent further down': [[file('a/../../evil.html')], 'a/../../evil.html'],
  'a parent behind ./': [[file('./../evil.html')], './../evil.html'],
  'an absolute path': [[file('/tmp/evil.html')], '/tmp/evil.html'],
  'a drive': [[file('C:/evil.html')], 'C:/evil.html'],
  'a path relative to a drive': [[file('c:evil.html')], 'c:evil.html'],
  'a network path': [[file('\\\\host\\evil.html')], '\\\\host\\evil.html'],
  'a backslash': [[file('..\\evil.html')], '..\\evil.html'],
  'an empty part': [[file('a//b.html')], 'a//b.html'],
  'a dot in between': [[file('a/./b.html')], 'a/./b.html'],
  'an empty name': [[file('')], ''],
  'a file with the name of a directory': [[file('a/')], 'a/'],
  'a NUL in a PAX path': [[{ ...file('a'), pax: { path: 'a\0.html' } }], 'a .html'],
  'a control character': [[{ ...file('a'), pax: { path: 'a\n::error::x' } }], 'a ::error::x'],
  'a part that is too long': [[{ ...file('a'), pax: { path: 'a'.repeat(256) } }], 'aaaa'],
  'a path with too many parts': [[{ ...file('a'), pax: { path: 'a/'.repeat(70) + 'b' } }], 'a/a/'],
  'a path that is too long': [[{ ...file('a'), pax: { path: 'abc/'.repeat(300) + 'a' } }], 'abc/'],
  'the same name twice': [[file('a.html'), file('a.html')], 'a.html'],
  'the same name by another way': [[file('a.html'), file('./a.html')], './a.html'],
  'names that differ only in case': [
    [file('Guides/a.html'), file('guides/b.html')],
    'guides/b.html',
  ],
  'files that differ only in case': [[file('A.html'), file('a.html')], 'a.html'],
  'names that differ only in Unicode form': [
    [file('é.html'), file('e\u0301.html')],
    'e\u0301.html',
  ],
  'a file where a directory is': [[file('a/b.html'), file('a')], 'a'],
  'a directory where a file is': [[file('a'), { name: 'a/', flag: '5' }], 'a/'],
  'a path through a file': [[file('a'), file('a/b.html')], 'a/b.html'],
}

describe('refuses as unsafe', () => {
  test.each(Object.entries(refused))('%s', async (_what, [entries, named]) => {
    await expect(unpackEntries(entries)).rejects.toMatchObject({
      code: 'unsafe-archive',
      message: expect.stringContaining(`at "${named}`),
    })
    expect(fs.readdirSync(sandbox).sort()).toEqual(['site', 'site.tar.gz'])
  })

  test('before a byte of the entry is written', async () => {
    const entries = [file('good.html'), { name: 'a', flag: '2', link: 'b' }, file('late.html')]
    await expect(unpackEntries(entries)).rejects.toMatchObject({ code: 'unsafe-archive' })
    expect(unpacked()).toEqual({ 'good.html': 'x' })
  })

  test.each(['aux.html', 'ab:c.html', 'COM1', 'dot.'])('%s on Windows', async (name) => {
    const windows = unpackEntries([file(name)], { platform: 'win32' })
    await expect(windows).rejects.toMatchObject({ code: 'unsafe-archive' })
  })

  test('a size that is no number, without waiting for such a body', async () => {
    for (const first of [0x81, 0xc0, 0xfe]) {
      const bytes = tar([{ name: 'a', size: 2, body: 'xy' }])
      bytes[124] = first
      mend(bytes, 0)
      await expect(unpackBytes(gzipSync(bytes))).rejects.toMatchObject({ code: 'unsafe-archive' })
      sandbox = fs.mkdtempSync(path.join(scratch, 'run-'))
    }
  })

  test('a bomb of directories that no entry names', async () => {
    const deep = (index: number) => `${index}/${'a/'.repeat(50)}f`
    const entries = Array.from({ length: 10 }, (_, index) => ({
      name: 'x',
      gnuLongName: deep(index),
    }))
    const limits = { ...defaultLimits, entries: 200 }
    await expect(unpackEntries(entries, { limits })).rejects.toMatchObject({
      message: expect.stringContaining('more than 200 entries'),
    })
    expect(Object.keys(unpacked()).length).toBeLessThan(300)
  })

  test('a name that is not valid UTF-8', async () => {
    const bytes = tar([file('bad-name.html')])
    bytes[3] = 0xff
    mend(bytes, 0)
    await expect(unpackBytes(gzipSync(bytes))).rejects.toMatchObject({ code: 'unsafe-archive' })
  })

  test('a second archive behind the end of the first', async () => {
    const bytes = gzipSync(Buffer.concat([tar([file('a.html')]), tar([file('b.html')])]))
    await expect(unpackBytes(bytes)).rejects.toMatchObject({ code: 'unsafe-archive' })
  })

  test('a second gzip member with another archive', async () => {
    const bytes = Buffer.concat([tgz([file('a.html')]), tgz([file('b.html')])])
    await expect(unpackBytes(bytes)).rejects.toMatchObject({ code: 'unsafe-archive' })
  })

  test('a bomb by its ratio', async () => {
    const bytes = tgz([{ name: 'a.bin', body: Buffer.alloc(12 * 1024 ** 2) }])
    await expect(unpackBytes(bytes)).rejects.toMatchObject({
      code: 'unsafe-archive',
      message: expect.stringContaining('200 times'),
    })
  })

  test('too many entries, and too many bytes', async () => {
    const limits = { ...defaultLimits, entries: 2, unpackedBytes: 1_000 }
    const many = unpackEntries([file('a'), file('b'), file('c')], { limits })
    await expect(many).rejects.toMatchObject({
      message: expect.stringContaining('more than 2 entries'),
    })
    sandbox = fs.mkdtempSync(path.join(scratch, 'run-'))
    const large = unpackEntries([{ name: 'a', size: 2_000, body: '' }], { limits })
    await expect(large).rejects.toMatchObject({ message: expect.stringContaining('1.0 kB') })
  })
})

const good = tgz([file('index.html'), { name: 'a.html', body: 'y'.repeat(5_000) }])
const wrongSum = Buffer.from(good)
wrongSum.writeUInt32LE(good.readUInt32LE(good.length - 8) ^ 1, good.length - 8)
const broken: Record<string, Uint8Array> = {
  'a cut gzip stream': good.subarray(0, good.length - 20),
  'a gzip stream without its sum': good.subarray(0, good.length - 4),
  'a wrong sum': wrongSum,
  'garbage behind the gzip stream': Buffer.concat([good, Buffer.from('garbage')]),
  'garbage behind a zero byte': Buffer.concat([good, Buffer.from('\0garbage')]),
  'a tar that is not compressed': tar([file('index.html')]),
  'an HTML page': Buffer.from('<!doctype html><title>Sign in</title>'),
  nothing: Buffer.alloc(0),
  'gzip of nothing': gzipSync(''),
  'gzip of a text': gzipSync('static export '.repeat(100)),
  'a tar that is cut in a file': gzipSync(tar([{ name: 'a', size: 9_000, body: 'x' }], false)),
  'a tar without a file': tgz([{ name: 'a/', flag: '5' }]),
}

describe('tells as broken', () => {
  test.each(Object.entries(broken))('%s', async (_what, bytes) => {
    await expect(unpackBytes(bytes)).rejects.toMatchObject({ code: 'integrity' })
  })
})

test('a disk that refuses is told as such, and the parser ends', async () => {
  fs.mkdirSync(path.join(sandbox, 'site'))
  fs.writeFileSync(path.join(sandbox, 'site/a.html'), 'in the way')
  await expect(unpackEntries([file('a.html')])).rejects.toMatchObject({ code: 'disk' })
})

test('the signal ends it with its reason', async () => {
  const controller = new AbortController()
  const reason = new Error('cancelled')
  controller.abort(reason)
  await expect(unpackEntries([file('a')], { signal: controller.signal })).rejects.toBe(reason)
})

test('no mutation of an archive writes outside the target', async () => {
  const original = tar([
    { name: './', flag: '5' },
    file('index.html'),
    { name: 'x', pax: { path: 'guides/größenänderung.html' }, body: 'a' },
    { name: 'x', gnuLongName: `${'d'.repeat(90)}/${'e'.repeat(90)}`, body: 'b' },
    { name: 'assets/logo.svg', body: 'c'.repeat(700) },
  ])
  const mutation = fc.record({
    at: fc.nat(original.length - 1),
    bytes: fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 4 }),
      fc.constantFrom('../', '/', '..\\', '2', '1', '\0', '777').map((text) => Buffer.from(text)),
    ),
    mendSum: fc.boolean(),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(mutation, { minLength: 1, maxLength: 5 }), async (mutations) => {
      sandbox = fs.mkdtempSync(path.join(scratch, 'mutation-'))
      const bytes = Buffer.from(original)
      for (const { at, bytes: piece, mendSum } of mutations) {
        bytes.set(piece.subarray(0, bytes.length - at), at)
        if (mendSum) mend(bytes, at - (at % 512))
      }
      const error: unknown = await unpackBytes(gzipSync(bytes)).then(
        () => undefined,
        (reason: unknown) => reason,
      )
      if (error !== undefined) {
        expect(['unsafe-archive', 'integrity', 'disk']).toContain((error as { code?: string }).code)
      }
      expect(fs.readdirSync(sandbox).sort()).toEqual(['site', 'site.tar.gz'])
      const kinds = fs.readdirSync(path.join(sandbox, 'site'), {
        recursive: true,
        withFileTypes: true,
      })
      expect(kinds.every((entry) => entry.isFile() || entry.isDirectory())).toBe(true)
      fs.rmSync(sandbox, { recursive: true })
    }),
    { numRuns: 200 },
  )
})

/** Puts the right checksum into the header block, so that the mutation gets past it. */
function mend(bytes: Buffer, block: number): void {
  bytes.write('        ', block + 148)
  const sum = bytes.subarray(block, block + 512).reduce((total, byte) => total + byte, 0)
  bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, block + 148)
}
