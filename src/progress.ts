/** The progress of a run in its log: a line when something changed, and at least one a minute. */
import type { Clock } from './clock.ts'
import { type ExportJob, hasEnded } from './export-job.ts'
import type { Log } from './log.ts'
import { count, formatDuration, formatElapsed } from './units.ts'

/** One look at the job. */
export interface Sample {
  /** Since the beginning of the run. */
  readonly atMs: number
  readonly percent: number | undefined
  readonly pageCount: number | undefined
}

export interface Progress {
  /** Takes a look at the job into account, and logs it when that is worth a line. */
  see(job: ExportJob): void
  /** What the run waits for now, when it is not the export. */
  waitFor(what: string): void
  /** Logs a line whenever nothing was logged for a minute; ends, without an error, with the signal. */
  keepAlive(signal: AbortSignal): Promise<void>
  readonly samples: readonly Sample[]
}

const longestSilenceMs = 60_000
/** A look this long after the last line is logged, changed or not: it is fresher than what a minute's silence would repeat. */
const refreshMs = 45_000
const worthALinePoints = 5
const worthALineMs = 15_000
const stallMs = 5 * 60_000
const bigStepBackPoints = 20

export function createProgress(log: Log, clock: Clock): Progress {
  const startedMs = clock.nowMs()
  const samples: Sample[] = []
  let job: ExportJob | undefined
  let waitingFor: string | undefined = 'the Admin API'
  let changedMs = startedMs
  let logged: { job: ExportJob | undefined; atMs: number } = { job: undefined, atMs: startedMs }

  return { see, waitFor, keepAlive, samples }

  function waitFor(what: string): void {
    waitingFor = what
  }

  function see(seen: ExportJob): void {
    const before = job
    job = seen
    waitingFor = undefined
    const nowMs = clock.nowMs()
    if (!before || isChange(before, seen)) changedMs = nowMs
    samples.push({ atMs: nowMs - startedMs, percent: seen.percent, pageCount: seen.pageCount })
    warnOfOddities(before, seen, nowMs)
    if (isWorthALine(seen, nowMs)) report(nowMs)
  }

  async function keepAlive(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const quietMs = clock.nowMs() - logged.atMs
      try {
        await clock.sleep(longestSilenceMs - quietMs, signal)
      } catch {
        return
      }
      const nowMs = clock.nowMs()
      if (nowMs - logged.atMs >= longestSilenceMs) report(nowMs)
    }
  }

  function isWorthALine(seen: ExportJob, nowMs: number): boolean {
    const last = logged.job
    if (!last || last.status !== seen.status) return true
    if (nowMs - logged.atMs >= refreshMs) return true
    if (!isChange(last, seen)) return false
    // Without a percentage, the number of pages is all there is to show.
    if (seen.percent === undefined) return nowMs - logged.atMs >= worthALineMs
    return Math.abs(seen.percent - (last.percent ?? 0)) >= worthALinePoints
  }

  function report(nowMs: number): void {
    const facts =
      job && waitingFor === undefined
        ? [...describe(job), ...describeSpeed(job, samples, nowMs - changedMs)]
        : [`waiting for ${waitingFor ?? ''}`]
    log.info(`[${formatElapsed(nowMs - startedMs)}] ${facts.join(' · ')}`)
    logged = { job, atMs: nowMs }
  }

  function warnOfOddities(before: ExportJob | undefined, seen: ExportJob, nowMs: number): void {
    if (nowMs - changedMs >= stallMs) {
      log.warning(
        `The export has shown no progress for ${formatDuration(stallMs)}. The wait goes on until \`timeout-minutes\` is over.`,
      )
    }
    if (before?.status === 'running' && seen.status === 'queued') {
      log.warning('The export went back from running to queued; the service started it anew.')
    } else if ((before?.percent ?? 0) - (seen.percent ?? 100) > bigStepBackPoints) {
      log.warning(`The progress of the export fell by more than ${bigStepBackPoints} points.`)
    }
  }
}

function isChange(before: ExportJob, after: ExportJob): boolean {
  return (
    before.status !== after.status ||
    before.percent !== after.percent ||
    before.pageCount !== after.pageCount
  )
}

function describe(job: ExportJob): string[] {
  const facts = [job.status]
  if (job.status === 'queued' && !job.pageCount) return facts
  if (job.percent !== undefined) facts.push(`${Math.floor(job.percent)} %`)
  if (job.pageCount !== undefined) facts.push(count(job.pageCount, 'page'))
  return facts
}

/** How fast the job is and how long it will take, or for how long nothing has happened. */
function describeSpeed(job: ExportJob, samples: readonly Sample[], stillMs: number): string[] {
  if (hasEnded(job)) return []
  if (stillMs >= refreshMs) return [`no change for ${formatDuration(stillMs)}`]
  const { pagesPerSecond, remainingMs } = estimate(samples)
  return [
    ...(pagesPerSecond === undefined ? [] : [formatRate(pagesPerSecond)]),
    ...(remainingMs === undefined ? [] : [`about ${formatDuration(remainingMs)} left`]),
  ]
}

function formatRate(pagesPerSecond: number): string {
  const [rate, unit] =
    pagesPerSecond >= 1 ? [pagesPerSecond, 'pages/s'] : [pagesPerSecond * 60, 'pages/min']
  return `${rate >= 9.95 ? rate.toFixed(0) : rate.toFixed(1)} ${unit}`
}

/** How fast the export is, over the last third of its time or a minute, and how long it will take if it stays so. */
export function estimate(samples: readonly Sample[]): {
  readonly pagesPerSecond: number | undefined
  readonly remainingMs: number | undefined
} {
  const last = samples.at(-1)
  // A short window follows changes, a long one keeps few and far pages from swinging the figures.
  const windowMs = last && Math.max(60_000, last.atMs / 3)
  const first = last && samples.find(({ atMs }) => atMs >= last.atMs - (windowMs ?? 0))
  const spanMs = last && first ? last.atMs - first.atMs : 0
  if (!last || !first || spanMs <= 0) return { pagesPerSecond: undefined, remainingMs: undefined }
  const pages = (last.pageCount ?? 0) - (first.pageCount ?? 0)
  const points = (last.percent ?? 0) - (first.percent ?? 0)
  return {
    pagesPerSecond: pages > 0 ? (pages / spanMs) * 1000 : undefined,
    remainingMs:
      points > 0 && last.percent !== undefined
        ? ((100 - last.percent) / points) * spanMs
        : undefined,
  }
}
