/** The inputs of the action, validated. All problems are reported together, before any request. */
import { domainToASCII } from 'node:url'
import type { AgentJobRequest } from './agent-job.ts'
import type { DeliveryRequest } from './delivery.ts'
import { type Places, type TargetName, overlapProblems, targetProblem } from './targets.ts'
import {
  InvalidInputs,
  Problem,
  createInputReader,
  decimal,
  parseBoolean,
  parseId,
  parsePath,
  parseValuesKey,
  parseVersion,
  takeAccess,
} from './input-reader.ts'
import { clean } from './text.ts'

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
  const reader = createInputReader<InputName>(read)
  const { take, isGiven, reject } = reader
  const { apiKey, baseUrl } = takeAccess(reader, warn)

  const domain = take('domain', parseDomain, undefined)
  const jobId = take('job-id', parseId, undefined)
  if (!isGiven('domain') && !isGiven('job-id')) {
    reject(
      '`domain` is missing: the host name of the site to export, such as docs.example.com. (Or `job-id`, to attach to an export.)',
    )
  }
  const paths = take('paths', parsePaths, [])
  if (paths.length > 0 && isGiven('job-id')) {
    reject(
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
    else reject(problem)
    return target
  }
  const bundleFile = takeTarget('bundle-file')
  const siteDirectory = takeTarget('site-directory')
  const valuesFile = takeTarget('values-file')
  overlapProblems(targets, places).forEach(reject)
  const valuesKey = take('values-key', parseValuesKey, 'staticExport')
  const valuesBundleUrl = take('values-bundle-url', parseValuesBundleUrl, undefined)
  if (valuesFile === undefined && isGiven('values-bundle-url')) {
    reject('`values-bundle-url` is written into the values file: it needs `values-file`.')
  }

  const maskBundleUrl = take('mask-bundle-url', parseBoolean, false)
  const waitForAgent = take('wait-for-agent', parseBoolean, false)
  const summary = take('summary', parseBoolean, true)
  const projectId = take('agent-project-id', parseId, undefined)
  const agentJobId = take('agent-job-id', parseId, undefined)
  if (isGiven('agent-project-id') !== isGiven('agent-job-id')) {
    reject('`agent-project-id` and `agent-job-id` belong together; one of them is missing.')
  } else if (waitForAgent && !isGiven('agent-job-id')) {
    reject('`wait-for-agent` needs `agent-project-id` and `agent-job-id`.')
  }

  if (reader.problems.length > 0 || !baseUrl) throw new InvalidInputs(reader.problems)
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

function parsePaths(text: string): string[] {
  const lines = text.split('\n').map((line) => line.trim())
  return [...new Set(lines.filter((line) => line !== ''))]
}

/** Kept as written, since it may hold `{sha256}`; read as a URL only to find mistakes. */
function parseValuesBundleUrl(text: string): string {
  const url = URL.parse(text.replaceAll('{sha256}', '0'.repeat(64)))
  if (/^[\x21-\x7e]+$/.test(text) && url && /^https?:$/.test(url.protocol)) return text
  throw new Problem(
    `\`values-bundle-url\` is not an http address in printable ASCII ("${clean(text, 200)}").`,
  )
}
