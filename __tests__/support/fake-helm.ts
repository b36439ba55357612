/**
 * An imitation of the Helm command line where `process.ts` would start it, over releases in memory and in virtual
 * time. It knows the commands and flags that `src/helm` uses and refuses all others, as Helm does. Its texts and
 * shapes are those of Helm 3.21.4 and 4.2.4 against a Kubernetes 1.35 API.
 */
import fs from 'node:fs'
import path from 'node:path'
import { CORE_SCHEMA, load } from 'js-yaml'
import { CommandFault, type CommandOptions, type RunCommand } from '../../src/helm/process.ts'
import type { FakeClock } from './fake-clock.ts'

export type Values = Readonly<Record<string, unknown>>

export interface HelmCall {
  /** `upgrade`, `get values`, … */
  readonly command: string
  readonly args: readonly string[]
  readonly file: string
  readonly input: string | undefined
  readonly environment: Readonly<Record<string, string>>
  readonly directory: string
  /** What the working directory held. */
  readonly entries: readonly string[]
  /** How long it was allowed to take. */
  readonly maxMs: number
  /** When it began. */
  readonly atMs: number
}

export type RevisionStatus =
  | 'deployed'
  | 'failed'
  | 'superseded'
  | 'uninstalling'
  | 'pending-install'
  | 'pending-upgrade'
  | 'pending-rollback'

export interface FakeRevision {
  readonly revision: number
  status: RevisionStatus
  readonly chart: { readonly name: string; readonly version: string }
  /** What `helm get values` shows; null when there are none. */
  readonly values: Values | null
  readonly updatedMs: number
  readonly linkIn?: Rollout['linkIn']
}

/** Part of the status of a pod, as Kubernetes writes it. */
export type PodTrouble = Readonly<Record<string, unknown>>

/** What comes of one upgrade. Without any of it the pods are ready after two seconds, and Helm is content. */
export interface Rollout {
  /** From the beginning of the command until all pods are ready; `Infinity` for never. */
  readonly readyAfterMs?: number
  /** When Helm is content without regard to the pods, as Helm 3 is with one replica and maxUnavailable 1. */
  readonly contentAfterMs?: number
  /** Helm ends with this text on its error output. */
  readonly error?: string
  readonly errorAfterMs?: number
  /** It fails before it has recorded a revision. */
  readonly recordsNothing?: boolean
  /** What the pods that are not ready say. */
  readonly trouble?: PodTrouble
  readonly replicas?: number
  /** Whether the former pods stay until the new ones are ready (maxUnavailable 0, the default). */
  readonly formerPodsStay?: boolean
  /** Something between the action and Helm loses the standard input. */
  readonly dropsInput?: boolean
  /** Neither its timeout nor anything else ends it by itself. */
  readonly hangs?: boolean
  /** It is killed instead of ending by itself, and leaves the release as it is in the middle. */
  readonly isKilled?: boolean
  /** From the signal until it has ended. */
  readonly endsAfterMs?: number
  /** What happens elsewhere as the command begins. */
  readonly meanwhile?: () => void
  /** Those of the chart, as they have ended or not. */
  readonly hooks?: readonly FakeHook[]
  /** Live objects beside the Deployment: `v1/PersistentVolumeClaim`. */
  readonly others?: Readonly<Record<string, readonly Values[]>>
  /** Where the chart puts the link: into a Secret, a hook, or nowhere. */
  readonly linkIn?: 'manifest' | 'hooks' | 'nothing'
}

export interface FakeHook {
  readonly kind: 'Job' | 'Pod'
  readonly name: string
  readonly phase: '' | 'Running' | 'Succeeded' | 'Failed'
  readonly pods?: readonly { readonly name: string; readonly status: PodTrouble }[]
}

/** What comes of one rollback; at once and fine without it. */
export interface Setback {
  readonly afterMs?: number
  readonly error?: string
}

export interface FakeEvent {
  readonly type: 'Normal' | 'Warning'
  readonly kind: string
  readonly name: string
  readonly reason: string
  readonly message: string
  /** RFC 3339. */
  readonly last: string
}

/** Where charts can be had. */
export interface FakeSource {
  readonly name: string
  readonly versions: readonly string[]
  readonly username?: string
  readonly password?: string
}

export interface FakeHelmOptions {
  readonly clock: FakeClock
  readonly major?: 3 | 4
  readonly version?: string
  readonly namespaces?: readonly string[]
  /** By the address of the repository, `oci://` address of the chart, or name of a repository of the machine. */
  readonly sources?: Readonly<Record<string, FakeSource>>
}

interface Live {
  readonly replicas: number
  readonly beganMs: number
  readonly readyMs: number
  readonly trouble: PodTrouble
  readonly generation: number
  /** Ready pods of the revision before, until the new ones are ready. */
  readonly formerPods: number
  readonly hooks: readonly FakeHook[]
  readonly others: Readonly<Record<string, readonly Values[]>>
}

