/** The inputs of the action, validated. All problems are reported together, before any request. */
import path from 'node:path'
import { domainToASCII } from 'node:url'
import type { AgentJobRequest } from './agent-job.ts'
import { keyPattern } from './chart-values.ts'
import type { DeliveryRequest } from './delivery.ts'
import { isLoopback } from './link.ts'
import { type Places, type TargetName, overlapProblems, targetProblem } from './targets.ts'
import { Failure } from './errors.ts'
import { idPattern } from './export-job.ts'
import { clean, shortestSecretLength } from './text.ts'

export interface Inputs {
  readonly apiKey: string
  /** Without a slash at the end of its path. */
  readonly baseUrl: URL
  /** ASCII, lower case; set unless `jobId` is. */
  readonly domain: string | undefined
  readonly jobId: string | undefined
  readonly version: string | undefined
  readonly paths: readonly string[]
  readonly timeoutMs: number
  readonly pollIntervalMs: number | undefined
  readonly delivery: DeliveryRequest
  readonly maskBundleUrl: boolean
  readonly agentJob: AgentJobRequest | undefined
  readonly githubToken: string
  readonly summary: boolean
}

/** Every input that is read; `action.yml` declares the same. */
export const inputNames = [
  'api-key',
  'base-url',
  'domain',
  'job-id',
  'version',
  'paths',
  'timeout-minutes',
  'poll-interval-seconds',
  'bundle-file',
  'site-directory',
  'values-file',
  'values-key',
  'values-bundle-url',
  'mask-bundle-url',
  'agent-project-id',
  'agent-job-id',
  'wait-for-agent',
  'github-token',
  'summary',
] as const

export type InputName = (typeof inputNames)[number]

/** Thrown when inputs are wrong: one failure for all of them. */
export class InvalidInputs extends Failure {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    const [only = ''] = problems
    const all = problems.map((problem) => `- ${problem}`).join('\n')
    super(
      'config',
      problems.length === 1 ? only : `${problems.length} inputs need to be corrected:\n${all}`,
    )
    this.problems = problems
  }
}

/**
 * Reads and checks all inputs. An empty input counts as absent, since an expression without a value
 * arrives as an empty string.
 *
 * @param read gives the text of an input, or an empty string
 * @param warn is told what is allowed, but probably a mistake
 * @param places where relative paths begin, and the disk that they are on
 * @throws InvalidInputs with every problem found, each with its fix
 */
