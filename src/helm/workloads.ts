/** Workloads: whether they are ready, in our own judgement, and what they, their pods and others wait for. */
import type { Hook, ReleaseStatus } from './helm.ts'
import { clean } from '../text.ts'
import { type JsonRecord, isRecord, recordOf, recordsIn, textOf } from './json.ts'

/** A workload whose pods Helm waits for. */
export interface Workload {
  readonly kind: 'Deployment' | 'StatefulSet' | 'DaemonSet'
  readonly name: string
  /** Pods that there should be. */
  readonly desired: number
  /** Of those, as the newest revision wants them; what must not be updated counts as updated. */
  readonly updated: number
  readonly ready: number
  /** Pods of the former revision that still run: while they do, `ready` says nothing of the new ones. */
  readonly former: number
  /** A Deployment that somebody has paused: nothing of it changes. */
  readonly isPaused: boolean
  readonly isReady: boolean
  readonly pods: readonly Pod[]
}

/** Takes secrets out of a text of the cluster. */
export type Redact = (text: string) => string

export interface Pod {
  readonly name: string
  readonly isReady: boolean
  /** Why it is not ready, in the words of the cluster, without secrets. */
  readonly reasons: readonly string[]
}

/**
 * The workloads of a release with their pods, from the live objects of `helm status`. Helm 3 calls a Deployment
 * of one replica deployed while nothing runs, hence a judgement of our own (helm.md, rule 3): the controller
 * has seen the newest generation, and updated, ready and available are what is desired.
 */
export function workloadsOf(
  resources: Readonly<Record<string, unknown>>,
  redact: Redact,
): readonly Workload[] {
  const all = objectsIn(resources)
  const pods = all.flatMap(({ kind, object }) => (kind === 'Pod' ? [object] : []))
  return all.flatMap(({ kind, object }) => {
    if (kind !== 'Deployment' && kind !== 'StatefulSet' && kind !== 'DaemonSet') return []
    const name = textOf(at(object, 'metadata', 'name'))
    const { desired, updated, ready, available, former } = numbersOf(kind, object)
    const generation = number(at(object, 'metadata', 'generation'))
    const isCurrent = number(at(object, 'status', 'observedGeneration')) >= generation
    const own = pods
      .filter((pod) => isOwnedBy(pod, kind, name))
      .map((pod) => withLeftover(toPod(pod, redact), pod, kind, object))
    return [
      {
        kind,
        name,
        desired,
        updated,
        ready,
        former,
        isPaused: at(object, 'spec', 'paused') === true,
        isReady:
          isCurrent &&
          updated >= desired &&
          former === 0 &&
          ready === desired &&
          available === desired,
        pods: own,
      },
    ]
  })
}

/** What Helm waits for beside the pods of workloads. */
export interface Pending {
  readonly kind: string
  readonly name: string
  readonly state: string
}

/** Volumes that are not bound and load balancers without an address: Helm waits for them, without a word. */
export function pendingIn(resources: Readonly<Record<string, unknown>>): readonly Pending[] {
  return objectsIn(resources).flatMap(({ kind, object }) => {
    const name = textOf(at(object, 'metadata', 'name'))
    if (kind === 'PersistentVolumeClaim') {
      const phase = at(object, 'status', 'phase')
      return phase === 'Bound' ? [] : [{ kind, name, state: 'not bound to a volume' }]
    }
    if (kind !== 'Service' || at(object, 'spec', 'type') !== 'LoadBalancer') return []
    const addresses = [
      ...recordsIn(at(object, 'status', 'loadBalancer', 'ingress')),
      ...textsIn(at(object, 'spec', 'externalIPs')),
    ]
    return addresses.length > 0 ? [] : [{ kind, name, state: 'without an address' }]
  })
}

/** Hooks that have not come to their end, or to a bad one. */
export function unfinishedHooks(hooks: readonly Hook[]): readonly Hook[] {
  return hooks.filter(({ phase }) => phase === 'Running' || phase === 'Failed')
}

function numbersOf(kind: Workload['kind'], object: JsonRecord) {
  const status = (name: string) => number(at(object, 'status', name))
  const strategy = textOf(at(object, 'spec', 'updateStrategy', 'type'))
  if (kind === 'DaemonSet') {
    const desired = status('desiredNumberScheduled')
    return {
      desired,
      // With OnDelete the pods change when somebody deletes them: nothing to wait for.
      updated: strategy === 'OnDelete' ? desired : status('updatedNumberScheduled'),
      ready: status('numberReady'),
      available: status('numberAvailable'),
      former: 0,
    }
  }
  const replicas = at(object, 'spec', 'replicas')
  const desired = typeof replicas === 'number' ? replicas : 1
  // A partition keeps the pods below it as they are.
  const kept = number(at(object, 'spec', 'updateStrategy', 'rollingUpdate', 'partition'))
  return {
    desired,
    updated: strategy === 'OnDelete' ? desired : status('updatedReplicas') + kept,
    ready: status('readyReplicas'),
    available: status('availableReplicas'),
    // A StatefulSet and a DaemonSet replace their pods one for one.
    former: kind === 'Deployment' ? Math.max(0, status('replicas') - status('updatedReplicas')) : 0,
  }
}