interface Release {
  readonly revisions: FakeRevision[]
  live: Live | undefined
}

class HelmExit extends Error {
  readonly stderr: string

  constructor(stderr: string) {
    super(stderr)
    this.stderr = stderr
  }
}

const flagsOf: Readonly<Record<string, Readonly<Record<string, 'value' | 'switch'>>>> = {
  status: { '--show-resources': 'switch', '-o': 'value' },
  history: { '-o': 'value' },
  'get metadata': { '--revision': 'value', '-o': 'value' },
  'get values': { '--revision': 'value', '-o': 'value' },
  'get manifest': { '--revision': 'value' },
  'get hooks': { '--revision': 'value' },
  'show chart': { '--repo': 'value', '--version': 'value', '--plain-http': 'switch' },
  upgrade: {
    '--install': 'switch',
    '--wait': 'switch',
    '--timeout': 'value',
    '--reset-then-reuse-values': 'switch',
    '--reset-values': 'switch',
    '--values': 'value',
    '--create-namespace': 'switch',
    '--repo': 'value',
    '--version': 'value',
    '--plain-http': 'switch',
  },
  rollback: { '--wait': 'switch', '--timeout': 'value' },
  uninstall: { '--wait': 'switch', '--timeout': 'value' },
  template: {
    '--dry-run': 'value',
    '--is-upgrade': 'switch',
    '--disable-openapi-validation': 'switch',
    '--values': 'value',
  },
  'repo add': { '--username': 'value', '--password-stdin': 'switch' },
  'registry login': {
    '--username': 'value',
    '--password-stdin': 'switch',
    '--plain-http': 'switch',
  },
  version: { '--template': 'value' },
}

const localCommands = ['show chart', 'repo add', 'registry login', 'version']

export class FakeHelm {
  readonly calls: HelmCall[] = []
  readonly events: FakeEvent[] = []
  /** What every command says that needs the cluster, when that is out of reach. */
  clusterError: string | undefined
  /** Called as each command begins. */
  onCall: ((call: HelmCall) => void) | undefined

  readonly #clock: FakeClock
  readonly #major: 3 | 4
  readonly #version: string
  readonly #namespaces: Set<string>
  readonly #sources: Map<string, FakeSource>
  readonly #releases = new Map<string, Release>()
  readonly #rollouts: Rollout[] = []
  readonly #setbacks: Setback[] = []
  readonly #failures: { command: string; stderr: string; exitCode: number | undefined }[] = []

  constructor(options: FakeHelmOptions) {
    this.#clock = options.clock
    this.#major = options.major ?? 4
    this.#version = options.version ?? (this.#major === 3 ? 'v3.21.4' : 'v4.2.4')
    this.#namespaces = new Set(options.namespaces ?? ['default'])
    this.#sources = new Map(Object.entries(options.sources ?? {}))
  }

  /** The next upgrade goes so. */
  plan(rollout: Rollout): void {
    this.#rollouts.push(rollout)
  }

  /** The next rollback, or uninstall, goes so. */
  planSetback(setback: Setback): void {
    this.#setbacks.push(setback)
  }

  /** The next call of a command fails at once and changes nothing. */
  failNext(command: string, stderr: string, exitCode: number | undefined = 1): void {
    this.#failures.push({ command, stderr, exitCode })
  }

