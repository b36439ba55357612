/** Why a deployment failed, read from the cluster before anything is rolled back, by Helm and with its access. */
import type { Log } from '../log.ts'
import { HelmError, type Within } from './helm.ts'
import type { Redactor } from './redactor.ts'
import { type JsonRecord, textOf } from './json.ts'
import { type LookupDependencies, lookUp } from './lookup.ts'
import {
  type Pod,
  pendingIn,
  reasonsOfHooks,
  reasonsOfPending,
  reasonsOfWorkloads,
  toPod,
  unfinishedHooks,
  workloadsOf,
} from './workloads.ts'

export interface ReasonsDependencies extends LookupDependencies {
  readonly redactor: Redactor
  readonly log: Log
}

const maxEvents = 5
/** How far the clock of the cluster may be behind ours. */
const skewMs = 60_000
const maxLines = 20

/**
 * What hooks that failed, unready workloads, their pods and what else Helm waited for say, and the last warnings of
 * the cluster about them: one reason a line, without secrets. What cannot be read is left out, since it must not hide
 * the failure itself.
 *
 * @param sinceWallMs warnings from before are of another attempt; in epoch milliseconds
 */
export async function readReasons(
  sinceWallMs: number,
  dependencies: ReasonsDependencies,
  within: Within,
): Promise<readonly string[]> {
  const { helm, redactor, log } = dependencies
  try {
    const { resources = {}, hooks: allHooks = [] } = (await helm.status(within)) ?? {}
    const hooks = unfinishedHooks(allHooks)
    const unready = workloadsOf(resources, redactor.redact).filter(({ isReady }) => !isReady)
    const pending = pendingIn(resources)
    const names = [...hooks, ...unready, ...pending].map(({ name }) => name)
    if (names.length === 0) return []
    const hookPods = hooks.length === 0 ? [] : await readHookPods(hooks, dependencies, within)
    const pods = [...hookPods, ...unready.flatMap((workload) => workload.pods)]
    return [
      ...reasonsOfHooks(hooks, hookPods),
      ...reasonsOfWorkloads(unready),
      ...reasonsOfPending(pending),
      ...(await readEvents({ names, pods, sinceWallMs }, dependencies, within)),
    ].slice(0, maxLines)
  } catch (error) {
    log.info(`The reasons could not be read from the cluster: ${redactor.ofError(error)}`)
    return []
  }
}

/** A hook is a pod, or the pods of a Job, which the cluster labels. */
const hookPodsTemplate = `{{- range $index, $pod := (lookup "v1" "Pod" .Release.Namespace "").items }}
{{- $job := index ($pod.metadata.labels | default dict) "job-name" }}
{{- if or (has $pod.metadata.name $.Values.names) (has $job $.Values.names) }}
  found-{{ $index }}: {{ dict "metadata" (dict "name" $pod.metadata.name) "status" $pod.status | toJson | quote }}
{{- end }}
{{- end }}
`

async function readHookPods(
  hooks: readonly { readonly name: string }[],
  dependencies: ReasonsDependencies,
  within: Within,
): Promise<Pod[]> {
  try {
    const names = JSON.stringify({ names: hooks.map(({ name }) => name) })
    return foundIn(await lookUp(hookPodsTemplate, names, dependencies, within)).map((pod) =>
      toPod(pod, dependencies.redactor.redact),
    )
  } catch (error) {
    tellUnread('pods of the hooks', error, dependencies)
    return []
  }
}

/**
 * Events are chosen in the template itself, so that a namespace with thousands of them costs one small object. What
 * begins with a name may be a pod or a ReplicaSet of the object.
 */
const eventsTemplate = `{{- range $index, $event := (lookup "v1" "Event" .Release.Namespace "").items }}
{{- if eq (toString $event.type) "Warning" }}
{{- range $name := $.Values.names }}
{{- if or (eq $event.involvedObject.name $name) (hasPrefix (printf "%s-" $name) $event.involvedObject.name) }}
  found-{{ $index }}: {{ dict "object" $event.involvedObject.name "kind" $event.involvedObject.kind "reason" $event.reason "message" $event.message "last" (coalesce $event.lastTimestamp $event.eventTime $event.metadata.creationTimestamp) | toJson | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
`

interface EventsRequest {
  readonly names: readonly string[]
  /** Those of the objects with these names. */
  readonly pods: readonly Pod[]
  readonly sinceWallMs: number
}

async function readEvents(
  { names, pods, sinceWallMs }: EventsRequest,
  dependencies: ReasonsDependencies,
  within: Within,
): Promise<string[]> {
  const { redactor } = dependencies
  try {
    const rendered = await lookUp(eventsTemplate, JSON.stringify({ names }), dependencies, within)
    // Pods that an earlier attempt has left behind are none of them.
    const podNames = pods.map(({ name }) => name)
    const concerns = ({ kind, object, last }: ClusterEvent) =>
      (kind === 'ReplicaSet' || (kind === 'Pod' ? podNames : names).includes(object)) &&
      !(Date.parse(last) < sinceWallMs - skewMs) // one without a time is kept
    const told = pods.flatMap(({ reasons }) => reasons).join('\n')
    return eventsIn(rendered)
      .filter((event) => concerns(event) && !told.includes(event.message))
      .slice(-maxEvents)
      .map(({ kind, object, reason, message }) =>
        redactor.toLine(`event of ${kind} ${object}: ${reason}, ${message}`, 300),
      )
  } catch (error) {
    tellUnread('events of the cluster', error, dependencies)
    return []
  }
}

function tellUnread(what: string, error: unknown, { log }: ReasonsDependencies): void {
  const said = error instanceof HelmError ? error.said : 'they have no readable form'
  log.info(`The ${what} could not be read: ${said}`)
}

interface ClusterEvent {
  readonly kind: string
  readonly object: string
  readonly reason: string
  readonly message: string
  readonly last: string
}

/** Each event once, the oldest first. */
function eventsIn(rendered: string): ClusterEvent[] {
  const events = foundIn(rendered).map((fields) => {
    const { kind, object, reason, message, last } = fields
    return {
      kind: textOf(kind),
      object: textOf(object),
      reason: textOf(reason),
      message: textOf(message),
      last: textOf(last),
    }
  })
  const unique = new Map(events.map((event) => [`${event.object} ${event.message}`, event]))
  return [...unique.values()].sort((a, b) => (a.last < b.last ? -1 : a.last > b.last ? 1 : 0))
}

/** What a template of ours has found. Each line is a JSON string in JSON, which is YAML too. */
function foundIn(rendered: string): JsonRecord[] {
  return [...rendered.matchAll(/^ {2}found-\d+: (".*")$/gm)].map(
    ([, quoted = '""']) => JSON.parse(JSON.parse(quoted) as string) as JsonRecord,
  )
}
