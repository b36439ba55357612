/**
 * `npm run bench`: downloading beside `curl && sha256sum`, unpacking beside `tar xzf`, on a file system in
 * memory where there is one, so that no disk is measured.
 */
import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import process from 'node:process'
import { createInterface } from 'node:readline'
import { gzipSync } from 'node:zlib'
import { type Command, compare } from './measure.ts'

const rounds = 5
const archiveBytes = 512 * 1024 ** 2
const smallFiles = 20_000

const root = path.resolve(import.meta.dirname, '..')
const memory = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()
const scratch = mkdtempSync(path.join(memory, 'bench-'))
const at = (name: string) => path.join(scratch, name)
const unpackScript = buildUnpack()

try {
  console.log(`Medians of ${rounds} runs in turn, Node ${process.versions.node}, in ${memory}`)
  await benchDownload()
  await benchUnpack('20,000 small files', makeSmallFiles(), 1.7)
  await benchUnpack('one file of 512 MiB', makeBigFile(), 0.6)
} finally {
  rmSync(scratch, { recursive: true })
}

async function benchDownload(): Promise<void> {
  const archive = at('archive.tar.gz')
  // Half of it random: stored, since nothing else keeps the other half at its size. Its sums are right.
  const half = Buffer.concat([randomBytes(1024 ** 2), Buffer.alloc(1024 ** 2, 'static export ')])
  const parts = Array.from({ length: archiveBytes / half.length }, () => half)
  writeFileSync(archive, gzipSync(Buffer.concat(parts), { level: 0 }))

  const server = spawn(process.execPath, [path.join(import.meta.dirname, 'server.ts'), archive], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [port] = (await once(createInterface(server.stdout), 'line')) as [string]
  const url = `http://127.0.0.1:${port}`
  writeFileSync(at('output'), '')
  const target = at('downloaded')
  const remove = () => {
    rmSync(target, { force: true })
  }
  const action: Command = {
    argv: [process.execPath, path.join(root, 'dist/index.js')],
    before: remove,
    environment: {
      PATH: process.env['PATH'],
      GITHUB_OUTPUT: at('output'),
      RUNNER_TEMP: scratch,
      'INPUT_API-KEY': 'bench_0123456789abcdef',
      'INPUT_BASE-URL': url,
      'INPUT_JOB-ID': 'se_1',
      'INPUT_BUNDLE-FILE': target,
    },
  }
  const curl: Command = {
    argv: ['sh', '-c', `curl -sf -o "${target}" "${url}/archive" && sha256sum "${target}"`],
    before: remove,
  }
  const { a, b, ratio } = await compare(action, curl, rounds)
  server.kill()
  report(
    'download of 512 MiB with sha256, the whole action',
    a.wallMs,
    'curl && sha256sum',
    b.wallMs,
    ratio,
    0.85,
  )
  console.log(
    `  resident at the most ${Math.round(a.residentBytes / 1024 ** 2)} MiB (target 156 or less)`,
  )
  rmSync(archive)
  remove()
}

/** The unpacking as it is shipped: bundled, so that no types are stripped while it is timed. */
function buildUnpack(): string {
  const ncc = path.join(root, 'node_modules/@vercel/ncc/dist/ncc/cli.js')
  const entry = path.join(import.meta.dirname, 'unpack.ts')
  execFileSync(process.execPath, [ncc, 'build', entry, '-o', at('unpack'), '--no-cache', '-q'])
  return at('unpack/index.js')
}

async function benchUnpack(what: string, archive: string, targetRatio: number): Promise<void> {
  const ours = at('ours')
  const theirs = at('theirs')
  const { a, b, ratio } = await compare(
    {
      argv: [process.execPath, unpackScript, archive, ours],
      before: () => {
        rmSync(ours, { recursive: true, force: true })
      },
    },
    {
      argv: ['tar', 'xzf', archive, '-C', theirs],
      before: () => {
        rmSync(theirs, { recursive: true, force: true })
        mkdirSync(theirs)
      },
    },
    rounds,
  )
  report(`unpacking of ${what}`, a.wallMs, 'tar xzf', b.wallMs, ratio, targetRatio)
  rmSync(archive)
}

function report(
  ours: string,
  oursMs: number,
  theirs: string,
  theirsMs: number,
  ratio: number,
  target: number,
): void {
  const seconds = (ms: number) => `${(ms / 1000).toFixed(2)} s`
  const verdict = ratio <= target ? '' : ', missed'
  if (ratio > target) process.exitCode = 1
  console.log(
    `${ours}: ${seconds(oursMs)}, ${theirs}: ${seconds(theirsMs)}, ratio ${ratio.toFixed(2)} (target ${target} or less${verdict})`,
  )
}

function makeSmallFiles(): string {
  const words = Array.from({ length: 2_000 }, () => randomBytes(5).toString('hex'))
  const pick = () => words[Math.floor(Math.random() * words.length)] ?? ''
  for (let index = 0; index < smallFiles; index += 1) {
    const directory = at(`site/${Math.floor(index / 200)}`)
    if (index % 200 === 0) mkdirSync(directory, { recursive: true })
    const text = Array.from({ length: 50 + (index % 350) }, pick).join(' ')
    writeFileSync(path.join(directory, `page-${index}.html`), text)
  }
  return pack('site')
}

function makeBigFile(): string {
  mkdirSync(at('big'))
  const half = Buffer.concat([randomBytes(1024 ** 2), Buffer.alloc(1024 ** 2, 'static export ')])
  writeFileSync(
    at('big/file'),
    Buffer.concat(Array.from({ length: archiveBytes / half.length }, () => half)),
  )
  return pack('big')
}

/** Packs a directory of the scratch space and removes it. */
function pack(name: string): string {
  const archive = at(`${name}.tar.gz`)
  execFileSync('tar', ['czf', archive, '-C', at(name), '.'])
  rmSync(at(name), { recursive: true })
  return archive
}