  /** Adds a revision as another run would have left it, with its pods ready when it is deployed. */
  add(
    revision: Partial<Omit<FakeRevision, 'revision'>> = {},
    release = 'docs',
    namespace = 'default',
  ): FakeRevision {
    const { revisions } = this.#release(release, namespace)
    const added: FakeRevision = {
      revision: (revisions.at(-1)?.revision ?? 0) + 1,
      status: 'deployed',
      chart: { name: 'docs', version: '1.0.0' },
      values: null,
      updatedMs: this.#clock.wallMs(),
      ...revision,
    }
    if (added.status === 'deployed') {
      supersede(revisions)
      this.#release(release, namespace).live = this.#newLive(release, namespace, {
        readyAfterMs: 0,
      })
    }
    revisions.push(added)
    return added
  }

  revisions(release = 'docs', namespace = 'default'): readonly FakeRevision[] {
    return this.#releases.get(`${namespace}/${release}`)?.revisions ?? []
  }

  /** `1 superseded, 2 failed, 3 deployed`. */
  history(release = 'docs', namespace = 'default'): string {
    return this.revisions(release, namespace)
      .map(({ revision, status }) => `${revision} ${status}`)
      .join(', ')
  }

  /** The commands that were run, in order, without those that only look. */
  get changes(): string[] {
    return this.calls
      .filter(({ command }) => ['upgrade', 'rollback', 'uninstall'].includes(command))
      .map(({ args }) => args.join(' '))
  }

  readonly run: RunCommand = async (file, args, options) => {
    options.signal.throwIfAborted()
    const { command, positional, flags } = this.#parse(args)
    const { input, environment, directory, maxMs } = options
    const entries = fs.readdirSync(directory)
    const atMs = this.#clock.nowMs()
    const call = { command, args, file, input, environment, directory, entries, maxMs, atMs }
    this.calls.push(call)
    this.onCall?.(call)
    const planned = this.#failures.findIndex((failure) => failure.command === command)
    if (planned !== -1) {
      const [failure] = this.#failures.splice(planned, 1)
      return { exitCode: failure?.exitCode, stdout: '', stderr: failure?.stderr ?? '' }
    }
    try {
      if (this.clusterError !== undefined && !localCommands.includes(command)) {
        throw new HelmExit(this.clusterError)
      }
      const stdout = await this.#carryOut(command, positional, flags, options)
      return { exitCode: 0, stdout, stderr: '' }
    } catch (error) {
      if (!(error instanceof HelmExit)) throw error
      return { exitCode: 1, stdout: '', stderr: `Error: ${error.stderr}\n` }
    }
  }

  #parse(args: readonly string[]) {
    const [first = '', second = ''] = args
    const isPair = ['get', 'show', 'repo', 'registry'].includes(first)
    const command = isPair ? `${first} ${second}` : first
    const known = flagsOf[command]
    if (!known) throw new Error(`the imitation does not know helm ${command}`)
    const allowed: Readonly<Record<string, 'value' | 'switch'>> = {
      ...known,
      ...(localCommands.includes(command)
        ? {}
        : { '--namespace': 'value', '--kube-context': 'value' }),
    }
    const positional: string[] = []
    const flags = new Map<string, string[]>()
    const rest = args.slice(isPair ? 2 : 1)
    for (let argument = rest.shift(); argument !== undefined; argument = rest.shift()) {
      if (!argument.startsWith('-') || argument === '-') {
        positional.push(argument)
        continue
      }
      const [name = '', inline] = argument.split(/=(.*)/s)
      const kind = allowed[name]
      if (kind === undefined || (this.#major === 4 && name === '--show-resources')) {
        throw new Error(`helm ${command}: unknown flag: ${argument}`)
      }
      const value = kind === 'switch' ? '' : (inline ?? rest.shift())
      if (value === undefined) throw new Error(`helm ${command}: flag needs an argument: ${name}`)
      flags.set(name, [...(flags.get(name) ?? []), value])
    }
    return { command, positional, flags }
  }

  async #carryOut(
    command: string,
    positional: readonly string[],
    flags: ReadonlyMap<string, readonly string[]>,
    options: CommandOptions,
  ): Promise<string> {
    const [name = '', second = ''] = positional
    const flag = (key: string) => flags.get(key)?.at(-1)
    const namespace = flag('--namespace') ?? ''
    const needJson = () => {
      if (flag('-o') !== 'json') throw new Error(`helm ${command} without -o json`)
    }
    switch (command) {
      case 'version':
        return this.#version
      case 'repo add':
        return this.#addRepository(name, second, flag('--username'), options)
      case 'registry login':
        return this.#logIn(name, flag('--username'), options)
      case 'show chart':
        return this.#showChart(name, flags)
      case 'status':
        needJson()
        return toJson(this.#status(name, namespace, flags.has('--show-resources')))
      case 'history':
        needJson()
        return toJson(
          this.#existing(name, namespace).revisions.map((one) => ({
            revision: one.revision,
            updated: timestamp(one.updatedMs),
            status: one.status,
            chart: `${one.chart.name}-${one.chart.version}`,
            app_version: '',
            description: 'as it was',
          })),
        )
      case 'get metadata': {
        needJson()
        const one = this.#revision(name, namespace, flag('--revision'))
        return toJson({
          name,
          chart: one.chart.name,
          version: one.chart.version,
          appVersion: '',
          namespace,
          revision: one.revision,
          status: one.status,
          deployedAt: timestamp(one.updatedMs).replace(/\.\d+/, ''),
          ...(this.#major === 4 ? { applyMethod: 'ssa' } : {}),
        })
      }
      case 'get values':
        needJson()
        return toJson(this.#revision(name, namespace, flag('--revision')).values)
      case 'get manifest':
      case 'get hooks': {
        const { linkIn, values } = this.#revision(name, namespace, flag('--revision'))
        return command === `get ${linkIn}` ? secretWith(linkOf(values)) : '---\n'
      }
      case 'upgrade':
        return this.#upgrade(name, second, namespace, flags, options)
      case 'rollback':
        return this.#rollback(name, namespace, Number(second), flags, options)
      case 'uninstall':
        return this.#uninstall(name, namespace, flags, options)
      case 'template':
        return this.#template(second, namespace, flags, options)
      default:
        throw new Error(`the imitation does not know helm ${command}`)
    }
  }

  #release(name: string, namespace: string): Release {
    const key = `${namespace}/${name}`
    const release = this.#releases.get(key) ?? { revisions: [], live: undefined }
    this.#releases.set(key, release)
    return release
  }

  #existing(name: string, namespace: string): Release {
    const release = this.#releases.get(`${namespace}/${name}`)
    if (!release || release.revisions.length === 0) throw new HelmExit('release: not found')
    return release
  }

  #revision(name: string, namespace: string, wanted: string | undefined): FakeRevision {
    const { revisions } = this.#existing(name, namespace)
    const found = revisions.find(({ revision }) => String(revision) === wanted)
    if (!found) throw new HelmExit('release: not found')
    return found
  }

  #status(name: string, namespace: string, showResources: boolean): unknown {
    const { revisions, live } = this.#existing(name, namespace)
    const newest = revisions.at(-1)
    if (!newest) throw new HelmExit('release: not found')
    const shows = this.#major === 4 || showResources
    return {
      name,
      info: {
        first_deployed: timestamp(revisions[0]?.updatedMs ?? 0),
        last_deployed: timestamp(newest.updatedMs),
        ...(this.#major === 3 ? { deleted: '' } : {}),
        description: 'as it is',
        status: newest.status,
        ...(shows ? { resources: live ? this.#resources(name, live) : {} } : {}),
      },
      ...(newest.values ? { config: newest.values } : {}),
      manifest: '---\n',
      hooks: live?.hooks.map(({ kind, name: hook, phase }) => ({
        name: hook,
        kind,
        path: 'docs/templates/hook.yaml',
        events: ['pre-upgrade'],
        ...(phase === '' ? {} : { last_run: { started_at: timestamp(newest.updatedMs), phase } }),
      })),
      version: newest.revision,
      namespace,
    }
  }

  /** A Deployment that replaces its pods one by one, with its pods. */
  #resources(name: string, live: Live): unknown {
    const { replicas, generation, formerPods } = live
    const passedMs = this.#clock.nowMs() - live.beganMs
    const takesMs = live.readyMs - live.beganMs
    const step = takesMs <= 0 ? 1 : Math.min(1, passedMs / takesMs)
    const newReady = Math.floor(step * replicas)
    const former = newReady >= replicas ? 0 : Math.max(0, formerPods - newReady)
    const updated = formerPods > 0 ? Math.min(replicas, newReady + 1) : replicas
    const ready = Math.min(newReady, updated) + former
    const pods = [
      ...Array.from({ length: updated }, (_, index) => {
        const isReady = index < newReady
        return pod(name, `new${generation}`, index, isReady ? undefined : live.trouble)
      }),
      ...Array.from({ length: former }, (_, index) =>
        pod(name, `old${generation}`, index, undefined),
      ),
    ]
    return {
      'v1/Deployment': [
        {
          apiVersion: 'apps/v1',
          kind: 'Deployment',
          metadata: { name, generation },
          spec: { replicas, strategy: { type: 'RollingUpdate' } },
          status: {
            observedGeneration: generation,
            replicas: updated + former,
            updatedReplicas: updated,
            ...(ready > 0 ? { readyReplicas: ready, availableReplicas: ready } : {}),
            ...(updated > newReady ? { unavailableReplicas: updated - newReady } : {}),
          },
        },
      ],
      'v1/Pod(related)': [{ apiVersion: 'v1', kind: 'PodList', items: pods }],
      ...live.others,
    }
  }

  #newLive(release: string, namespace: string, rollout: Rollout): Live {
    const before = this.#release(release, namespace).live
    const nowMs = this.#clock.nowMs()
    const replicas = rollout.replicas ?? 2
    // Pods that never became ready are replaced; those before them are what still runs.
    const wasReady = before !== undefined && before.readyMs <= nowMs
    const former = wasReady ? before.replicas : (before?.formerPods ?? 0)
    return {
      replicas,
      beganMs: nowMs,
      readyMs: nowMs + (rollout.readyAfterMs ?? 2_000),
      trouble: rollout.trouble ?? troubles.unschedulable,
      generation: (before?.generation ?? 0) + 1,
      formerPods: rollout.formerPodsStay === false ? 0 : former,
      hooks: rollout.hooks ?? [],
      others: rollout.others ?? {},
    }
  }

  async #upgrade(
    name: string,
    chart: string,
    namespace: string,
    flags: ReadonlyMap<string, readonly string[]>,
    options: CommandOptions,
  ): Promise<string> {
    const rollout = this.#rollouts.shift() ?? {}
    for (const needed of ['--install', '--wait', '--timeout']) {
      if (!flags.has(needed)) throw new Error(`helm upgrade without ${needed}`)
    }
    const keeps = flags.has('--reset-then-reuse-values')
    if (keeps === flags.has('--reset-values')) throw new Error('helm upgrade: keep, or reset?')
    rollout.meanwhile?.()
    const { revisions } = this.#release(name, namespace)
    const isInstall = revisions.length === 0
    const prefix = isInstall ? '' : 'UPGRADE FAILED: '
    if (revisions.at(-1)?.status.startsWith('pending-')) {
      throw new HelmExit(
        'UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress',
      )
    }
    const identity = this.#chart(chart, flags)
    const input = rollout.dropsInput ? '' : (options.input ?? '')
    const given = readValues(flags.get('--values') ?? [], input)
    if (isInstall && !this.#namespaces.has(namespace)) {
      if (!flags.has('--create-namespace')) {
        throw new HelmExit(`create: failed to create: namespaces "${namespace}" not found`)
      }
      this.#namespaces.add(namespace)
    }
    if (rollout.recordsNothing) {
      await this.#take(rollout.errorAfterMs ?? 0, options)
      throw new HelmExit(`${prefix}${rollout.error ?? 'it does not say why'}`)
    }

    const deployed = revisions.find(({ status }) => status === 'deployed')
    const values = keeps ? coalesce(given, deployed?.values ?? {}) : given
    const added: FakeRevision = {
      revision: (revisions.at(-1)?.revision ?? 0) + 1,
      status: isInstall ? 'pending-install' : 'pending-upgrade',
      chart: identity,
      values: Object.keys(values).length === 0 ? null : values,
      updatedMs: this.#clock.wallMs(),
      linkIn: rollout.linkIn ?? 'manifest',
    }
    const live = this.#newLive(name, namespace, rollout)
    revisions.push(added)
    this.#release(name, namespace).live = live
    try {
      const timeoutMs = durationMs(flags.get('--timeout')?.[0] ?? '')
      const contentMs = rollout.contentAfterMs ?? live.readyMs - live.beganMs
      const errorMs = rollout.error === undefined ? Infinity : (rollout.errorAfterMs ?? 0)
      const endMs = rollout.hangs ? Infinity : Math.min(timeoutMs, contentMs, errorMs)
      await this.#take(endMs, options)
      if (endMs === errorMs) throw new HelmExit(`${prefix}${rollout.error ?? ''}`)
      if (endMs < contentMs) throw new HelmExit(`${prefix}${this.#notReady(name, namespace, live)}`)
    } catch (error) {
      if (rollout.endsAfterMs !== undefined && options.signal.aborted) {
        await this.#clock.sleep(rollout.endsAfterMs, new AbortController().signal)
      }
      if (rollout.isKilled !== true) added.status = 'failed' // so does a signal leave it
      throw error
    }
    supersede(revisions)
    added.status = 'deployed'
    // A chart may print its values in its notes.
    return `Release "${name}" has been upgraded. Happy Helming!\nNOTES:\n${JSON.stringify(values)}\n`
  }

  #notReady(name: string, namespace: string, { replicas, formerPods }: Live): string {
    const updating =
      replicas === 1 ? `Pending termination: ${formerPods}` : `Updated: 1/${replicas}`
    const detail = formerPods > 0 ? updating : `Available: 0/${replicas}`
    return this.#major === 3
      ? 'context deadline exceeded'
      : `resource Deployment/${namespace}/${name} not ready. status: InProgress, message: ${detail}\ncontext deadline exceeded`
  }

  async #rollback(
    name: string,
    namespace: string,
    wanted: number,
    flags: ReadonlyMap<string, readonly string[]>,
    options: CommandOptions,
  ): Promise<string> {
    const { revisions } = this.#existing(name, namespace)
    const target = revisions.find(({ revision }) => revision === wanted)
    if (!target) throw new HelmExit(`release has no ${wanted} version`)
    const { afterMs = 0, error } = this.#setbacks.shift() ?? {}
    const added: FakeRevision = {
      ...target,
      revision: (revisions.at(-1)?.revision ?? 0) + 1,
      status: 'pending-rollback', // a signal leaves it so, and with it the release locked
      updatedMs: this.#clock.wallMs(),
    }
    revisions.push(added)
    this.#release(name, namespace).live = this.#newLive(name, namespace, { readyAfterMs: afterMs })
    if (flags.has('--wait')) await this.#take(afterMs, options)
    if (error !== undefined) {
      added.status = 'failed'
      throw new HelmExit(`release ${name} failed: ${error}`)
    }
    supersede(revisions)
    added.status = 'deployed'
    return 'Rollback was a success! Happy Helming!\n'
  }

  async #uninstall(
    name: string,
    namespace: string,
    flags: ReadonlyMap<string, readonly string[]>,
    options: CommandOptions,
  ): Promise<string> {
    const { revisions } = this.#existing(name, namespace)
    const { afterMs = 0, error } = this.#setbacks.shift() ?? {}
    for (const one of revisions) one.status = 'uninstalling'
    if (flags.has('--wait')) await this.#take(afterMs, options)
    if (error !== undefined) {
      throw new HelmExit(`uninstallation completed with 1 error(s): ${error}`)
    }
    this.#releases.delete(`${namespace}/${name}`)
    return `release "${name}" uninstalled\n`
  }

  #template(
    chart: string,
    namespace: string,
    flags: ReadonlyMap<string, readonly string[]>,
    { input = '' }: CommandOptions,
  ): string {
    this.#chart(chart, new Map())
    if (!flags.has('--dry-run')) return this.#renderAlone(chart)
    if (flags.get('--dry-run')?.[0] !== 'server') throw new Error('lookup needs the server')
    const template = fs
      .readdirSync(path.join(chart, 'templates'))
      .map((file) => fs.readFileSync(path.join(chart, 'templates', file), 'utf8'))
      .join('')
    if (template.includes('lookup "v1" "Namespace" "" .Values.namespace')) {
      const asked = JSON.parse(input) as { namespace: string }
      const exists = this.#namespaces.has(asked.namespace)
      return `---\n# Source: lookup/templates/lookup.yaml\ndata:\n  exists: "${exists}"\n`
    }
    const { names } = readValues(flags.get('--values') ?? [], input) as {
      names: readonly string[]
    }
    if (!this.#namespaces.has(namespace)) throw new HelmExit(`namespaces "${namespace}" not found`)
    const head =
      '---\n# Source: lookup/templates/lookup.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: static-export\ndata:\n'
    if (template.includes('lookup "v1" "Pod" .Release.Namespace')) {
      const lives = [...this.#releases.values()].flatMap(({ live }) => live ?? [])
      const lines = lives
        .flatMap(({ hooks }) => hooks.filter(({ name }) => names.includes(name)))
        .flatMap(({ pods = [] }) => pods)
        .map(({ name, status }) => toJson({ metadata: { name }, status }))
        .map((pod, index) => `  found-${index}: ${JSON.stringify(pod)}`)
      return `${head}${lines.join('\n')}\n`
    }
    if (!template.includes('lookup "v1" "Event" .Release.Namespace')) {
      throw new Error(`the imitation cannot render ${template}`)
    }
    const lines = this.events.flatMap(({ type, kind, name, reason, message, last }, index) => {
      const concerns = names.some((one) => name === one || name.startsWith(`${one}-`))
      if (type !== 'Warning' || !concerns) return []
      const fields = { kind, last, message, object: name, reason }
      return [`  found-${index}: ${JSON.stringify(toJson(fields))}`]
    })
    return `${head}${lines.join('\n')}\n`
  }

  #renderAlone(chart: string): string {
    const missing = dependenciesOf(chart).filter(
      (dependency) => !fs.existsSync(path.join(chart, 'charts', dependency)),
    )
    if (missing.length === 0) return '---\n'
    throw new HelmExit(
      `${this.#major === 3 ? 'An' : 'an'} error occurred while checking for chart dependencies. You may need to run \`helm dependency build\` to fetch missing dependencies: found in Chart.yaml, but missing in charts/ directory: ${missing.join(', ')}`,
    )
  }

  #addRepository(
    name: string,
    url: string,
    username: string | undefined,
    { input }: CommandOptions,
  ): string {
    const source = this.#sources.get(url)
    if (!source || source.username !== username || source.password !== input) {
      const why = source ? '401 Unauthorized' : '404 Not Found'
      throw new HelmExit(
        `looks like "${url}" is not a valid chart repository or cannot be reached: failed to fetch ${url}/index.yaml : ${why}`,
      )
    }
    this.#sources.set(name, { name: source.name, versions: source.versions })
    return `"${name}" has been added to your repositories\n`
  }

  #logIn(host: string, username: string | undefined, { input }: CommandOptions): string {
    const found = [...this.#sources].find(([address]) => address.startsWith(`oci://${host}/`))
    if (!found || found[1].username !== username || found[1].password !== input) {
      throw new HelmExit(
        `authenticating to "${host}": GET "https://${host}/v2/": response status code 401: unauthorized`,
      )
    }
    this.#sources.set(found[0], { name: found[1].name, versions: found[1].versions })
    return 'Login Succeeded\n'
  }

  #showChart(reference: string, flags: ReadonlyMap<string, readonly string[]>): string {
    const { name, version } = this.#chart(reference, flags)
    const progress =
      reference.startsWith('oci://') && this.#major === 4
        ? `Pulled: ${reference.slice('oci://'.length)}:${version}\nDigest: sha256:${'0'.repeat(64)}\n`
        : ''
    const dependencies = path.isAbsolute(reference) ? dependenciesOf(reference) : []
    const shown = dependencies.map((one) => `- name: ${one}\n  version: 1.x.x\n`)
    const list = shown.length === 0 ? '' : `dependencies:\n${shown.join('')}`
    return `${progress}apiVersion: v2\n${list}name: ${name}\ntype: application\nversion: ${version}\n`
  }

  /** The chart that a reference means, as `helm show chart` and `helm upgrade` find it. */
  #chart(
    reference: string,
    flags: ReadonlyMap<string, readonly string[]>,
  ): { name: string; version: string } {
    const repository = flags.get('--repo')?.[0]
    const wanted = flags.get('--version')?.[0]
    if (path.isAbsolute(reference)) return readChart(reference)
    if (reference.startsWith('oci://')) {
      const source = this.#sources.get(reference)
      if (source?.username !== undefined) {
        throw new HelmExit(
          `failed to perform "FetchReference" on source: GET "https://${reference.slice(6)}/manifests/${wanted ?? ''}": basic credential not found`,
        )
      }
      const version = source && newest(source.versions, wanted)
      if (source && version !== undefined) return { name: source.name, version }
      throw new HelmExit(
        `failed to perform "FetchReference" on source: ${reference.slice(6)}:${wanted ?? ''}: not found`,
      )
    }
    const [first = '', ...rest] = reference.split('/')
    const name = repository === undefined ? rest.join('/') : reference
    const source = this.#sources.get(repository ?? first)
    if (!source) {
      throw new HelmExit(
        repository === undefined
          ? `repo ${first} not found`
          : `looks like "${repository}" is not a valid chart repository or cannot be reached: Get "${repository}/index.yaml": dial tcp: lookup ${new URL(repository).hostname} on 10.0.0.53:53: no such host`,
      )
    }
    if (source.username !== undefined) {
      throw new HelmExit(
        `looks like "${repository ?? ''}" is not a valid chart repository or cannot be reached: failed to fetch ${repository ?? ''}/index.yaml : 401 Unauthorized`,
      )
    }
    const version = source.name === name ? newest(source.versions, wanted) : undefined
    if (version !== undefined) return { name, version }
    throw new HelmExit(
      repository === undefined
        ? `chart "${name}" matching ${wanted ?? ''} not found in ${first} index. (try 'helm repo update'): no chart version found for ${name}-${wanted ?? ''}`
        : `chart "${name}" version "${wanted ?? ''}" not found in ${repository} repository`,
    )
  }

  /** Lets virtual time pass; ends with the reason of the signal, or when it takes too long. */
  async #take(durationMs: number, { signal, maxMs }: CommandOptions): Promise<void> {
    if (durationMs <= 0) return
    await this.#clock.sleep(Math.min(durationMs, maxMs), signal)
    if (durationMs > maxMs) {
      throw new CommandFault('too-slow', `no answer within ${Math.round(maxMs / 1000)} s`)
    }
  }
}

