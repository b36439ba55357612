/** The chart: where it comes from, and how Helm is told. */
import path from 'node:path'
import { type Disk, writePrivateFile } from '../disk.ts'
import { Failure } from '../errors.ts'
import { Problem, parsePath } from '../input-reader.ts'
import { isLoopback } from '../link.ts'
import { clean } from '../text.ts'

/** What can stand in `chart`, with `chart-repository` beside it. */
export type ChartReference =
  /** A directory or a packaged chart on this machine; absolute. */
  | { readonly kind: 'path'; readonly path: string }
  /** `oci://…`; `pinned` when it ends in a tag or a digest, which leaves no choice of version. */
  | {
      readonly kind: 'oci'
      readonly url: string
      /** With its port. */
      readonly host: string
      readonly pinned: boolean
    }
  | { readonly kind: 'repository'; readonly url: string; readonly name: string }
  /** `repository/name`, by a repository that an earlier step has added to the machine's own Helm. */
  | { readonly kind: 'named'; readonly name: string }

export interface ChartCredentials {
  readonly username: string
  readonly password: string
}

export interface ChartPlaces {
  readonly disk: Disk
  /** Where relative paths begin. */
  readonly workspace: string
}

/** As Helm's own charts are named, and folders of them in a repository. */
const chartName = /^[A-Za-z0-9][A-Za-z0-9._-]*(?:\/[A-Za-z0-9][A-Za-z0-9._-]*)*$/

/**
 * Reads `chart`. It is a path when it begins with `.` or `/`, or when there is no repository and it exists
 * below the workspace (helm.md, rule 7).
 *
 * @param repository the address in `chart-repository`; undefined when it is empty
 * @throws Problem also when a path holds no chart
 */
export function parseChart(
  text: string,
  repository: string | undefined,
  places: ChartPlaces,
): ChartReference {
  const shown = `\`chart\` ("${clean(text.replace(/\/\/[^/]*@/, '//'), 200)}")`
  if (text.startsWith('oci://')) {
    if (repository !== undefined) {
      throw new Problem(
        `${shown} is a whole address, which does not go with \`chart-repository\`; leave one of them out.`,
      )
    }
    return parseOci(text, shown)
  }
  if (text.includes('://')) {
    throw new Problem(
      `${shown} is an address that is not oci://; put the repository into \`chart-repository\` and the name of the chart here.`,
    )
  }

  const looksLikePath = /^[./~]/.test(text) || path.isAbsolute(text)
  if (looksLikePath && repository !== undefined) {
    throw new Problem(
      `${shown} is a path, which does not go with \`chart-repository\`; leave one of them out.`,
    )
  }
  if (repository !== undefined) {
    if (chartName.test(text)) return { kind: 'repository', url: repository, name: text }
    throw new Problem(
      `${shown} is not a name of a chart: letters, digits, dots, hyphens and underscores.`,
    )
  }
  const target = parsePath(text, 'chart', places.workspace)
  const kind = kindOf(target, 'chart', places.disk)
  if (looksLikePath || kind !== 'nothing') {
    assertChart(target, kind, shown, places.disk)
    return { kind: 'path', path: target }
  }
  if (chartName.test(text) && text.includes('/')) return { kind: 'named', name: text }
  throw new Problem(
    `${shown} does not exist in the workspace. If it is the name of a chart, \`chart-repository\` has to say where; if it is a path, is there a checkout before this step?`,
  )
}

