/** The inputs of the Helm action, validated. All problems are reported together, before any request. */
import {
  type InputReader,
  InvalidInputs,
  Problem,
  createInputReader,
  decimal,
  parseBoolean,
  parseId,
  parseValuesKey,
  parseVersion,
  takeAccess,
} from '../input-reader.ts'
import { isLoopback } from '../link.ts'
import type { MirrorTarget } from '../mirror.ts'
import { clean } from '../text.ts'
import {
  type CallerValues,
  type Values,
  parseValues,
  readValuesFile,
  valuesAt,
} from './caller-values.ts'
import {
  type ChartCredentials,
  type ChartPlaces,
  type ChartReference,
  hasVersions,
  kindOf,
  parseChart,
  parseChartVersion,
  parseRepository,
} from './chart.ts'
import { parseHelmVersion } from './installation.ts'
import { type Kubeconfig, parseKubeconfig } from './kubeconfig.ts'

export interface HelmInputs extends ChartInputs {
  readonly apiKey: string
  /** Without a slash at the end of its path. */
  readonly baseUrl: URL
  readonly jobId: string
  readonly release: string
  readonly namespace: string
  readonly createNamespace: boolean
  readonly callerValues: CallerValues
  readonly existingValues: 'keep' | 'reset'
  readonly version: string | undefined
  readonly valuesKey: string
  readonly kubeconfig: Kubeconfig | undefined
  readonly kubeContext: string | undefined
  /** `3`, `4` or a version of the table. */
  readonly helmVersion: string | undefined
  readonly timeoutMs: number
  readonly helmTimeoutMs: number
  readonly mirror: HelmMirror | undefined
  readonly verifyUrl: URL | undefined
}

export interface ChartInputs {
  readonly chart: ChartReference
  /** A version or a range of them; never set where the reference leaves no choice. */
  readonly chartVersion: string | undefined
  /** Only with a chart of a repository or a registry. */
  readonly chartCredentials: ChartCredentials | undefined
}

export interface HelmMirror extends MirrorTarget {
  /** Where pods find the objects of the prefix; without a slash at the end. */
  readonly baseUrl: URL
}

/** Every input that is read; `helm/action.yml` declares the same. */
export const helmInputNames = [
  'api-key',
  'base-url',
  'job-id',
  'release',
  'chart',
  'chart-version',
  'chart-repository',
  'chart-username',
  'chart-password',
  'namespace',
  'create-namespace',
  'values-files',
  'values',
  'existing-values',
  'version',
  'values-key',
  'kubeconfig',
  'kube-context',
  'helm-version',
  'timeout-minutes',
  'helm-timeout-minutes',
  'mirror-bucket',
  'mirror-prefix',
  'mirror-region',
  'mirror-endpoint-url',
  'mirror-base-url',
  'verify-url',
] as const

export type HelmInputName = (typeof helmInputNames)[number]

/**
 * Reads and checks all inputs, and the files that they name. An empty input counts as absent, since an expression
 * without a value arrives as an empty string.
 *
 * @param read gives the text of an input, or an empty string
 * @param warn is told what is allowed, but probably a mistake
 * @param places where relative paths begin, and the disk that they are on
 * @throws InvalidInputs with every problem found, each with its fix; nothing of values and secrets is in it
 */
