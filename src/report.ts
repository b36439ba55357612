/** How the end of a run is told: the one error annotation, and what can still be done. */
import type { Failure } from './errors.ts'
import type { Receipt } from './receipt.ts'

/** Of the 4,096 characters after which the runner cuts an annotation, what the rest of it leaves. */
const maxMessageLength = 2_400

/** The annotation of a failed run: what failed, on which job, what was tried, what to do next. */
export function toAnnotation(failure: Failure, receipt: Receipt): string {
  const { message, serverSaid, tried, advice } = failure
  const outlook = toOutlook(failure, receipt)
  const lines = [
    shorten(message),
    serverSaid === undefined ? undefined : `The service said: "${serverSaid}"`,
    tried === undefined ? undefined : `Given up after ${tried}.`,
    `What to do: ${advice}`,
    outlook && `${outlook.text} Run this step again with:\n    job-id: ${outlook.jobId}`,
    outlook || receipt.jobId === undefined ? undefined : `Export job: ${receipt.jobId}`,
  ]
  return lines.filter((line) => line !== undefined).join('\n')
}

function shorten(message: string): string {
  if (message.length <= maxMessageLength) return message
  return `${message.slice(0, maxMessageLength).toWellFormed()}…`
}

/** What is left to build on after a failure: undefined when no job was seen, or nothing is to be expected of it. */
export function toOutlook(
  { code }: Failure,
  { jobId, job }: Receipt,
): { readonly jobId: string; readonly text: string } | undefined {
  if (jobId === undefined || job === undefined) return undefined
  if (code === 'job-failed' || code === 'not-found') return undefined
  const text =
    job.status === 'completed'
      ? `Export job ${jobId} has completed and stays available.`
      : `Export job ${jobId} keeps running on the service.`
  return { jobId, text }
}
