/** A Helm of ours: where it comes from, the checksum that it must have, and its one program out of the archive. */
import { createHash } from 'node:crypto'
import path from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { type Clock, deadlineIn } from '../clock.ts'
import type { Disk, NewFile } from '../disk.ts'
import { Failure } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Storage } from '../network.ts'
import { describeEnding } from '../outcome.ts'
import {
  type LostConnection,
  type PatienceDependencies,
  createPatience,
  lostConnection,
} from '../patience.ts'
import { type RetryPolicy, afterFailedTry } from '../retry.ts'
import { clean } from '../text.ts'
import { formatBytes, formatDuration } from '../units.ts'
import type { RunCommand } from './process.ts'

/** Where Helm can be had, and what must come. */
export interface HelmReleases {
  /** The directory of the archives. */
  readonly baseUrl: URL
  /** sha256 of the archives in lower-case hex, by version and platform (`linux-amd64`). One version of each major. */
  readonly sums: Readonly<Record<string, Readonly<Record<string, string>>>>
}

/** The sums are those of Helm's release notes, to be checked once more before a release of ours. */
export const helmReleases: HelmReleases = {
  baseUrl: new URL('https://get.helm.sh/'),
  sums: {
    '4.2.4': {
      'linux-amd64': 'c306b46f719b0a4da32d0f78ee21bf90ce8d602f15b22ab753f0674d1670a7f3',
      'linux-arm64': '564de2191b881e9f71b5606b25345821ea1682f06ab90499d3ab22b530176da1',
      'darwin-amd64': '6c163d687ca03c3b5c01928e53bbbcf9518278f47ce7a2f249a5a08e8bdaa2bc',
      'darwin-arm64': 'd747eb4e28bd2727173d15b759fa0a17822291ec09db7ced3d55af290a3661a2',
      'windows-amd64': 'e94d83a4706fd82078c98dade2079fa9d9680c1c2bfb93bfc304ee6bc2412a32',
      'windows-arm64': 'dbe8b49ea9877abe3d77354a792efb01920da9f65a492fcb8b4fce4e08bbae8f',
    },
    '3.21.4': {
      'linux-amd64': '61f88ab166748cb19604d7884cb100ae9ccb13804ddeb98e08af167eacbb6a14',
      'linux-arm64': 'b54c04b4e0b2540bbdc08c17a121dab70e9a2ed0de5705528fec68a5fd3b85a7',
      'darwin-amd64': '9173d05edf9592c6be1d0412ffafd935448dfc7a63c2bc732b8c67e55503e8a8',
      'darwin-arm64': '6e0bf5eb6daafc2b1ec34bb5ba04ef103f3afc16192fb19805c2924d7ea1033f',
      'windows-amd64': '268a7b98b313403055e4f31807aeaac529c90e1188acd7857ae3e960b0f67cce',
      'windows-arm64': 'e23545fff21ef04853a9540925dd73c4b9caaa24ee7fdd8482b1ee626a4eecc9',
    },
  },
}

/** The advice when none of ours will do, as the second half of a sentence. */
export const otherHelm =
  'install it before this step, with azure/setup-helm for example, and leave `helm-version` empty.'

export interface HelmDownloadDependencies {
  readonly runCommand: RunCommand
  /** As Helm is to see it; its `PATH` is where the machine's own is looked for. */
  readonly environment: Readonly<Record<string, string>>
  readonly platform: NodeJS.Platform
  /** As Node names it: `x64`, `arm64`. */
  readonly architecture: string
  readonly storage: Storage
  readonly disk: Disk
  readonly clock: Clock
  /** From 0 to 1. */
  readonly random: () => number
  readonly log: Log
  /** Of the whole step; a download has no more than that, and no more than its own. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
  /** Only tests set others. */
  readonly releases?: HelmReleases
}

/**
 * Downloads a Helm, checks it and unpacks it; returns the path of the program.
 *
 * @param version one of the table
 * @param folder exists, and is empty
 * @throws Failure `config` when there is none for this platform, `integrity`, `disk`, and whatever the network ends in
 */
export async function downloadHelm(
  version: string,
  folder: string,
  dependencies: HelmDownloadDependencies,
): Promise<string> {
  const { disk, log, releases = helmReleases } = dependencies
  const { baseUrl, sums } = releases
  const platform = platformName(dependencies)
  const sum = sums[version]?.[platform]
  if (sum === undefined) {
    throw new Failure('config', `Helm ${version} cannot be downloaded for ${platform}.`, {
      advice: `On this machine, ${otherHelm}`,
    })
  }
  const isZip = platform.startsWith('windows-')
  const url = new URL(`helm-v${version}-${platform}.${isZip ? 'zip' : 'tar.gz'}`, baseUrl)
  const archive = path.join(folder, path.basename(url.pathname))
  const file = disk.create(archive, 0o600)
  try {
    const { sizeBytes, sha256 } = await fetchArchive(version, url, file, dependencies)
    if (sha256 !== sum) {
      throw new Failure(
        'integrity',
        `What ${url.host} sent as Helm ${version} (${formatBytes(sizeBytes)}) has another checksum than the pinned one, and was not used.`,
        { advice: `Does something between here and there change downloads? If so, ${otherHelm}` },
      )
    }
    log.info(`Downloaded Helm ${version} from ${url.host} (${formatBytes(sizeBytes)}, checked)`)
  } finally {
    file.close()
  }
  const program = isZip
    ? await unpackZip(archive, folder, platform, dependencies)
    : await unpackTar(archive, folder, platform, dependencies)
  disk.remove(archive)
  return program
}