export async function readHelmInputs(
  read: (name: HelmInputName) => string,
  warn: (message: string) => void,
  places: ChartPlaces,
): Promise<HelmInputs> {
  const reader = createInputReader<HelmInputName>(read)
  const { take, isGiven, reject } = reader
  const { apiKey, baseUrl } = takeAccess(reader, warn)

  const jobId = take('job-id', parseId, '')
  if (!isGiven('job-id')) {
    reject('`job-id` is missing: the export to deploy, which is the `jobId` output of its step.')
  }
  const release = take('release', parseRelease, '')
  if (!isGiven('release')) reject('`release` is missing: the name of the Helm release.')
  const chart = takeChart(reader, warn, places)
  const namespace = take('namespace', parseNamespace, 'default')
  const createNamespace = take('create-namespace', parseBoolean, false)

  const version = take('version', parseVersion, undefined)
  const valuesKey = take('values-key', parseValuesKey, 'staticExport')
  const callerValues = await takeCallerValues()
  const given = isGiven('values-files') || isGiven('values')
  const existingValues = take('existing-values', parseExistingValues, given ? 'reset' : 'keep')

  const kubeContext = take('kube-context', parseContext, undefined)
  const kubeconfig = take(
    'kubeconfig',
    () => parseKubeconfig(read('kubeconfig'), kubeContext, isFile),
    undefined,
  )
  const helmVersion = take('helm-version', parseHelmVersion, undefined)
  const timeoutMinutes = take('timeout-minutes', decimal(0, 1440, 'minutes'), 30)
  const helmTimeoutMinutes = take('helm-timeout-minutes', decimal(0, 60, 'minutes'), 10)
  const mirror = takeMirror(reader, warn)
  const verifyUrl = take('verify-url', parseWebUrl, undefined)

  if (reader.problems.length > 0 || !baseUrl || !chart) throw new InvalidInputs(reader.problems)
  return {
    apiKey,
    baseUrl,
    jobId,
    release,
    ...chart,
    namespace,
    createNamespace,
    callerValues,
    existingValues,
    version,
    valuesKey,
    kubeconfig,
    kubeContext,
    helmVersion,
    timeoutMs: timeoutMinutes * 60_000,
    helmTimeoutMs: helmTimeoutMinutes * 60_000,
    mirror,
    verifyUrl,
  }

  function isFile(file: string): boolean {
    return kindOf(file, 'kubeconfig', places.disk) === 'file'
  }

  async function takeCallerValues(): Promise<CallerValues> {
    const sources: { values: Values; shown: string }[] = []
    const files: string[] = []
    for (const line of take('values-files', splitLines, [])) {
      try {
        const source = await readValuesFile(line, places)
        files.push(source.file)
        sources.push(source)
      } catch (error) {
        if (!(error instanceof Problem)) throw error
        reject(error.message)
      }
    }
    // As written: trimming would move the first line against the others.
    const text = isGiven('values') ? read('values') : undefined
    const shown = '`values`'
    const values = take('values', () => parseValues(text ?? '', shown), undefined)
    sources.push({ values, shown })

    const ours = ['enabled', 'bundleUrl', ...(version === undefined ? [] : ['version'])]
    for (const source of sources) {
      const theirs = valuesAt(source.values, valuesKey) ?? {}
      for (const name of ours.filter((name) => Object.hasOwn(theirs, name))) {
        warn(
          `${source.shown} sets ${valuesKey}.${name}, which has no effect: the value of this action comes last.`,
        )
      }
    }
    const setsVersion = sources.some((source) =>
      Object.hasOwn(valuesAt(source.values, valuesKey) ?? {}, 'version'),
    )
    return { files, text, setsVersion }
  }
}

function takeChart(
  { take, isGiven, reject }: InputReader<HelmInputName>,
  warn: (message: string) => void,
  places: ChartPlaces,
): ChartInputs | undefined {
  const noRepository = isGiven('chart-repository') ? '' : undefined // one that is wrong still counts
  const repository = take('chart-repository', parseRepository, noRepository)
  const chart = take('chart', (text) => parseChart(text, repository, places), undefined)
  if (!isGiven('chart')) {
    reject('`chart` is missing: a path, oci://…, or a name with `chart-repository`.')
  }
  const chartVersion = take('chart-version', parseChartVersion, undefined)
  if (chart && !hasVersions(chart) && isGiven('chart-version')) {
    reject(
      chart.kind === 'path'
        ? '`chart-version` does not go with a chart that is a path: its version is in its Chart.yaml.'
        : '`chart-version` does not go with a tag or a digest in `chart`; leave one of them out.',
    )
  }

  const username = take('chart-username', parseUsername, '')
  const password = take('chart-password', parsePassword, '')
  const hasCredentials = isGiven('chart-username') || isGiven('chart-password')
  if (isGiven('chart-username') !== isGiven('chart-password')) {
    reject(
      `\`chart-username\` and \`chart-password\` belong together; ${isGiven('chart-username') ? 'the password' : 'the user name'} is missing. (Is the secret defined?)`,
    )
  } else if (hasCredentials && (chart?.kind === 'path' || chart?.kind === 'named')) {
    reject(
      '`chart-username` and `chart-password` are for `chart-repository` and oci:// charts only.',
    )
  }
  if (repository?.startsWith('http:') && !isLoopback(new URL(repository).hostname)) {
    warn(
      `\`chart-repository\` is not https: anyone on the way can change the chart${hasCredentials ? ' and read the password' : ''}.`,
    )
  }
  const chartCredentials = hasCredentials ? { username, password } : undefined
  return chart && { chart, chartVersion, chartCredentials }
}

function takeMirror(
  { take, isGiven, reject }: InputReader<HelmInputName>,
  warn: (message: string) => void,
): HelmMirror | undefined {
  const bucket = take('mirror-bucket', parseBucket, undefined)
  const prefix = take('mirror-prefix', parsePrefix, '')
  const region = take('mirror-region', parseRegion, undefined)
  const endpointUrl = take('mirror-endpoint-url', parseWebUrl, undefined)
  const baseUrl = take('mirror-base-url', parseMirrorBaseUrl, undefined)
  if (!isGiven('mirror-bucket')) {
    const others = [
      'mirror-prefix',
      'mirror-region',
      'mirror-endpoint-url',
      'mirror-base-url',
    ] as const
    for (const name of others.filter(isGiven)) {
      reject(`\`${name}\` has no effect without \`mirror-bucket\`, which switches the mirror on.`)
    }
    return undefined
  }
  if (!isGiven('mirror-base-url')) {
    reject(
      '`mirror-base-url` is missing: where pods find what is in `mirror-bucket`, its prefix included.',
    )
  }
  if (bucket === undefined || baseUrl === undefined) return undefined
  if (prefix !== '' && !`${baseUrl.pathname}/`.endsWith(`/${prefix}/`)) {
    warn(
      `\`mirror-base-url\` does not end in \`mirror-prefix\` (${prefix}). Pods find nothing there, unless something in between adds it.`,
    )
  }
  return { bucket, prefix, region, endpointUrl, baseUrl }
}

