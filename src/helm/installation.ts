/** Which Helm: the machine's own, or one of ours with a pinned checksum. */
import path from 'node:path'
import { isFile, removeQuietly } from '../disk.ts'
import { Failure } from '../errors.ts'
import { Problem } from '../input-reader.ts'
import { clean } from '../text.ts'
import {
  type HelmDownloadDependencies,
  downloadHelm,
  helmReleases,
  otherHelm,
} from './helm-download.ts'
import type { Redactor } from './redactor.ts'
import { CommandFault } from './process.ts'

export interface InstalledHelm {
  /** Absolute. */
  readonly file: string
  /** As Helm says it, without `v` and build: `3.21.4`, also `3.21`. */
  readonly version: string
  readonly major: 3 | 4
}

/** Since 3.14 there is `--reset-then-reuse-values`. */
const oldestMinor3 = 14

/** The major of what is downloaded when nothing is wanted and nothing is there. */
const defaultMajor = '4'

export interface FindHelmDependencies extends HelmDownloadDependencies {
  /** Ours is unpacked below it, and removed at the end of the process. */
  readonly temporaryDirectory: string
  readonly redactor: Redactor
}

/** The `helm-version` input: a major, or a version that is in the table. @throws Problem */
export function parseHelmVersion(text: string): string {
  const version = text.replace(/^v/, '')
  if (version === '3' || version === '4' || Object.hasOwn(helmReleases.sums, version))
    return version
  const known = Object.keys(helmReleases.sums).join(' or ')
  throw new Problem(
    `\`helm-version\` is 3, 4, ${known}, whose checksums are known ("${clean(text, 40)}"). For another, ${otherHelm}`,
  )
}

/**
 * The Helm to work with: the machine's own when it is what is wanted, else one that is downloaded, checked and
 * unpacked, and removed at the end of the process (helm.md, rule 11).
 *
 * @param wanted a major, a version of the table, or undefined for the machine's own, whichever it is
 * @throws Failure `config` when the machine's is too old or too new, `integrity`, `disk`, `environment` when what
 *   was downloaded does not run, and whatever the network ends in
 */
export async function findHelm(
  wanted: string | undefined,
  dependencies: FindHelmDependencies,
): Promise<InstalledHelm> {
  const { releases = helmReleases, temporaryDirectory } = dependencies
  const file = locate(dependencies)
  const own = file === undefined ? undefined : await askVersion(file, dependencies)
  if (own && 'version' in own && isSupported(own) && satisfies(own, wanted)) {
    return { file: own.file, version: own.version, major: own.major === 3 ? 3 : 4 }
  }
  if (own && wanted === undefined) throw unsuitable(own)

  const versions = Object.keys(releases.sums)
  const major = wanted ?? defaultMajor
  const version = versions.find((known) => known === major || known.startsWith(`${major}.`))
  if (version === undefined) {
    throw new Failure('config', `Helm ${clean(major, 40)} is not one that can be downloaded.`, {
      advice: `For another Helm, ${otherHelm}`,
    })
  }
  const folder = dependencies.disk.makePrivateDirectory(temporaryDirectory)
  try {
    const ours = await downloadHelm(version, folder, dependencies)
    const answer = await askVersion(ours, dependencies)
    if (!('version' in answer) || answer.version !== version) {
      const why = 'said' in answer ? describeSilence(answer) : ''
      const what = `Helm ${version} was downloaded, but does not run.${why}`
      throw new Failure('environment', what, {
        advice: `May programs be started from ${clean(temporaryDirectory, 200)}? If not, ${otherHelm}`,
      })
    }
    return { file: ours, version, major: answer.major === 3 ? 3 : 4 }
  } catch (error) {
    removeQuietly(folder, dependencies.disk, dependencies.log)
    throw error
  }
}

interface FoundHelm {
  readonly file: string
  readonly version: string
  readonly major: number
  readonly minor: number
}

/** A program of that name which does not say its version. */
interface SilentHelm {
  readonly file: string
  /** What it says instead: it reads its variables first, and speaks of an unknown HELM_DRIVER. May be empty. */
  readonly said: string
  /** Why it gave no answer; empty when it did. */
  readonly fault: string
}

/** The first Helm in `PATH`, as an absolute path, since it will run in another directory. */
function locate({ environment, platform, disk }: FindHelmDependencies): string | undefined {
  const [, directories = ''] =
    Object.entries(environment).find(([name]) => name.toUpperCase() === 'PATH') ?? []
  const name = platform === 'win32' ? 'helm.exe' : 'helm'
  return directories
    .split(path.delimiter)
    .filter((directory) => path.isAbsolute(directory))
    .map((directory) => path.join(directory, name))
    .find((file) => isFile(file, disk))
}

async function askVersion(
  file: string,
  { runCommand, environment, temporaryDirectory, redactor, signal }: FindHelmDependencies,
): Promise<FoundHelm | SilentHelm> {
  try {
    const { stdout, stderr } = await runCommand(file, ['version', '--template', '{{.Version}}'], {
      environment,
      directory: temporaryDirectory,
      signal,
      maxMs: 30_000,
    })
    // A build by `go install` has no patch number.
    const match = /^v(\d+)\.(\d+)((?:\.\d+)?(?:-[0-9A-Za-z.-]+)?)(?:\+\S*)?$/.exec(stdout.trim())
    if (!match) {
      return { file, said: redactor.toLine(stderr.trim().split('\n').at(-1) ?? '', 200), fault: '' }
    }
    const [, major = '', minor = '', rest = ''] = match
    return { file, version: `${major}.${minor}${rest}`, major: Number(major), minor: Number(minor) }
  } catch (error) {
    if (error instanceof CommandFault) return { file, said: '', fault: clean(error.message, 80) }
    throw error
  }
}

/** A sentence with a space in front, or nothing. */
function describeSilence({ said, fault }: SilentHelm): string {
  if (fault !== '') return ` It gave no answer (${fault}).`
  return said === '' ? '' : ` It said: "${said}".`
}

function isSupported({ major, minor }: FoundHelm): boolean {
  return major === 4 || (major === 3 && minor >= oldestMinor3)
}

function satisfies({ version, major }: FoundHelm, wanted: string | undefined): boolean {
  return wanted === undefined || wanted === version || wanted === String(major)
}

function unsuitable(helm: FoundHelm | SilentHelm): Failure {
  const where = clean(helm.file, 200)
  const needed = `3.${oldestMinor3} or newer, or 4, is needed`
  const what =
    'said' in helm
      ? `The Helm of this machine (${where}) does not say which version it is; ${needed}.${describeSilence(helm)}`
      : `The Helm of this machine (${where}) is ${helm.version}, too ${helm.major > 4 ? 'new' : 'old'}; ${needed}.`
  const advice =
    'said' in helm && helm.said !== '' // so would another Helm
      ? 'Correct what it says; most often it is a variable of this machine, such as HELM_DRIVER.'
      : 'Set `helm-version` to 3 or 4 to have one downloaded, or install one before this step.'
  return new Failure('config', what, { advice })
}
