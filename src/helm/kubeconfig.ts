/** The cluster: which one it is, by the input or by the machine. */
import path from 'node:path'
import { isFile } from '../disk.ts'
import { Failure } from '../errors.ts'
import { Problem } from '../input-reader.ts'
import type { Places } from '../targets.ts'
import { clean, shortestSecretLength } from '../text.ts'
import { readWhole } from './caller-values.ts'
import { type JsonRecord, isRecord, recordOf, recordsIn } from './json.ts'
import { parseYaml } from './yaml.ts'

/** The text of the `kubeconfig` input, checked. */
export interface Kubeconfig {
  readonly text: string
  /** The name of the context that is used, as it is written there. */
  readonly context: string
  /** Tokens, passwords and keys in it, for the masks of the runner. */
  readonly secrets: readonly string[]
}

/** What Helm finds without the input. */
export type AmbientCluster =
  /** The files that `KUBECONFIG` names, or `~/.kube/config`; those that exist, absolute. */
  | {
      readonly kind: 'files'
      readonly files: readonly string[]
      /** The name of the context that is used, as it is written there. */
      readonly context: string
      readonly secrets: readonly string[]
    }
  /** The runner's own cluster, by the service account of the pod that it is. */
  | { readonly kind: 'pod' }
  /** The one that Helm's own variables name (`HELM_KUBEAPISERVER`). */
  | { readonly kind: 'variables' }

/** A file that is far larger is something else. */
const maxKubeconfigBytes = 5 * 1024 * 1024

/**
 * Reads the `kubeconfig` input: YAML, or that in base64 (helm.md, rule 9).
 *
 * @param context the one that is asked for; else its current one has to exist
 * @param exists whether there is such a file on this machine
 * @throws Problem without anything of its content
 */
export function parseKubeconfig(
  given: string,
  context: string | undefined,
  exists: (file: string) => boolean,
): Kubeconfig {
  // Its first line keeps its indentation.
  const trimmed = given.replace(/^\ufeff?(?:[ \t]*\r?\n)*/, '').trimEnd()
  const inBase64 = decodeBase64(trimmed)
  const text = [trimmed, inBase64].find((candidate) => readConfig(candidate) !== undefined)
  const config = readConfig(text)
  if (text === undefined || config === undefined) {
    throw new Problem(
      /^(?:~|\.{0,2})\/[^\s:/][^\s:]{0,300}$/.test(trimmed)
        ? '`kubeconfig` looks like the path of a file. It is for the text itself; for a file on the runner, set the variable KUBECONFIG instead.'
        : '`kubeconfig` is not a kubeconfig, neither as YAML nor in base64. Is the secret whole? (`kubectl config view --raw --flatten --minify` prints what belongs into it.)',
    )
  }
  const used = resolveContext([config], context, '`kubeconfig`')
  assertFiles(config, used, exists)
  return { text: `${text}\n`, context: used.name, secrets: secretsIn(config) }
}

/**
 * The cluster that Helm finds on this machine, in its own order: its variables, `KUBECONFIG`, `~/.kube/config`,
 * the pod. What would make it fall back to `localhost:8080`, or to another cluster than was meant, is refused.
 *
 * @param places relative paths in `KUBECONFIG` begin at the workspace
 * @throws Failure `config`
 */
