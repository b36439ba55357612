/** The outputs of the Helm action, in one table. */
import type { Failure } from '../errors.ts'
import type { HelmReceipt } from './receipt.ts'

/** Every output; `helm/action.yml` declares the same. */
export const helmOutputNames = [
  'jobId',
  'status',
  'pageCount',
  'releaseRevision',
  'bundleSha256',
  'failureCode',
] as const

export type HelmOutputName = (typeof helmOutputNames)[number]

/** The value of every output, empty where it does not apply. Never the link: the release has it. */
export function toHelmOutputs(
  { exported: { jobId, job, delivery }, live, mirrored }: HelmReceipt,
  failure: Failure | undefined,
): Record<HelmOutputName, string> {
  return {
    jobId: jobId ?? '',
    status: job?.status ?? '',
    pageCount: job?.pageCount?.toString() ?? '',
    releaseRevision: live?.deployed?.revision.toString() ?? '',
    bundleSha256: mirrored ? (delivery.bundleSha256 ?? '') : '',
    failureCode: failure?.code ?? '',
  }
}
