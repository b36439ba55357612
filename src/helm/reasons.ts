/** Why a deployment failed, read from the cluster before anything is rolled back, by Helm and with its access. */
import type { Log } from '../log.ts'
import { HelmError, type Within } from './helm.ts'
import type { Hiding } from './hide.ts'
import { type LookupDependencies, lookUp } from './lookup.ts'
import { type Workload, reasonsOfWorkloads, workloadsOf } from './workloads.ts'

export interface ReasonsDependencies extends LookupDependencies {
  readonly hiding: Hiding
  readonly log: Log
}

const maxEvents = 5
const maxLines = 20

/**
 * What the unready workloads and their pods say, and the last warnings of the cluster about them: one reason a
 * line, without secrets. What cannot be read is left out, since it must not hide the failure itself.
 */
export async function readReasons(
  dependencies: ReasonsDependencies,
  within: Within,
): Promise<readonly string[]> {
  const { helm, hiding, log } = dependencies
  try {
    const status = await helm.status(within)
    const unready = workloadsOf(status?.resources ?? {}).filter(({ isReady }) => !isReady)
    if (unready.length === 0) return []
    const tell = (text: string, maxLength: number) => hiding.tell(text, maxLength)
    const reasons = reasonsOfWorkloads(unready, tell)
    return [...reasons, ...(await readEvents(unready, dependencies, within))].slice(0, maxLines)
  } catch (error) {
    const said = Error.isError(error) ? hiding.tell(error.message) : 'unknown'
    log.info(`The reasons could not be read from the cluster: ${said}`)
    return []
  }
}

/** Events are chosen in the template itself, so that a namespace with thousands of them costs one small object. */
const eventsTemplate = `apiVersion: v1
kind: ConfigMap
metadata:
  name: static-export-events
data:
{{- range $index, $event := (lookup "v1" "Event" .Release.Namespace "").items }}
{{- if eq (toString $event.type) "Warning" }}
{{- range $name := $.Values.names }}
{{- if or (eq $event.involvedObject.name $name) (hasPrefix (printf "%s-" $name) $event.involvedObject.name) }}
  event-{{ $index }}: {{ dict "object" $event.involvedObject.name "kind" $event.involvedObject.kind "reason" $event.reason "message" $event.message "last" (coalesce $event.lastTimestamp $event.eventTime $event.metadata.creationTimestamp) | toJson | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
`

async function readEvents(
  workloads: readonly Workload[],
  dependencies: ReasonsDependencies,
  within: Within,
): Promise<string[]> {
  const { hiding, log } = dependencies
  try {
    const names = JSON.stringify({ names: workloads.map(({ name }) => name) })
    const rendered = await lookUp(eventsTemplate, names, dependencies, within)
    const pods = workloads.flatMap((workload) => workload.pods)
    const told = pods.flatMap(({ reasons }) => reasons).join('\n')
    return (
      eventsIn(rendered)
        // Neither of pods that an earlier attempt has left behind, nor what the pods say themselves.
        .filter(({ kind, object }) => kind !== 'Pod' || pods.some(({ name }) => name === object))
        .filter(({ message }) => !told.includes(message))
        .slice(-maxEvents)
        .map(({ kind, object, reason, message }) =>
          hiding.tell(`event of ${kind} ${object}: ${reason}, ${message}`, 300),
        )
    )
  } catch (error) {
    const said = error instanceof HelmError ? error.said : 'they have no readable form'
    log.info(`The events of the cluster could not be read: ${said}`)
    return []
  }
}

interface ClusterEvent {
  readonly kind: string
  readonly object: string
  readonly reason: string
  readonly message: string
  readonly last: string
}

/** Each event once, the oldest first. Its line is a JSON string in JSON, which is YAML too. */
function eventsIn(rendered: string): ClusterEvent[] {
  const events = [...rendered.matchAll(/^ {2}event-\d+: (".*")$/gm)].map(([, quoted = '""']) => {
    const fields = JSON.parse(JSON.parse(quoted) as string) as Record<string, unknown>
    const field = (name: string) => (typeof fields[name] === 'string' ? fields[name] : '')
    return {
      kind: field('kind'),
      object: field('object'),
      reason: field('reason'),
      message: field('message'),
      last: field('last'),
    }
  })
  const unique = new Map(events.map((event) => [`${event.object} ${event.message}`, event]))
  return [...unique.values()].sort((a, b) => (a.last < b.last ? -1 : a.last > b.last ? 1 : 0))
}
