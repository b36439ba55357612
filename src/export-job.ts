/** The export job: what its statuses and numbers mean, and waiting for its end. */
import { Failure } from './errors.ts'
import type { Log } from './log.ts'
import { type Polling, nextPollDelayMs } from './poll.ts'
import type { ExportJobReply } from './schemas.ts'
import { clean } from './text.ts'
import { formatDuration } from './units.ts'

/** An export job as last seen. */
export interface ExportJob {
  readonly id: string
  /** The service's own word, cleaned. */
  readonly status: string
  /** From 0 to 100; undefined when the service does not say. */
  readonly percent: number | undefined
  /** Pages exported so far; undefined when the service does not say. */
  readonly pageCount: number | undefined
  /** The reason, when failed; cleaned. */
  readonly error: string | undefined
}

/** Ids that are safe in a path: encoding alone would let `..` through. */
export const idPattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/

const knownStatuses = new Set(['queued', 'running', 'completed', 'failed'])

/** Whether the service will not change the job any more. */
export function hasEnded({ status }: ExportJob): boolean {
  return status === 'completed' || status === 'failed'
}

/**
 * Reads a reply about the job. A status that is not known counts as running (design: unknown is not
 * failed), odd numbers as unknown; both are warned about, once each since the log drops repetitions.
 *
 * @throws Failure `protocol` when the reply is about another job
 */
export function toExportJob(reply: ExportJobReply, id: string, log: Log): ExportJob {
  if (typeof reply.jobId === 'string' && reply.jobId !== id) {
    throw new Failure('protocol', `Asked for job ${id}, the service answered about another one.`)
  }
  const status = clean(reply.status, 40)
  if (!knownStatuses.has(status)) {
    log.warning(`The service reports the unknown status "${status}"; it is taken as running.`)
  }
  const { error } = reply
  return {
    id,
    status,
    percent: readPercent(reply.progress, log),
    pageCount: readPageCount(reply.pageCount, log),
    error: typeof error === 'string' ? clean(error) || undefined : undefined,
  }
}

function readPercent(progress: unknown, log: Log): number | undefined {
  if (progress === undefined || progress === null) return undefined
  if (typeof progress === 'number' && progress >= 0 && progress <= 100) return progress
  log.warning('The service reports a `progress` that is no number from 0 to 100.')
  return typeof progress === 'number' ? Math.min(Math.max(progress, 0), 100) : undefined
}

function readPageCount(pageCount: unknown, log: Log): number | undefined {
  if (pageCount === undefined || pageCount === null) return undefined
  if (Number.isSafeInteger(pageCount) && Number(pageCount) >= 0) return Number(pageCount)
  log.warning('The service reports a `pageCount` that is no whole number.')
  return undefined
}

/**
 * Reads the reply to a start.
 *
 * @throws Failure `protocol` when it has no usable job id
 */
export function toStartedJob(reply: ExportJobReply, log: Log): ExportJob {
  const { jobId } = reply
  if (typeof jobId !== 'string' || !idPattern.test(jobId)) {
    const seen = clean(String(jobId), 80)
    throw new Failure('protocol', `The export was started, but its job id is unusable: "${seen}".`)
  }
  return toExportJob(reply, jobId, log)
}

export interface WaitDependencies extends Polling {
  /** Called with every look at the job. */
  readonly onJob: (job: ExportJob) => void
}

/** A job that was just started may not be visible everywhere yet. */
const visibleAfterMs = 30_000
/** A last look at the job this long before the end leaves time for the link. */
const lastLookMs = 10_000

/**
 * Waits until the job has completed.
 *
 * @param started the job as the service answered to the start; undefined to ask at once (attached)
 * @throws Failure `job-failed` with the service's reason; `timeout` when the deadline comes first, which
 *   the job survives; and whatever asking can end in
 */
export async function waitForExport(
  id: string,
  started: ExportJob | undefined,
  dependencies: WaitDependencies,
): Promise<ExportJob> {
  const { client, clock, log, deadline, signal, onJob } = dependencies
  const startedMs = clock.nowMs()
  const reserveMs = Math.min(lastLookMs, deadline.remainingMs() / 10)
  const look = async () => {
    const isNew = started !== undefined && clock.nowMs() - startedMs < visibleAfterMs
    return toExportJob(await client.readExport(id, isNew), id, log)
  }

  for (let job = started ?? (await look()); ; job = await look()) {
    onJob(job)
    if (job.status === 'completed') return job
    if (job.status === 'failed') throw jobFailed(job)

    const spareMs = deadline.remainingMs() - reserveMs
    if (spareMs <= 0) throw outOfTime(job, clock.nowMs() - startedMs)
    const elapsedMs = clock.nowMs() - startedMs
    const delayMs = nextPollDelayMs(elapsedMs, dependencies.pollIntervalMs, dependencies.random())
    await clock.sleep(Math.min(delayMs, spareMs), signal)
  }
}

function jobFailed({ id, error }: ExportJob): Failure {
  const what = `The export failed on the service (job ${id}).`
  return error === undefined
    ? new Failure('job-failed', `${what} It gave no reason.`, {
        advice: 'Ask the service why, or export again.',
      })
    : new Failure('job-failed', what, { serverSaid: error })
}

function outOfTime({ id, status, percent, pageCount }: ExportJob, elapsedMs: number): Failure {
  const numbers = [
    percent === undefined ? [] : [`${Math.floor(percent)} %`],
    pageCount === undefined ? [] : [`${pageCount} pages`],
  ].flat()
  const state = [status, ...numbers].join(', ')
  return new Failure(
    'timeout',
    `Stopped waiting after ${formatDuration(elapsedMs)}: export job ${id} had not ended yet (${state}).`,
    { advice: 'Raise `timeout-minutes`, or resume the wait later.' },
  )
}
