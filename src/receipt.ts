/** What a run has learned so far: the source of outputs, summary and error, on every outcome. */
import type { AgentJob } from './agent-job.ts'
import type { Bundle } from './bundle.ts'
import type { Delivery } from './delivery.ts'
import type { ExportJob } from './export-job.ts'
import type { Sample } from './progress.ts'

export type Phase = 'start' | 'queue' | 'rendering' | 'link' | 'download' | 'unpack'

export interface Receipt {
  /** Known as soon as the service has accepted the start, or from the input. */
  jobId: string | undefined
  job: ExportJob | undefined
  bundle: Bundle | undefined
  /** What was written to the disk. */
  readonly delivery: Delivery
  agentJob: AgentJob | undefined
  /** Looks at the job, in order. */
  samples: readonly Sample[]
  /** How long each phase took, in the order of the run. */
  readonly phaseMs: Map<Phase, number>
}

export function emptyReceipt(): Receipt {
  return {
    jobId: undefined,
    job: undefined,
    bundle: undefined,
    delivery: {},
    agentJob: undefined,
    samples: [],
    phaseMs: new Map(),
  }
}
