/** Which Helm: the machine's own, or one that is downloaded from a real server on this machine. */
import { createHash } from 'node:crypto'
import fs from 'node:fs'
import http, { type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { systemDisk } from '../../src/disk.ts'
import { Failure } from '../../src/errors.ts'
import { type HelmReleases, helmReleases } from '../../src/helm/helm-download.ts'
import { createRedactor } from '../../src/helm/redactor.ts'
import {
  type FindHelmDependencies,
  findHelm,
  parseHelmVersion,
} from '../../src/helm/installation.ts'
import { type RunCommand, systemCommand } from '../../src/helm/process.ts'
import { Problem } from '../../src/input-reader.ts'
import { systemStorage } from '../../src/network.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { RecordingLog } from '../support/recording-log.ts'
import { tgz } from '../support/tar.ts'

let root: string
let server: http.Server | undefined
beforeEach(() => {
  root = fs.mkdtempSync(path.join(tmpdir(), 'helm-installation-'))
  fs.mkdirSync(path.join(root, 'temporary'))
})
afterEach(async () => {
  const closed = server && new Promise((resolve) => server?.close(resolve))
  server?.closeAllConnections()
  await closed
  server = undefined
  fs.rmSync(root, { recursive: true })
})

const script = (version: string) => `#!/bin/sh\necho "$*" >> "$0.log"\nprintf %s '${version}'\n`
const archiveOf = (version: string, platform = 'linux-amd64') =>
  tgz([
    { name: `${platform}/`, flag: '5' },
    { name: `${platform}/LICENSE`, body: 'x' },
    { name: `${platform}/helm`, body: script(version) },
    { name: `${platform}/README.md`, body: 'x' },
  ])
const sumOf = (archive: Uint8Array) => createHash('sha256').update(archive).digest('hex')

/** Installs a program as the machine's Helm; returns its path. */
function installHelm(content: string, directory = 'bin', mode = 0o755): string {
  const file = path.join(root, directory, 'helm')
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, content, { mode })
  return file
}

/** What is left of downloads. */
const leftovers = () => fs.readdirSync(path.join(root, 'temporary'), { recursive: true })

async function listen(answer: RequestListener): Promise<URL> {
  server = http.createServer(answer)
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve))
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
}

interface Setup extends Partial<FindHelmDependencies> {
  /** The archives by their names, or an answer of another kind. */
  readonly serve?: Readonly<Record<string, Uint8Array>> | RequestListener
  /** In place of those of the archives. */
  readonly sums?: HelmReleases['sums']
}

const good = {
  'helm-v4.2.4-linux-amd64.tar.gz': archiveOf('v4.2.4'),
  'helm-v3.21.4-linux-amd64.tar.gz': archiveOf('v3.21.4'),
}
const goodSums = {
  '4.2.4': { 'linux-amd64': sumOf(good['helm-v4.2.4-linux-amd64.tar.gz']) },
  '3.21.4': { 'linux-amd64': sumOf(good['helm-v3.21.4-linux-amd64.tar.gz']) },
}

async function prepare({ serve = good, sums = goodSums, ...others }: Setup = {}) {
  const requests: string[] = []
  const baseUrl = await listen((request, response) => {
    requests.push(`${request.method ?? ''} ${request.url ?? ''}`)
    if (typeof serve === 'function') {
      serve(request, response)
      return
    }
    const body = serve[path.basename(request.url ?? '')]
    response.writeHead(body ? 200 : 404).end(body ?? '<html>')
  })
  const clock = new FakeClock()
  const log = new RecordingLog()
  const redactor = createRedactor()
  redactor.add('sql://docs:hunter22@db')
  const dependencies: FindHelmDependencies = {
    runCommand: systemCommand,
    redactor,
    environment: { PATH: path.join(root, 'bin') },
    platform: 'linux',
    architecture: 'x64',
    temporaryDirectory: path.join(root, 'temporary'),
    storage: systemStorage,
    disk: systemDisk,
    clock,
    random: () => 0.5,
    log,
    timeoutMs: 60_000,
    signal: new AbortController().signal,
    releases: { baseUrl, sums },
    ...others,
  }
  const find = (wanted?: string) => findHelm(wanted, dependencies)
  return { find, requests, log, clock, baseUrl, host: baseUrl.host }
}

const otherHelm =
  'install it before this step, with azure/setup-helm for example, and leave `helm-version` empty.'