export function readInputs(
  read: (name: InputName) => string,
  warn: (message: string) => void,
  places: Places,
): Inputs {
  const problems: string[] = []
  const pastedKey = read('api-key').trim()

  const holdsKey = (text: string) =>
    pastedKey.length >= shortestSecretLength && text.includes(pastedKey)

  /** The value of an input by a reader that throws its problem as a string. */
  function take<T>(name: InputName, parse: (text: string, name: InputName) => T, fallback: T): T {
    const text = read(name).trim()
    if (text === '') return fallback
    // What is pasted into the wrong place must be neither used nor repeated.
    if (name !== 'api-key' && holdsKey(text)) {
      problems.push(`\`${name}\` holds the API key, which belongs into \`api-key\` alone.`)
      return fallback
    }
    const result = attempt(() => parse(text, name))
    if ('value' in result) return result.value
    problems.push(result.problem)
    return fallback
  }

  const apiKey = take('api-key', parseApiKey, '')
  if (pastedKey === '') {
    problems.push(
      '`api-key` is empty. Is the secret defined, and available to this event? (Pull requests from forks get none.)',
    )
  } else if (apiKey !== '') {
    if (apiKey.length < 16) warn('`api-key` is shorter than any admin key; is it whole?')
    else if (!/^[A-Za-z]+_/.test(apiKey)) {
      warn('`api-key` does not begin with a name and an underscore, as admin keys do.')
    }
  }

  const baseUrl = take('base-url', parseBaseUrl, undefined)
  if (read('base-url').trim() === '') {
    problems.push(
      '`base-url` is missing: the root address of the Admin API, such as https://api.example.com.',
    )
  } else if (baseUrl && /\/v[12]$/.test(baseUrl.pathname)) {
    warn(
      '`base-url` ends in a version. It should be the root of the Admin API, without /v1 or /v2.',
    )
  }

  const domain = take('domain', parseDomain, undefined)
  const jobId = take('job-id', parseId, undefined)
  if (read('domain').trim() === '' && read('job-id').trim() === '') {
    problems.push(
      '`domain` is missing: the host name of the site to export, such as docs.example.com. (Or `job-id`, to attach to an export.)',
    )
  }
  const paths = take('paths', parsePaths, [])
  if (paths.length > 0 && read('job-id').trim() !== '') {
    problems.push(
      '`paths` cannot be combined with `job-id`: what a job exports was decided when it was started.',
    )
  }

  const version = take('version', parseVersion, undefined)
  const timeoutMinutes = take('timeout-minutes', decimal(0, 1440, 'minutes'), 30)
  const pollIntervalSeconds = take('poll-interval-seconds', decimal(0.1, 600, 'seconds'), undefined)
  const targets = new Map<TargetName, string>()
  const takeTarget = (name: TargetName): string | undefined => {
    const target = take(name, (text) => parsePath(text, name, places.workspace), undefined)
    if (target === undefined) return undefined
    const problem = targetProblem(name, target, places)
    if (problem === undefined) targets.set(name, target)
    else problems.push(problem)
    return target
  }
  const bundleFile = takeTarget('bundle-file')
  const siteDirectory = takeTarget('site-directory')
  const valuesFile = takeTarget('values-file')
  problems.push(...overlapProblems(targets, places))
  const valuesKey = take('values-key', parseValuesKey, 'staticExport')
  const valuesBundleUrl = take('values-bundle-url', parseValuesBundleUrl, undefined)
  if (valuesFile === undefined && read('values-bundle-url').trim() !== '') {
    problems.push('`values-bundle-url` is written into the values file: it needs `values-file`.')
  }

  const maskBundleUrl = take('mask-bundle-url', parseBoolean, false)
  const waitForAgent = take('wait-for-agent', parseBoolean, false)
  const summary = take('summary', parseBoolean, true)
  const projectId = take('agent-project-id', parseId, undefined)
  const agentJobId = take('agent-job-id', parseId, undefined)
  if ((read('agent-project-id').trim() === '') !== (read('agent-job-id').trim() === '')) {
    problems.push('`agent-project-id` and `agent-job-id` belong together; one of them is missing.')
  } else if (waitForAgent && read('agent-job-id').trim() === '') {
    problems.push('`wait-for-agent` needs `agent-project-id` and `agent-job-id`.')
  }

  if (problems.length > 0 || !baseUrl) throw new InvalidInputs(problems)
  return {
    apiKey,
    baseUrl,
    domain,
    jobId,
    version,
    paths,
    timeoutMs: timeoutMinutes * 60_000,
    pollIntervalMs: pollIntervalSeconds === undefined ? undefined : pollIntervalSeconds * 1000,
    delivery: {
      bundleFile,
      siteDirectory,
      chartValues:
        valuesFile === undefined
          ? undefined
          : { file: valuesFile, key: valuesKey, bundleUrl: valuesBundleUrl, version },
    },
    maskBundleUrl,
    agentJob:
      projectId === undefined || agentJobId === undefined
        ? undefined
        : { projectId, jobId: agentJobId, wait: waitForAgent },
    githubToken: read('github-token').trim(),
    summary,
  }
}

/** What a reader of an input throws: caught in this file, collected and told together. */
class Problem extends Error {}

function attempt<T>(parse: () => T): { readonly value: T } | { readonly problem: string } {
  try {
    return { value: parse() }
  } catch (error) {
    if (error instanceof Problem) return { problem: error.message }
    throw error
  }
}

/** The key is never repeated in a problem. */
function parseApiKey(text: string): string {
  if (/^bearer\s/i.test(text)) {
    throw new Problem('`api-key` begins with the word Bearer. Store the key alone in the secret.')
  }
  if (!/^[\x21-\x7e]+$/.test(text)) {
    throw new Problem(
      '`api-key` holds a character that no key has (a pasted newline, space or ellipsis?). Copy the key again, whole and alone.',
    )
  }
  return text
}