function isOwnedBy(pod: JsonRecord, kind: Workload['kind'], name: string): boolean {
  return recordsIn(at(pod, 'metadata', 'ownerReferences')).some((owner) => {
    const ownerName = textOf(owner['name'])
    if (kind !== 'Deployment') return owner['kind'] === kind && ownerName === name
    // A ReplicaSet is named after its Deployment and the hash of its pods.
    return owner['kind'] === 'ReplicaSet' && ownerName.replace(/-[a-z0-9]+$/, '') === name
  })
}

/**
 * A StatefulSet replaces its pods in order, and does not go past one that never became ready, also when its template
 * is right by now (Kubernetes, StatefulSets, "Forced rollback").
 */
function withLeftover(pod: Pod, raw: JsonRecord, kind: Workload['kind'], owner: JsonRecord): Pod {
  const wanted = textOf(at(owner, 'status', 'updateRevision'))
  const has = textOf(at(raw, 'metadata', 'labels', 'controller-revision-hash'))
  if (kind !== 'StatefulSet' || pod.isReady || has === '' || has === wanted) return pod
  const leftover = `of an older revision, which Kubernetes does not replace by itself: if it stays, delete the pod`
  return { ...pod, reasons: [leftover, ...pod.reasons] }
}

/** A pod as the cluster has it, or as much of it as its name and its status. */
export function toPod(pod: JsonRecord, redact: Redact): Pod {
  const conditions = recordsIn(at(pod, 'status', 'conditions'))
  const isReady = conditions.some(({ type, status }) => type === 'Ready' && status === 'True')
  const phase = at(pod, 'status', 'phase')
  return {
    name: textOf(at(pod, 'metadata', 'name')),
    isReady,
    // That of a Job is not ready when it has done its work.
    reasons: isReady || phase === 'Succeeded' ? [] : reasonsOf(pod, conditions).map(redact),
  }
}

/** Unschedulable, and what each container that does not run waits for or ended with; init containers too. */
function reasonsOf(pod: JsonRecord, conditions: readonly JsonRecord[]): string[] {
  const unscheduled = conditions
    .filter(({ type, status }) => type === 'PodScheduled' && status === 'False')
    .map(({ reason, message }) => joined(reason, message))
  const failed = joined(at(pod, 'status', 'reason'), at(pod, 'status', 'message'))
  const containers = [
    ...recordsIn(at(pod, 'status', 'initContainerStatuses')),
    ...recordsIn(at(pod, 'status', 'containerStatuses')),
  ].flatMap((container) => {
    if (container['ready'] === true) return []
    const name = textOf(container['name'])
    const waiting = joinedState(at(container, 'state', 'waiting'))
    const terminated = endedWell(at(container, 'state', 'terminated'))
      ? ''
      : joinedState(at(container, 'state', 'terminated'))
    const before = joinedState(at(container, 'lastState', 'terminated'))
    return [
      ...(waiting === '' ? [] : [`${name}: ${waiting}`]),
      ...(terminated === '' ? [] : [`${name} ended: ${terminated}`]),
      ...(before === '' ? [] : [`${name} ended before: ${before}`]),
    ]
  })
  const reasons = [...unscheduled, ...(failed === '' ? [] : [failed]), ...containers]
  // A probe that fails leaves no other trace in the pod.
  return reasons.length > 0
    ? reasons
    : conditions
        .filter(({ type, status }) => type === 'Ready' && status === 'False')
        .map(({ reason, message }) => joined(reason, message))
        .filter((reason) => reason !== '')
}

/** As an init container does; a web server that ends well and again has a reason all the same. */
function endedWell(state: unknown): boolean {
  return at(state, 'reason') === 'Completed'
}

function joinedState(state: unknown): string {
  if (!isRecord(state)) return ''
  const { reason, message, exitCode } = state
  const code = typeof exitCode === 'number' ? `exit code ${exitCode}` : undefined
  return joined(reason, code, message)
}

function joined(...parts: readonly unknown[]): string {
  return parts.filter((part) => typeof part === 'string' && part !== '').join(', ')
}