function parseOci(text: string, shown: string): ChartReference {
  const [, host = '', rest = ''] = /^oci:\/\/([^/]+)\/(.+?)\/*$/.exec(text) ?? []
  if (host.includes('@')) {
    throw new Problem(
      `${shown} holds a user name or password; they go into \`chart-username\` and \`chart-password\`.`,
    )
  }
  // Name, tag and digest as in the distribution specification, a little looser.
  const reference = /^[A-Za-z0-9._/-]+(?::[A-Za-z0-9_][A-Za-z0-9._+-]*)?(?:@sha256:[0-9a-f]{64})?$/
  if (URL.parse(`https://${host}`)?.host === undefined || !reference.test(rest)) {
    throw new Problem(
      `${shown} is not the address of a chart, such as oci://registry.example.com/charts/docs.`,
    )
  }
  return { kind: 'oci', url: `oci://${host}/${rest}`, host, pinned: /[:@]/.test(rest) }
}

function assertChart(
  target: string,
  kind: ReturnType<Disk['inspect']>,
  shown: string,
  disk: Disk,
): void {
  if (kind === 'nothing') {
    throw new Problem(`${shown} does not exist. Is there a checkout before this step?`)
  }
  if (kind === 'directory') {
    if (kindOf(path.join(target, 'Chart.yaml'), 'chart', disk) === 'file') return
    throw new Problem(`${shown} is a directory without a Chart.yaml, so it is no chart.`)
  }
  if (kind === 'file' && /\.(?:tgz|tar\.gz)$/.test(target)) return
  throw new Problem(`${shown} is neither the directory of a chart nor a packaged one (.tgz).`)
}

/**
 * What a path of an input leads to, through links; a link that leads nowhere is nothing.
 *
 * @throws Problem when the system does not let us look
 */
export function kindOf(target: string, name: string, disk: Disk): ReturnType<Disk['inspect']> {
  try {
    const kind = disk.inspect(disk.canonical(target))
    return kind === 'link' ? 'nothing' : kind
  } catch (error) {
    if (error instanceof Failure) {
      throw new Problem(`\`${name}\` cannot be used. ${error.message}`)
    }
    throw error
  }
}

/** The address of a chart repository (`helm repo add`). @throws Problem */
export function parseRepository(text: string): string {
  const url = URL.parse(text)
  if (/^[^/]*:\/\/[^/]*@/.test(text) || (url && url.username + url.password !== '')) {
    throw new Problem(
      '`chart-repository` holds a user name or password; they go into `chart-username` and `chart-password`.',
    )
  }
  const seen = clean(text.replace(/[?#].*/s, ''), 200)
  if (text.startsWith('oci://')) {
    throw new Problem(
      `\`chart-repository\` is for repositories that speak http ("${seen}"). Write the whole address into \`chart\`: ${seen.replace(/\/+$/, '')}/NAME.`,
    )
  }
  if (!/^[\x21-\x7e]+$/.test(text) || !url || !/^https?:$/.test(url.protocol)) {
    throw new Problem(`\`chart-repository\` is not an https address ("${seen}").`)
  }
  if (url.search !== '' || url.hash !== '') {
    throw new Problem(
      `\`chart-repository\` has a query or a fragment behind ${seen}; leave it out.`,
    )
  }
  return url.href.replace(/\/+$/, '')
}

/** A version, or a range of them, in printable ASCII; Helm judges the rest. @throws Problem */
export function parseChartVersion(text: string): string {
  if (/^[\x20-\x7e]{1,100}$/.test(text) && /[\dxX*]/.test(text) && !text.startsWith('-')) {
    return text
  }
  throw new Problem(
    `\`chart-version\` is a version such as 1.2.3, or a range such as ^1.2 ("${clean(text, 100)}").`,
  )
}

/** Whether the version of a chart is for this action to choose: not that of a path, a tag or a digest. */
export function hasVersions(chart: ChartReference): boolean {
  return chart.kind === 'repository' || chart.kind === 'named' || (chart.kind === 'oci' && !chart.pinned) // prettier-ignore
}

/**
 * The arguments that name the chart to Helm, the same for `upgrade`, `show` and `template`.
 *
 * @param version ignored where the reference leaves no choice
 */
export function chartArguments(chart: ChartReference, version: string | undefined): string[] {
  const versionArguments = version !== undefined && hasVersions(chart) ? ['--version', version] : []
  switch (chart.kind) {
    case 'path':
      return [chart.path]
    case 'named':
      return [chart.name, ...versionArguments]
    case 'repository':
      return [chart.name, '--repo', chart.url, ...versionArguments]
    case 'oci':
      return [chart.url, ...versionArguments, ...(isLocal(chart.host) ? ['--plain-http'] : [])]
  }
}

/**
 * A registry on this machine speaks no TLS. Helm 4 has to be told; Helm 3 falls back by itself, but then
 * forgets the password (3.21.4).
 */
function isLocal(host: string): boolean {
  return isLoopback(new URL(`https://${host}`).hostname)
}

export interface Login {
  readonly args: readonly string[]
  /** The password, for standard input. */
  readonly stdin: string
  /** What to use instead of the reference from then on. */
  readonly chart: ChartReference
}

/** The name of the repository in Helm's private files. */
const privateName = 'private'

/**
 * How Helm is given a user name and a password: by a command before all others that takes the password
 * on standard input. Only within {@link privateHelmEnvironment}, since Helm writes the password to a file.
 */
export function loginCommand(
  chart: ChartReference,
  { username, password }: ChartCredentials,
  helmMajor: 3 | 4,
): Login {
  const user = ['--username', username, '--password-stdin']
  switch (chart.kind) {
    case 'repository':
      return {
        args: ['repo', 'add', privateName, chart.url, ...user],
        stdin: password,
        chart: { kind: 'named', name: `${privateName}/${chart.name}` },
      }
    case 'oci':
      return {
        // Helm 3 has this flag in its newer versions only, and needs it in none.
        args: [
          'registry',
          'login',
          chart.host,
          ...user,
          ...(helmMajor === 4 && isLocal(chart.host) ? ['--plain-http'] : []),
        ],
        stdin: password,
        chart,
      }
    case 'path':
    case 'named':
      throw new Error(`a chart of kind ${chart.kind} needs no login`)
  }
}

/**
 * Variables that make Helm keep its repositories, their indexes, the charts and the passwords in a folder
 * that the caller removes. Writes a file there: without any entry in it, Helm would hand the password to
 * the key chain of the machine, where it would outlive the run (oras-go, `DetectDefaultNativeStore`).
 *
 * @param folder exists, is empty, and readable by its owner only
 */
export function privateHelmEnvironment(folder: string, disk: Disk): Record<string, string> {
  const registryConfig = path.join(folder, 'registry.json')
  writePrivateFile(registryConfig, '{"auths":{"placeholder.invalid":{}}}\n', disk)
  return {
    HELM_REPOSITORY_CONFIG: path.join(folder, 'repositories.yaml'),
    HELM_REPOSITORY_CACHE: path.join(folder, 'repository'),
    HELM_CONTENT_CACHE: path.join(folder, 'content'), // Helm 4 keeps whole charts here
    HELM_REGISTRY_CONFIG: registryConfig,
  }
}