function dependenciesOf(chart: string): string[] {
  const about = load(fs.readFileSync(path.join(chart, 'Chart.yaml'), 'utf8')) as {
    readonly dependencies?: readonly { readonly name: string }[]
  }
  return (about.dependencies ?? []).map(({ name }) => name)
}

/** The link, wherever the values hold it. */
function linkOf(values: unknown): string {
  if (typeof values !== 'object' || values === null) return ''
  const { bundleUrl } = values as Values
  if (typeof bundleUrl === 'string') return bundleUrl
  return Object.values(values).map(linkOf).join('')
}

function secretWith(link: string): string {
  const data = Buffer.from(link).toString('base64')
  return `---\n# Source: docs/templates/secret.yaml\nkind: Secret\ndata:\n  url: ${data}\n`
}

/** What pods say when they do not come up, as a kubelet and the scheduler write it. */
export const troubles = {
  unschedulable: {
    phase: 'Pending',
    conditions: [
      {
        type: 'PodScheduled',
        status: 'False',
        reason: 'Unschedulable',
        message: "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
      },
    ],
  },
  imagePull: {
    phase: 'Pending',
    conditions: [{ type: 'Ready', status: 'False', reason: 'ContainersNotReady' }],
    containerStatuses: [
      {
        name: 'web',
        ready: false,
        restartCount: 0,
        state: {
          waiting: {
            reason: 'ImagePullBackOff',
            message: 'Back-off pulling image "nginx:1.29-alpin"',
          },
        },
        lastState: {},
      },
    ],
  },
  /** The init container that fetches the link is refused. */
  fetchRefused: {
    phase: 'Pending',
    conditions: [{ type: 'Ready', status: 'False', reason: 'ContainersNotReady' }],
    initContainerStatuses: [
      {
        name: 'fetch',
        ready: false,
        restartCount: 4,
        state: {
          waiting: {
            reason: 'CrashLoopBackOff',
            message: 'back-off 1m20s restarting failed container=fetch',
          },
        },
        lastState: {
          terminated: {
            exitCode: 22,
            reason: 'Error',
            message: 'curl: (22) The requested URL returned error: 403\n',
          },
        },
      },
    ],
    containerStatuses: [
      {
        name: 'web',
        ready: false,
        restartCount: 0,
        state: { waiting: { reason: 'PodInitializing' } },
        lastState: {},
      },
    ],
  },
} as const satisfies Record<string, PodTrouble>