describe("the machine's Helm", () => {
  test.each([
    ['v3.14.0', '3.14.0', 3],
    ['v3.14.0+g3fc9f4b', '3.14.0', 3],
    ['v3.21', '3.21', 3],
    ['v4.2\n', '4.2', 4],
    ['v4.3.0-rc.1+gabc', '4.3.0-rc.1', 4],
  ])('%j is used', async (said, version, major) => {
    const file = installHelm(script(said))
    const { find, requests } = await prepare()
    expect(await find()).toEqual({ file, version, major })
    expect(await find(String(major))).toEqual({ file, version, major })
    expect(await find(version)).toEqual({ file, version, major })
    expect(fs.readFileSync(`${file}.log`, 'utf8').split('\n')[0]).toBe('version --template {{.Version}}') // prettier-ignore
    expect(requests).toEqual([])
  })

  test('is the first in PATH, also behind a link, but not one that depends on the directory', async () => {
    const file = installHelm(script('v4.2.4'), 'real')
    fs.mkdirSync(path.join(root, 'links/helm-folder'), { recursive: true })
    fs.symlinkSync(file, path.join(root, 'links/helm'))
    fs.mkdirSync(path.join(root, 'folder/helm'), { recursive: true })
    fs.mkdirSync(path.join(root, 'dangling'))
    fs.symlinkSync('nowhere', path.join(root, 'dangling/helm'))
    const directories = ['', '.', path.relative('.', path.join(root, 'real'))].concat(
      ['missing', 'folder', 'dangling', 'links', 'real'].map((name) => path.join(root, name)),
    )
    const { find } = await prepare({ environment: { Path: directories.join(path.delimiter) } })
    expect(await find()).toMatchObject({ file: path.join(root, 'links/helm') })
  })

  test.each([
    [script('v3.13.3'), 'is 3.13.3, too old; 3.14 or newer, or 4, is needed.'],
    [script('v2.17.0'), 'is 2.17.0, too old; 3.14 or newer, or 4, is needed.'],
    [script('v5.0.0'), 'is 5.0.0, too new; 3.14 or newer, or 4, is needed.'],
    [script('Helm'), 'does not say which version it is; 3.14 or newer, or 4, is needed.'],
    ['#!/bin/sh\nexit 1\n', 'does not say which version it is; 3.14 or newer, or 4, is needed.'],
    [
      '#!/no/such\n',
      'does not say which version it is; 3.14 or newer, or 4, is needed. It gave no answer (ENOENT).',
    ],
  ])('%j is refused', async (content, why) => {
    const file = installHelm(content)
    const { find, requests } = await prepare()
    await expect(find()).rejects.toMatchObject({
      code: 'config',
      message: `The Helm of this machine (${file}) ${why}`,
      advice:
        'Set `helm-version` to 3 or 4 to have one downloaded, or install one before this step.',
    })
    expect(requests).toEqual([])
    // With the advice followed it works.
    expect(await find('3')).toMatchObject({ version: '3.21.4' })
  })
})

test('a Helm that speaks of a variable of the machine is quoted, without its secrets', async () => {
  installHelm('#!/bin/sh\necho \'unknown driver "nope", not sql://docs:hunter22@db\' >&2\nexit 1\n')
  const { find } = await prepare()
  await expect(find()).rejects.toMatchObject({
    code: 'config',
    message: expect.stringMatching(/It said: "unknown driver "nope", not \*\*\*"\.$/),
    advice: expect.stringContaining('HELM_DRIVER'),
  })
})