/** As Helm names it. */
function platformName({ platform, architecture }: HelmDownloadDependencies): string {
  const systems: Partial<Record<string, string>> = { win32: 'windows' }
  const architectures: Partial<Record<string, string>> = { x64: 'amd64' }
  return `${systems[platform] ?? platform}-${architectures[architecture] ?? architecture}`
}

const retryPolicy: RetryPolicy = { maxTries: 5, minPersistenceMs: 0, repeatable: true }
/** No byte for so long is a lost connection. */
const maxSilenceMs = 30_000
const maxDownloadMs = 5 * 60_000
const maxDownloadWords = 'the five minutes for the download of Helm are over'
/** Helm's archives have less than 20 MB. */
const maxArchiveBytes = 100 * 1024 * 1024

interface Fetched {
  readonly sizeBytes: number
  /** Lower-case hex. */
  readonly sha256: string
}

/** Downloads into a file, from the beginning whenever the connection was lost. */
async function fetchArchive(
  version: string,
  url: URL,
  file: NewFile,
  dependencies: HelmDownloadDependencies,
): Promise<Fetched> {
  const { clock, log, timeoutMs, signal } = dependencies
  const startedMs = clock.nowMs()
  const deadline = deadlineIn(Math.min(maxDownloadMs, timeoutMs), clock)
  const overWords = timeoutMs > maxDownloadMs ? maxDownloadWords : undefined
  for (let tries = 1; ; tries += 1) {
    const fetched = await receive(url, file, { ...dependencies, deadline, overWords })
    if ('sha256' in fetched) return fetched
    const { fault, code, reason } = fetched
    const decision = afterFailedTry(retryPolicy, {
      fault,
      tries,
      unknownFates: 0,
      elapsedMs: clock.nowMs() - startedMs,
      remainingMs: deadline.remainingMs(),
      random: dependencies.random(),
    })
    if (!decision.retry) {
      const ending = describeEnding(decision.why, fault, deadline.remainingMs())
      throw new Failure(code, `Could not download Helm ${version}: ${reason}.${ending}`, {
        tried: tries > 1 ? `${tries} tries in ${formatDuration(clock.nowMs() - startedMs)}` : undefined, // prettier-ignore
        advice: `Can this runner reach ${url.host}? If not, ${otherHelm}`,
      })
    }
    log.details(
      `The download of Helm was interrupted: ${reason}; it starts again in ${formatDuration(decision.delayMs)}`,
      [],
    )
    await clock.sleep(decision.delayMs, signal)
    file.restart()
  }
}

/** One request. */
async function receive(
  url: URL,
  file: NewFile,
  dependencies: PatienceDependencies & Pick<HelmDownloadDependencies, 'storage'>,
): Promise<Fetched | LostConnection> {
  const { storage, signal } = dependencies
  const patience = createPatience(maxSilenceMs, dependencies)
  try {
    const headers = { 'accept-encoding': 'identity' }
    const { status, chunks } = await storage(url, headers, patience.signal)
    if (status !== 200) {
      const reason = `HTTP ${status} from ${url.host}`
      return { fault: { kind: 'status', status }, code: 'network', reason }
    }
    const hash = createHash('sha256')
    let sizeBytes = 0
    for await (const chunk of chunks) {
      patience.renew()
      sizeBytes += chunk.length
      if (sizeBytes > maxArchiveBytes) break // whatever it is, its checksum is another one
      hash.update(chunk)
      file.write(chunk)
    }
    return { sizeBytes, sha256: hash.digest('hex') }
  } catch (error) {
    signal.throwIfAborted()
    return lostConnection(error, patience, url.host)
  } finally {
    patience.end() // what is left of the reply is not wanted
  }
}

/** Takes the one program out of the archive, and nothing else. */
async function unpackTar(
  archive: string,
  folder: string,
  platform: string,
  { disk, signal }: HelmDownloadDependencies,
): Promise<string> {
  const { extract } = await import('tar-stream')
  const program = path.join(folder, 'helm')
  const parser = extract()
  let file: NewFile | undefined
  parser.on('entry', (header, body, next) => {
    body.on('error', () => {}) // the parser reports the same
    if (header.name === `${platform}/helm` && header.type === 'file' && !file) {
      const target = (file = disk.create(program, 0o755))
      body.on('data', (chunk) => {
        try {
          target.write(chunk as Buffer)
        } catch (error) {
          parser.destroy(error as Error)
        }
      })
    } else {
      body.resume()
    }
    body.on('end', next)
  })
  try {
    await pipeline(disk.read(archive), createGunzip(), parser, { signal })
  } finally {
    file?.close()
  }
  if (!file) throw new Failure('integrity', `The archive of Helm holds no ${platform}/helm.`)
  return program
}

/** The archives for Windows are zip files, which its own tar reads (bsdtar; another one in PATH may not). */
async function unpackZip(
  archive: string,
  folder: string,
  platform: string,
  { runCommand, environment, signal }: HelmDownloadDependencies,
): Promise<string> {
  const entry = `${platform}/helm.exe`
  const tar = path.join(environment['SystemRoot'] ?? 'C:\\Windows', 'System32', 'tar.exe')
  const { exitCode, stderr } = await runCommand(tar, ['-xf', archive, '-C', folder, entry], {
    environment,
    directory: folder,
    signal,
    maxMs: 60_000,
  })
  if (exitCode !== 0) {
    throw new Failure('integrity', `The archive of Helm cannot be unpacked: ${clean(stderr, 200)}`)
  }
  return path.join(folder, platform, 'helm.exe')
}