const readyPod: PodTrouble = {
  phase: 'Running',
  conditions: [
    { type: 'Initialized', status: 'True' },
    { type: 'Ready', status: 'True' },
    { type: 'PodScheduled', status: 'True' },
  ],
  containerStatuses: [
    { name: 'web', ready: true, restartCount: 0, state: { running: {} }, lastState: {} },
  ],
}

function pod(workload: string, hash: string, index: number, trouble: PodTrouble | undefined) {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `${workload}-${hash}-${index}`,
      ownerReferences: [{ kind: 'ReplicaSet', name: `${workload}-${hash}`, controller: true }],
    },
    status: trouble ?? readyPod,
  }
}

function supersede(revisions: readonly FakeRevision[]): void {
  for (const one of revisions) if (one.status === 'deployed') one.status = 'superseded'
}

/** As Go writes JSON. */
function toJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[<>&]/g,
    (character) => `\\u00${character.charCodeAt(0).toString(16)}`,
  )
}

function timestamp(wallMs: number): string {
  return new Date(wallMs).toISOString().replace('Z', '929155Z')
}

function durationMs(text: string): number {
  const match = /^(?:(\d+)m)?(\d+)s$/.exec(text)
  if (!match) {
    throw new Error(`invalid argument "${text}" for "--timeout" flag: time: invalid duration`)
  }
  const [, minutes = '0', seconds = '0'] = match
  return (Number(minutes) * 60 + Number(seconds)) * 1000
}

