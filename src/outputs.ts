/** The outputs of the action, in one table. */
import type { Failure } from './errors.ts'
import type { Receipt } from './receipt.ts'

/** Every output; `action.yml` declares the same. */
export const outputNames = [
  'bundleUrl',
  'expiresAt',
  'jobId',
  'status',
  'pageCount',
  'sizeBytes',
  'bundleFile',
  'bundleSha256',
  'siteDirectory',
  'valuesFile',
  'agentStatus',
  'prLink',
  'failureCode',
] as const

export type OutputName = (typeof outputNames)[number]

/** The value of every output, empty where it does not apply. The link only of a run that succeeded. */
export function toOutputs(
  { jobId, job, bundle, delivery, agentJob }: Receipt,
  failure: Failure | undefined,
): Record<OutputName, string> {
  const link = failure ? undefined : bundle
  return {
    bundleUrl: link?.url.href ?? '',
    expiresAt: link?.expiresAt ?? '',
    jobId: jobId ?? '',
    status: job?.status ?? '',
    pageCount: job?.pageCount?.toString() ?? '',
    sizeBytes: (delivery.sizeBytes ?? bundle?.sizeBytes)?.toString() ?? '',
    bundleFile: delivery.bundleFile ?? '',
    bundleSha256: delivery.bundleSha256 ?? '',
    siteDirectory: delivery.siteDirectory ?? '',
    valuesFile: delivery.valuesFile ?? '',
    agentStatus: agentJob?.status ?? '',
    prLink: agentJob?.prLink ?? '',
    failureCode: failure?.code ?? '',
  }
}