export async function ambientCluster(
  environment: Readonly<Record<string, string | undefined>>,
  context: string | undefined,
  places: Places,
): Promise<AmbientCluster> {
  if (environment['HELM_KUBEAPISERVER']) return { kind: 'variables' }
  const listed = (environment['KUBECONFIG'] ?? '').split(path.delimiter).filter(Boolean)
  const isListed = listed.length > 0
  const named = isListed ? listed : [path.join(places.home, '.kube', 'config')]
  const files = named
    .map((file) => path.resolve(places.workspace, file))
    .filter((file) => isFile(file, places.disk))
  const configs = await Promise.all(files.map((file) => readFile(file, places)))
  const wanted = context ?? (environment['HELM_KUBECONTEXT'] || undefined)
  const shown = clean((isListed ? listed : files).join(path.delimiter), 300)

  if (configs.some(({ clusters }) => toEntries(clusters, 'cluster').size > 0)) {
    try {
      const { name } = resolveContext(configs, wanted, shown)
      return { kind: 'files', files, context: name, secrets: configs.flatMap(secretsIn) }
    } catch (error) {
      throw error instanceof Problem ? new Failure('config', error.message) : error
    }
  }
  // A pod whose login step failed must not deploy to itself.
  if (isListed) {
    throw new Failure(
      'config',
      files.length === 0
        ? `KUBECONFIG names ${shown}, which does not exist.`
        : `KUBECONFIG names ${shown}, which holds no cluster.`,
      { advice: 'Did the step that logs in to the cluster run in this job, before this step?' },
    )
  }
  if (isPod(environment, places)) {
    if (wanted === undefined) return { kind: 'pod' }
    throw new Failure(
      'config',
      `\`kube-context\` ("${clean(wanted, 100)}") needs a kubeconfig; this runner is a pod without one.`,
    )
  }
  throw new Failure(
    'config',
    `There is no cluster to deploy to: \`kubeconfig\` is empty, the variable KUBECONFIG is not set, ${clean(named.join(''), 200)} ${files.length === 0 ? 'does not exist' : 'holds no cluster'}, and this runner is not a pod.`,
    {
      advice:
        'Give `kubeconfig` from a secret, or log in to the cluster in an earlier step of this job. In the reusable workflow, pass the secret KUBECONFIG; one of an environment reaches it only with `secrets: inherit`.',
    },
  )
}

/** A kubeconfig as it is, or undefined for anything else. */
function readConfig(text: string | undefined): JsonRecord | undefined {
  if (text === undefined) return undefined
  const value = readYaml(text)
  return isRecord(value) && Array.isArray(value['clusters']) && Array.isArray(value['contexts'])
    ? value
    : undefined
}

/** One document; undefined when there are more, or when it is not YAML. */
function readYaml(text: string): unknown {
  try {
    const [document = null, ...more] = parseYaml(text, 'kubeconfig', { duplicates: true })
    return more.length === 0 ? document : undefined
  } catch (error) {
    if (error instanceof Problem) return undefined
    throw error
  }
}

async function readFile(file: string, { disk }: Places): Promise<JsonRecord> {
  try {
    const bytes = await readWhole(file, maxKubeconfigBytes, disk, clean(file, 200))
    const value = readYaml(bytes.toString('utf8'))
    if (isRecord(value)) return value
    if (value === null) return {}
    throw new Problem(`${clean(file, 200)} is not a kubeconfig.`)
  } catch (error) {
    throw error instanceof Problem ? new Failure('config', error.message) : error
  }
}

/** Strictly, over several lines at most; undefined when it is not base64 of a text. */
function decodeBase64(text: string): string | undefined {
  const digits = text.replace(/\s+/g, '')
  if (digits.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(digits)) return undefined
  try {
    const bytes = Buffer.from(digits, 'base64')
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes).trim()
  } catch {
    return undefined
  }
}

interface Used {
  /** Of the context. */
  readonly name: string
  readonly cluster: JsonRecord
  readonly user: JsonRecord
}

/**
 * The cluster and the user behind a context. Of several files the first that has a name counts, as for
 * kubectl. What is missing would make Helm try `localhost:8080`.
 *
 * @throws Problem
 */
function resolveContext(
  configs: readonly JsonRecord[],
  wanted: string | undefined,
  shown: string,
): Used {
  const all = (list: string, body: string) =>
    new Map(configs.toReversed().flatMap((config) => [...toEntries(config[list], body)]))
  const contexts = all('contexts', 'context')
  const current = configs.map((config) => config['current-context']).find(isText)
  const name = wanted ?? current
  if (name === undefined) {
    throw new Problem(`${shown} has no current-context; name a context in \`kube-context\`.`)
  }
  const context = contexts.get(name)
  if (!context) {
    throw new Problem(
      wanted === undefined
        ? `${shown} has a current-context that is not among its contexts; name another one in \`kube-context\`.`
        : `\`kube-context\` ("${clean(wanted, 100)}") is not a context of ${shown}.`,
    )
  }
  const cluster = all('clusters', 'cluster').get(String(context['cluster']))
  if (!cluster || !isText(cluster['server'])) {
    throw new Problem(
      `${shown} has a context whose cluster ${cluster ? 'has no `server`' : 'is missing'}.`,
    )
  }
  const user = isText(context['user']) ? all('users', 'user').get(context['user']) : {}
  if (!user) throw new Problem(`${shown} has a context whose user is missing.`)
  return { name, cluster, user }
}

