/** What a deployment has learned so far: the source of its outputs, its summary and its error, on every outcome. */
import type { Receipt } from '../receipt.ts'
import type { Verified } from '../verify.ts'
import type { DeployedRevision } from './release.ts'

export interface HelmReceipt {
  /** The export behind it. */
  readonly exported: Receipt
  /** `4.2.4`. */
  helmVersion: string | undefined
  /** The context of the kubeconfig, clean; undefined when there is none. */
  contextName: string | undefined
  /** What was deployed before; undefined also when nothing was. */
  before: DeployedRevision | undefined
  /** What is deployed now; undefined when nobody knows. */
  live: Live | undefined
  /** Whether Helm was asked to change anything. */
  attempted: boolean
  /** When what is live now was deployed by this run, in epoch milliseconds. */
  liveSinceMs: number | undefined
  /** The revision that was put back after a failure. */
  putBack: number | undefined
  /** What the cluster said, one reason a line, without secrets. */
  reasons: readonly string[]
  /** The address that pods find the mirrored archive at, and whether it was there before. */
  mirrored: { readonly url: string; readonly uploaded: boolean } | undefined
  verified: Verified | undefined
  /** How long each step of the deployment took, in the order of the run. */
  readonly stepMs: Map<HelmStep, number>
}

/** What is deployed, if anything is. */
export interface Live {
  readonly deployed: DeployedRevision | undefined
}

export type HelmStep = 'mirror' | 'upgrade' | 'readiness' | 'rollback' | 'verification'

export function emptyHelmReceipt(exported: Receipt): HelmReceipt {
  return {
    exported,
    helmVersion: undefined,
    contextName: undefined,
    before: undefined,
    live: undefined,
    attempted: false,
    liveSinceMs: undefined,
    putBack: undefined,
    reasons: [],
    mirrored: undefined,
    verified: undefined,
    stepMs: new Map(),
  }
}