function splitLines(text: string): string[] {
  const lines = text.split('\n').map((line) => line.trim())
  return lines.filter((line) => line !== '')
}

/** The rule of Helm (pkg/chart/v2/util, `ValidateReleaseName`). */
function parseRelease(text: string): string {
  const label = '[a-z0-9](?:[-a-z0-9]*[a-z0-9])?'
  if (text.length <= 53 && new RegExp(`^${label}(?:\\.${label})*$`).test(text)) return text
  throw new Problem(
    `\`release\` is not a name that Helm allows: lower-case letters, digits, hyphens and dots, at most 53 ("${clean(text, 80)}").`,
  )
}

/** A DNS label (RFC 1123), as Kubernetes demands. */
function parseNamespace(text: string): string {
  if (/^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/.test(text)) return text
  throw new Problem(
    `\`namespace\` is not a name that Kubernetes allows: lower-case letters, digits and hyphens, at most 63 ("${clean(text, 80)}").`,
  )
}

function parseExistingValues(text: string): 'keep' | 'reset' {
  if (text === 'keep' || text === 'reset') return text
  throw new Problem(`\`existing-values\` is keep or reset ("${clean(text, 40)}").`)
}

/** Cloud services put colons, slashes and at signs into the names of contexts. */
function parseContext(text: string): string {
  if (/^[^\p{Cc}\p{Zl}\p{Zp}]{1,300}$/u.test(text)) return text
  throw new Problem(`\`kube-context\` is one name on one line ("${clean(text, 80)}").`)
}

/** Neither is repeated: they may stand in each other's place. */
function parseUsername(text: string): string {
  if (/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.includes(':')) return text
  throw new Problem(
    '`chart-username` holds a character that no user name has, such as a colon or the end of a line.',
  )
}

function parsePassword(text: string): string {
  if (/^\P{Cc}+$/u.test(text)) return text
  throw new Problem('`chart-password` holds the end of a line or another control character.')
}

/** As S3 names buckets, and the storages that allow more. */
function parseBucket(text: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]$/.test(text)) return text
  throw new Problem(
    `\`mirror-bucket\` is the name of a bucket alone, 3 to 63 letters, digits, dots and hyphens ("${clean(text, 80)}").`,
  )
}

/** Only characters that are the same in a key and in a URL; slashes at the ends are common and fine. */
function parsePrefix(text: string): string {
  const prefix = text.replace(/^\/+|\/+$/g, '')
  const parts = prefix === '' ? [] : prefix.split('/')
  const fine = parts.every((part) => /^[A-Za-z0-9._-]+$/.test(part) && !/^\.\.?$/.test(part))
  if (fine && prefix.length <= 500) return prefix
  throw new Problem(
    `\`mirror-prefix\` is letters, digits, dots, hyphens and underscores, with slashes between ("${clean(text, 80)}").`,
  )
}

function parseRegion(text: string): string {
  if (/^[A-Za-z0-9-]{1,64}$/.test(text)) return text
  throw new Problem(
    `\`mirror-region\` is the name of a region, such as eu-central-1 ("${clean(text, 80)}").`,
  )
}

/** An address without credentials; what stands behind `#` is never sent. */
function parseWebUrl(text: string, name: string): URL {
  const url = URL.parse(text)
  if (/^[^/]*:\/\/[^/]*@/.test(text) || (url && url.username + url.password !== '')) {
    throw new Problem(`\`${name}\` holds a user name or password; leave them out.`)
  }
  if (url && /^https?:$/.test(url.protocol) && /^[^\s\p{Cc}]+$/u.test(text)) {
    url.hash = ''
    return url
  }
  throw new Problem(
    `\`${name}\` is not an http address ("${clean(text.replace(/[?#].*/s, ''), 200)}").`,
  )
}

/** Plain http is fine: what is stored is public to all pods, and many clusters speak no TLS inside. */
function parseMirrorBaseUrl(text: string, name: string): URL {
  const url = parseWebUrl(text, name)
  if (/[?#]/.test(text)) {
    throw new Problem(
      `\`${name}\` has a query or a fragment; the name of the archive is added at its end, so leave it out.`,
    )
  }
  url.pathname = url.pathname.replace(/\/+$/, '')
  return url
}