/**
 * The text goes into a file of ours, so that paths which are relative to it lead nowhere; absolute ones are those of
 * the machine where it was made.
 */
function assertFiles(config: JsonRecord, used: Used, exists: (file: string) => boolean): void {
  const flatten = 'Store what `kubectl config view --raw --flatten --minify` prints.'
  const clusters = [...toEntries(config['clusters'], 'cluster').values()]
  const users = [...toEntries(config['users'], 'user').values()]
  const relative = [...clusters, ...users]
    .flatMap(filesIn)
    .concat(users.flatMap(commandsIn))
    .find((file) => !path.isAbsolute(file))
  if (relative !== undefined) {
    throw new Problem(
      `\`kubeconfig\` names a file by a relative path, which is not here. ${flatten}`,
    )
  }
  if ([used.cluster, used.user].flatMap(filesIn).some((file) => !exists(file))) {
    throw new Problem(`\`kubeconfig\` names a file that does not exist on this runner. ${flatten}`)
  }
}

const fileKeys = ['certificate-authority', 'client-certificate', 'client-key', 'tokenFile']

function filesIn(entry: JsonRecord): string[] {
  return fileKeys.map((key) => entry[key]).filter(isText)
}

/** A plugin that is named without a slash is looked for in `PATH`. */
function commandsIn(user: JsonRecord): string[] {
  const command = recordOf(user['exec'])['command']
  return isText(command) && /[/\\]/.test(command) ? [command] : []
}

const secretKeys = new Set([
  'token',
  'password',
  'client-key-data',
  // Of auth-provider:
  'access-token',
  'refresh-token',
  'id-token',
  'client-secret',
])

/** What must not be printed: the values of secret keys, wherever they stand, and secret variables of plugins. */
function secretsIn(config: JsonRecord): string[] {
  const secrets = new Set<string>()
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(visit)
    if (!isRecord(value)) return
    for (const [key, inner] of Object.entries(value)) {
      if (!isText(inner)) visit(inner)
      else if (secretKeys.has(key)) secrets.add(inner)
      if (key === 'client-key-data' && isText(inner))
        keyLines(inner).forEach((line) => secrets.add(line))
    }
    const { name, value: variable } = value
    if (isText(name) && isText(variable) && /token|secret|password|key/i.test(name)) {
      secrets.add(variable)
    }
  }
  visit(config['users'])
  return [...secrets].filter(({ length }) => length >= shortestSecretLength)
}

/** The key as PEM has it, line by line: its short last line, as a mask, would blot out too much. */
function keyLines(base64: string): string[] {
  const lines = Buffer.from(base64, 'base64').toString('latin1').split(/\r?\n/)
  return lines.filter((line) => /^[A-Za-z0-9+/=]{20,}$/.test(line))
}

/** The entries of a list by their names; what has no name or no body is no entry. */
function toEntries(list: unknown, body: string): Map<string, JsonRecord> {
  return new Map(
    recordsIn(list).flatMap((entry) => {
      const inner = entry[body] ?? {}
      return isText(entry['name']) && isRecord(inner) ? [[entry['name'], inner] as const] : []
    }),
  )
}

/** As client-go decides it (`inClusterConfig`, `Possible`). */
function isPod(environment: Readonly<Record<string, string | undefined>>, places: Places): boolean {
  return Boolean(
    environment['KUBERNETES_SERVICE_HOST'] &&
    environment['KUBERNETES_SERVICE_PORT'] &&
    isFile('/var/run/secrets/kubernetes.io/serviceaccount/token', places.disk),
  )
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}