/** What Helm is waiting for, in a few words for a line of the log. */
export function describeProgress(
  { resources, hooks }: Pick<ReleaseStatus, 'resources' | 'hooks'>,
  redact: Redact,
): string {
  const running = hooks.filter(({ phase }) => phase === 'Running')
  // Nothing else of the revision is there before its first hooks have ended.
  if (running.length > 0) {
    return running.map((hook) => `${nameOfHook(hook)} is running`).join(' · ')
  }
  const workloads = workloadsOf(resources, redact)
  const pending = pendingIn(resources).map((one) => `${nameOf(one)} ${one.state}`)
  const isOnlyPending = workloads.length === 0 && pending.length > 0
  return [...(isOnlyPending ? [] : [describeWorkloads(workloads)]), ...pending].join(' · ')
}

/** The workloads in a few words for a line of the log. */
export function describeWorkloads(workloads: readonly Workload[]): string {
  const waiting = workloads.filter(({ isReady }) => !isReady)
  if (workloads.length === 0) return 'no workload to wait for'
  if (waiting.length === 0) {
    return workloads.map((workload) => `${nameOf(workload)} ${countOf(workload)}`).join(' · ')
  }
  return waiting
    .map((workload) => {
      const reason = workload.pods.flatMap(({ reasons }) => reasons)[0]
      const why = reason === undefined ? '' : ` (${clean(reason, 160)})`
      return `${nameOf(workload)} ${countOf(workload)}${why}`
    })
    .join(' · ')
}

/** What keeps workloads from being ready: a line for each, followed by one for each reason of its pods. */
export function reasonsOfWorkloads(workloads: readonly Workload[]): readonly string[] {
  return workloads
    .filter(({ isReady }) => !isReady)
    .flatMap((workload) => [
      `${nameOf(workload)}: ${countOf(workload)}`,
      ...linesOfPods(workload.pods),
    ])
}

/** What keeps hooks from their end: a line for each, and one for each reason of their pods. */
export function reasonsOfHooks(hooks: readonly Hook[], pods: readonly Pod[]): readonly string[] {
  return [
    ...hooks.map((hook) => `${nameOfHook(hook)}: ${clean(hook.phase.toLowerCase(), 40)}`),
    ...linesOfPods(pods),
  ]
}

/** What keeps others from being ready, a line for each. */
export function reasonsOfPending(pending: readonly Pending[]): readonly string[] {
  return pending.map((one) => `${nameOf(one)}: ${one.state}`)
}

/** A line for each reason of the pods that are not ready, and the number of those that are too many. */
function linesOfPods(pods: readonly Pod[]): readonly string[] {
  const reasons = pods.flatMap(({ name, reasons }) =>
    reasons.map((reason) => `pod ${clean(name, 80)}: ${clean(reason, 300)}`),
  )
  const more = reasons.length - maxReasons
  return [...reasons.slice(0, maxReasons), ...(more > 0 ? [`and ${more} more`] : [])]
}

const maxReasons = 5

function nameOfHook(hook: Hook): string {
  return `hook ${nameOf({ kind: clean(hook.kind, 40), name: hook.name })}`
}

function nameOf({ kind, name }: Pick<Pending, 'kind' | 'name'>) {
  return `${kind} ${clean(name, 80)}`
}

/** While pods of the former revision are ready, it is the update that is waited for. */
function countOf({ ready, updated, desired, former, isPaused }: Workload): string {
  const paused = isPaused ? ', paused (spec.paused)' : ''
  if (updated < desired) return `${updated} of ${desired} updated${paused}`
  if (former > 0) return `${former} of the former pods not replaced yet`
  return `${ready} of ${desired} ready`
}

/** The live objects of `helm status`, each with its kind, which alone the key tells for certain. */
function objectsIn(resources: Readonly<Record<string, unknown>>) {
  return Object.entries(resources).flatMap(([key, objects]) => {
    const kind = /([A-Za-z]+)(?:\(related\))?$/.exec(key)?.[1] ?? ''
    return flatten(objects).map((object) => ({ kind, object }))
  })
}

/** Objects, also those inside lists. */
function flatten(objects: unknown): JsonRecord[] {
  return recordsIn(objects).flatMap((object) =>
    Array.isArray(object['items']) ? recordsIn(object['items']) : [object],
  )
}

function textsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []
}

function at(object: unknown, ...names: readonly string[]): unknown {
  let value: unknown = object
  for (const name of names) value = recordOf(value)[name]
  return value
}

function number(value: unknown): number {
  return typeof value === 'number' ? value : 0
}