function readChart(directory: string): { name: string; version: string } {
  const file = path.join(directory, 'Chart.yaml')
  if (!fs.existsSync(directory)) throw new HelmExit(`path "${directory}" not found`)
  if (!fs.existsSync(file)) throw new HelmExit('Chart.yaml file is missing')
  return load(fs.readFileSync(file, 'utf8')) as { name: string; version: string }
}

/** The newest version that is asked for; of ranges only `^1` and `^1.2`. The list begins with the oldest. */
function newest(versions: readonly string[], wanted: string | undefined): string | undefined {
  if (wanted === undefined) return versions.at(-1)
  if (!wanted.startsWith('^')) return versions.find((version) => version === wanted)
  const major = wanted.slice(1).split('.')[0] ?? ''
  return versions.findLast((version) => version.startsWith(`${major}.`))
}

/** Files in the order of the flags, `-` for standard input; each flag is a list in CSV, as Helm reads it. */
function readValues(flags: readonly string[], input: string): Values {
  const files = flags.flatMap(splitCsv)
  if (files.filter((file) => file === '-').length > 1) throw new Error('two readers of the input')
  return files.reduce<Values>((values, file) => {
    if (file !== '-' && !fs.existsSync(file)) {
      throw new HelmExit(`open ${file}: no such file or directory`)
    }
    const text = file === '-' ? input : fs.readFileSync(file, 'utf8')
    return merge(values, (load(text, { schema: CORE_SCHEMA }) ?? {}) as Values)
  }, {})
}

function splitCsv(list: string): string[] {
  const fields = [...list.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^",]*))/g)]
  return fields.map(([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain ?? '')
}

/** What comes later wins, mappings are merged. */
function merge(first: Values, second: Values): Values {
  const merged: Record<string, unknown> = { ...first }
  for (const [key, value] of Object.entries(second)) {
    const former = merged[key]
    merged[key] = isValues(former) && isValues(value) ? merge(former, value) : value
  }
  return merged
}

/** What is given over what was there; null takes away what was there, and stays where nothing was. */
function coalesce(given: Values, former: Values): Values {
  const merged: Record<string, unknown> = { ...given }
  for (const [key, value] of Object.entries(former)) {
    const own = merged[key]
    if (own === null) Reflect.deleteProperty(merged, key)
    else if (!Object.hasOwn(merged, key)) merged[key] = value
    else if (isValues(own) && isValues(value)) merged[key] = coalesce(own, value)
  }
  return merged
}

function isValues(value: unknown): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