describe('a download', () => {
  test.each([
    [undefined, '4.2.4', 4],
    ['4', '4.2.4', 4],
    ['3', '3.21.4', 3],
    ['3.21.4', '3.21.4', 3],
  ])('of %s is %s', async (wanted, version, major) => {
    const { find, requests, log, host } = await prepare()
    const helm = await find(wanted)
    expect(helm).toMatchObject({ version, major })
    expect(requests).toEqual([`GET /helm-v${version}-linux-amd64.tar.gz`])
    const bytes = good[`helm-v${version as '4.2.4'}-linux-amd64.tar.gz`].length
    expect(log.lines).toEqual([`info: Downloaded Helm ${version} from ${host} (${bytes} B, checked)`]) // prettier-ignore
    // The program alone is left, and its own log, since it was asked for its version.
    const folder = path.dirname(helm.file)
    expect(leftovers()).toHaveLength(3)
    expect(path.dirname(folder)).toBe(path.join(root, 'temporary'))
    expect(fs.readdirSync(folder)).toEqual(['helm', 'helm.log'])
    expect(fs.statSync(folder).mode & 0o777).toBe(0o700)
    expect(fs.statSync(helm.file).mode & 0o100).toBe(0o100)
  })

  test('comes when the machine has another major', async () => {
    installHelm(script('v3.21.4'))
    const { find } = await prepare()
    expect(await find('4')).toMatchObject({ version: '4.2.4', major: 4 })
  })

  test('that is cut begins again', async () => {
    const archive = good['helm-v4.2.4-linux-amd64.tar.gz']
    let tries = 0
    const { find, log, host } = await prepare({
      serve: (_request, response) => {
        tries += 1
        response.writeHead(200, { 'content-length': archive.length })
        if (tries === 3) response.end(archive)
        else response.write(archive.subarray(0, 100), () => response.destroy())
      },
    })
    expect(await find()).toMatchObject({ version: '4.2.4' })
    const cut = `the reply was cut off after 100 of ${archive.length} bytes (${host})`
    expect(log.lines).toEqual([
      `details: The download of Helm was interrupted: ${cut}; it starts again in 0.8 s`,
      `details: The download of Helm was interrupted: ${cut}; it starts again in 1.5 s`,
      `info: Downloaded Helm 4.2.4 from ${host} (${archive.length} B, checked)`,
    ])
  })

  test('with another checksum is not even unpacked', async () => {
    const wrong = archiveOf('v4.2.4; touch was-run')
    const { find, requests, host } = await prepare({
      serve: { 'helm-v4.2.4-linux-amd64.tar.gz': wrong },
    })
    await expect(find()).rejects.toMatchObject({
      code: 'integrity',
      message: `What ${host} sent as Helm 4.2.4 (${wrong.length} B) has another checksum than the pinned one, and was not used.`,
      advice: `Does something between here and there change downloads? If so, ${otherHelm}`,
    })
    expect(requests).toHaveLength(1)
    expect(leftovers()).toEqual([])
  })

  test.each([
    [404, 1, undefined],
    [302, 1, undefined],
    [503, 5, '5 tries in 56 s'],
  ])('that is answered with %s ends after %s tries', async (status, tries, tried) => {
    const { find, requests, host } = await prepare({
      serve: (_request, response) => response.writeHead(status, { location: '/x' }).end('<html>'),
    })
    await expect(find()).rejects.toMatchObject({
      code: 'network',
      message: `Could not download Helm 4.2.4: HTTP ${status} from ${host}.`,
      tried,
      advice: `Can this runner reach ${host}? If not, ${otherHelm}`,
    })
    expect(requests).toHaveLength(tries)
    expect(leftovers()).toEqual([])
  })

  test('from where nobody is', async () => {
    const { find, host, baseUrl } = await prepare()
    await new Promise((resolve) => server?.close(resolve))
    expect(baseUrl.host).toBe(host)
    await expect(find()).rejects.toMatchObject({
      code: 'network',
      message: `Could not download Helm 4.2.4: the connection was refused (${host}).`,
    })
    expect(leftovers()).toEqual([])
  })

  test.each([
    ['at all', 20_000, 'the time of this step (`timeout-minutes`) is over'],
    ['for a while', 30_500, 'no byte for 30 s (HOST)'],
  ])('that brings nothing %s ends in time', async (_how, durationMs, reason) => {
    const clock = new FakeClock()
    const asked = Promise.withResolvers<undefined>()
    const { find, host } = await prepare({
      clock,
      timeoutMs: durationMs,
      serve: () => {
        asked.resolve(undefined)
      },
    })
    const ending = expect(find()).rejects.toMatchObject({
      code: 'timeout',
      message: `Could not download Helm 4.2.4: ${reason.replace('HOST', host)}. The time that is left does not allow another try.`,
    })
    await asked.promise
    await clock.advance(30_000)
    await ending
    expect(leftovers()).toEqual([])
  })

  test('that never ends has five minutes of its own', async () => {
    const clock = new FakeClock()
    const asked = Promise.withResolvers<undefined>()
    const { find } = await prepare({
      clock,
      timeoutMs: 30 * 60_000,
      storage: (_url, _headers, signal) => {
        async function* drops() {
          asked.resolve(undefined)
          for (;;) {
            yield Buffer.from('x')
            await clock.sleep(20_000, signal)
          }
        }
        return Promise.resolve({ status: 200, headers: {}, chunks: drops() })
      },
    })
    const ending = expect(find()).rejects.toMatchObject({
      code: 'timeout',
      message:
        'Could not download Helm 4.2.4: the five minutes for the download of Helm are over. The time that is left does not allow another try.',
    })
    await asked.promise
    await clock.advance(5 * 60_000)
    await ending
  })

  test('ends at once when the run is cancelled', async () => {
    const cancelling = new AbortController()
    const cancelled = new Failure('cancelled', 'Cancelled by SIGINT.')
    const { find } = await prepare({
      signal: cancelling.signal,
      serve: (_request, response) => {
        response.writeHead(200).write('x')
        cancelling.abort(cancelled)
      },
    })
    await expect(find()).rejects.toBe(cancelled)
    expect(leftovers()).toEqual([])
  })

  test.each([
    ['v3.0.0', 'environment', 'Helm 4.2.4 was downloaded, but does not run.'],
    [undefined, 'integrity', 'The archive of Helm holds no linux-amd64/helm.'],
  ])('whose program says %s', async (said, code, message) => {
    const archive = said === undefined ? tgz([{ name: 'helm', body: 'x' }]) : archiveOf(said)
    const { find } = await prepare({
      serve: { 'helm-v4.2.4-linux-amd64.tar.gz': archive },
      sums: { '4.2.4': { 'linux-amd64': sumOf(archive) } },
    })
    await expect(find()).rejects.toMatchObject({ code, message })
    expect(leftovers()).toEqual([])
  })

  test.each<[NodeJS.Platform, string, string]>([
    ['linux', 'riscv64', 'linux-riscv64'],
    ['freebsd', 'x64', 'freebsd-amd64'],
    ['win32', 'ia32', 'windows-ia32'],
  ])('is not to be had for %s on %s', async (platform, architecture, name) => {
    const { find, requests } = await prepare({ platform, architecture })
    await expect(find()).rejects.toMatchObject({
      code: 'config',
      message: `Helm 4.2.4 cannot be downloaded for ${name}.`,
      advice: `On this machine, ${otherHelm}`,
    })
    expect(requests).toEqual([])
    expect(leftovers()).toEqual([])
  })

  test('for Windows is unpacked by its own tar', async () => {
    const commands: string[] = []
    const runCommand: RunCommand = (file, args) => {
      commands.push([file, ...args].join(' '))
      const stdout = args[0] === 'version' ? 'v4.2.4' : ''
      return Promise.resolve({ exitCode: 0, stdout, stderr: '' })
    }
    const zip = Buffer.from('PK')
    const { find } = await prepare({
      runCommand,
      platform: 'win32',
      architecture: 'arm64',
      environment: { SystemRoot: '/windows' },
      serve: { 'helm-v4.2.4-windows-arm64.zip': zip },
      sums: { '4.2.4': { 'windows-arm64': sumOf(zip) } },
    })
    const { file } = await find()
    const folder = path.dirname(path.dirname(file))
    expect(path.relative(folder, file)).toBe('windows-arm64/helm.exe')
    expect(commands).toEqual([
      `/windows/System32/tar.exe -xf ${folder}/helm-v4.2.4-windows-arm64.zip -C ${folder} windows-arm64/helm.exe`,
      `${file} version --template {{.Version}}`,
    ])
  })

  test('for Windows that its tar refuses', async () => {
    const zip = Buffer.from('PK')
    const { find } = await prepare({
      runCommand: () => Promise.resolve({ exitCode: 1, stdout: '', stderr: 'tar: Unrecognized\n' }),
      platform: 'win32',
      serve: { 'helm-v4.2.4-windows-amd64.zip': zip },
      sums: { '4.2.4': { 'windows-amd64': sumOf(zip) } },
    })
    await expect(find()).rejects.toMatchObject({
      code: 'integrity',
      message: 'The archive of Helm cannot be unpacked: tar: Unrecognized',
    })
    expect(leftovers()).toEqual([])
  })

  test('of a version that nobody knows', async () => {
    const { find } = await prepare()
    await expect(find('3.20.0')).rejects.toMatchObject({
      code: 'config',
      message: 'Helm 3.20.0 is not one that can be downloaded.',
      advice: `For another Helm, ${otherHelm}`,
    })
  })
})