function parseBaseUrl(text: string): URL {
  if (/\s/.test(text)) throw new Problem('`base-url` holds white space; it is one address.')
  const url = URL.parse(text)
  const isWeb = url?.protocol === 'https:' || url?.protocol === 'http:'
  if (isWeb ? url.username !== '' || url.password !== '' : text.includes('@')) {
    throw new Problem('`base-url` holds a user name or password; the key goes into `api-key`.')
  }
  const seen = clean(text.replace(/[?#].*/, ''), 200)
  if (!isWeb) {
    const bare = seen.replace(/^\/+/, '')
    const isHost = !bare.includes('://') && URL.parse(`https://${bare}`)?.hostname.includes('.')
    const suggestion = isHost ? `: did you mean https://${bare}?` : '.'
    throw new Problem(`\`base-url\` is not an https address ("${seen}")${suggestion}`)
  }
  if (url.search !== '' || url.hash !== '') {
    throw new Problem(`\`base-url\` has a query or a fragment behind ${seen}; leave it out.`)
  }
  if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
    throw new Problem(
      `\`base-url\` must be https, so that the key cannot be read on the way ("${seen}").`,
    )
  }
  url.pathname = url.pathname.replace(/\/+$/, '')
  url.search = url.hash = '' // takes an empty one away
  return url
}

/**
 * A host name: DNS labels (RFC 1035, section 2.3.4), in any script; kept in the ASCII form of IDNA
 * (UTS 46, as browsers do it).
 */
function parseDomain(text: string): string {
  const host = domainToASCII(text.replace(/\.$/, '')).toLowerCase()
  const bare = /^[^/?#@:%\\\s*]+$/.test(text)
  if (bare && isHostName(host)) return host

  // The URL parser would join what stands on two lines.
  const link = /^(?:https?:|[a-z][a-z0-9+.-]*:\/\/)/i.test(text) ? text : `https://${text}`
  const guess = /\s/.test(text) ? undefined : URL.parse(link)?.hostname
  const suggestion =
    guess !== undefined && isHostName(guess)
      ? `did you mean ${guess}?`
      : 'for example docs.example.com.'
  throw new Problem(
    `\`domain\` is the host name of the site, without scheme, port or path ("${clean(text, 200)}"): ${suggestion}`,
  )
}

function isHostName(host: string): boolean {
  return (
    host.length <= 253 &&
    /^(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(
      host,
    ) &&
    !/(?:^|\.)(?:\d+|0x[\da-f]*)$/.test(host) // an address, not a name
  )
}

function parseId(text: string, name: InputName): string {
  if (idPattern.test(text)) return text
  throw new Problem(
    `\`${name}\` is not an id: letters, digits, - and _, at most 128 ("${clean(text, 80)}").`,
  )
}

function parseVersion(text: string): string {
  if (/^[\x20-\x7e]{1,128}$/.test(text)) return text
  throw new Problem('`version` must be 1 to 128 printable ASCII characters on one line.')
}

function parsePaths(text: string): string[] {
  const lines = text.split('\n').map((line) => line.trim())
  return [...new Set(lines.filter((line) => line !== ''))]
}

function parsePath(text: string, name: InputName, workspace: string): string {
  // eslint-disable-next-line no-control-regex
  if (/[\u0000-\u001f\u007f]/.test(text)) {
    throw new Problem(`\`${name}\` holds a control character ("${clean(text, 200)}").`)
  }
  if (/^~(?:\/|$)/.test(text)) {
    throw new Problem(`\`${name}\` begins with ~, which only a shell understands; write it out.`)
  }
  return path.resolve(workspace, text)
}

function parseValuesKey(text: string): string {
  if (keyPattern.test(text) && text.length <= 200) return text
  throw new Problem(
    `\`values-key\` is a name, or names with dots between them, such as docs.staticExport ("${clean(text, 80)}").`,
  )
}

/** Kept as written, since it may hold `{sha256}`; read as a URL only to find mistakes. */
function parseValuesBundleUrl(text: string): string {
  const url = URL.parse(text.replaceAll('{sha256}', '0'.repeat(64)))
  if (/^[\x21-\x7e]+$/.test(text) && url && /^https?:$/.test(url.protocol)) return text
  throw new Problem(
    `\`values-bundle-url\` is not an http address in printable ASCII ("${clean(text, 200)}").`,
  )
}

function decimal(min: number, max: number, unit: string) {
  return (text: string, name: InputName): number => {
    const value = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : NaN
    if (value > 0 && value >= min && value <= max) return value
    const range = min === 0 ? `above 0 and at most ${max}` : `from ${min} to ${max}`
    throw new Problem(
      `\`${name}\` is a number of ${unit} ${range}, without a unit ("${clean(text, 40)}").`,
    )
  }
}

/** The booleans of YAML 1.2's core schema, as `core.getBooleanInput` reads them. */
function parseBoolean(text: string, name: InputName): boolean {
  if (/^(?:true|True|TRUE)$/.test(text)) return true
  if (/^(?:false|False|FALSE)$/.test(text)) return false
  throw new Problem(`\`${name}\` is true or false ("${clean(text, 40)}").`)
}
