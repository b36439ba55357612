import { fileURLToPath } from 'node:url'
import type { Report } from './api.ts'
import type { Clock } from './clock.ts'
import type { Curve } from './export-jobs.ts'
import type { Fault } from './faults.ts'
import type { RecordedRequest } from './recorder.ts'

export type EmulatorOptions = {
  /** Address to listen on. */
  host?: string
  /** Port of the Admin API; 0 is any free one. */
  port?: number
  /** Port of the object storage; 0 is any free one. */
  storagePort?: number
  /** Origin under which clients reach the API, when it is not the address listened on. */
  publicUrl?: string
  /** The same for storage: links are signed for this host. */
  storagePublicUrl?: string
  /** Folder of Markdown to export. */
  siteDirectory?: string
  /** Host names that may be exported. */
  domains?: readonly string[]
  queueSeconds?: number
  jobSeconds?: number
  /** How the work goes on during `jobSeconds`. */
  curve?: Curve
  /** How the status tells it. */
  report?: Report
  /** Lifetime of a link; at most a week. */
  linkSeconds?: number
  startsPerHour?: number
  /** Whether the 429 of that limit carries Retry-After. */
  retryAfter?: boolean
  /** Whether a start is refused while an export of the same domain runs. */
  oneExportPerSite?: boolean
  /** When the agent job `agent-finishing` completes, after the start of the emulator. */
  agentSeconds?: number
  /** As data, or in the words of the flag. */
  faults?: readonly (Fault | string)[]
  /** Makes job ids the same in each run; they are random otherwise. */
  seed?: string
  /** Default the time of the machine. */
  clock?: Clock
  /** Called when a request has been answered, or left unanswered by a fault. */
  onRequest?: (request: RecordedRequest) => void
}

/** The documentation of a product that does not exist. */
export const sampleSite = fileURLToPath(new URL('./site', import.meta.url))

export const defaults = {
  host: '127.0.0.1',
  port: 0,
  storagePort: 0,
  siteDirectory: sampleSite,
  domains: ['docs.example.com'],
  queueSeconds: 2,
  jobSeconds: 20,
  curve: 'linear',
  report: 'full',
  linkSeconds: 3600,
  startsPerHour: Infinity,
  retryAfter: false,
  oneExportPerSite: false,
  agentSeconds: 20,
  faults: [],
} as const satisfies EmulatorOptions