describe('helm-version', () => {
  test.each([
    ['3', '3'],
    ['v4', '4'],
    ['3.21.4', '3.21.4'],
    ['v4.2.4', '4.2.4'],
  ])('%s', (given, version) => {
    expect(parseHelmVersion(given)).toBe(version)
  })

  test.each(['5', '3.21', '3.20.0', 'latest', '4.x', 'constructor'])('not %s', (given) => {
    expect(() => parseHelmVersion(given)).toThrow(
      new Problem(
        `\`helm-version\` is 3, 4, 4.2.4 or 3.21.4, whose checksums are known ("${given}"). For another, ${otherHelm}`,
      ),
    )
  })
})

test('the table has both majors, and a checksum for every platform that Helm and GitHub share', () => {
  const platforms = ['linux', 'darwin', 'windows'].flatMap((system) => [`${system}-amd64`, `${system}-arm64`]) // prettier-ignore
  const sums = Object.values(helmReleases.sums)
  expect(Object.keys(helmReleases.sums)).toEqual(['4.2.4', '3.21.4'])
  for (const table of sums) {
    expect(Object.keys(table)).toEqual(platforms)
    for (const sum of Object.values(table)) expect(sum).toMatch(/^[0-9a-f]{64}$/)
  }
  expect(new Set(sums.flatMap((table) => Object.values(table))).size).toBe(12)
  expect(helmReleases.baseUrl.href).toBe('https://get.helm.sh/')
})
