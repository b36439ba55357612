import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { packArchive } from './archive.ts'
import type { Clock } from './clock.ts'
import { sampleSite } from './options.ts'
import { Refusal } from './refusal.ts'
import { renderPage, stylesheet, type Edition } from './render.ts'
import { readSite, SiteProblem, type Site } from './site.ts'

/** How much of the pages is rendered (0 to 1) once a part of the job's time (0 to 1) has passed. */
export const curves = {
  linear: (time: number) => time,
  'slow-start': (time: number) => time ** 3,
  'slow-end': (time: number) => 1 - (1 - time) ** 3,
  /** Two fifths in the first fifth, then nothing for half of the time, then the rest. */
  stall: (time: number) => (time < 0.2 ? time * 2 : time < 0.7 ? 0.4 : 0.4 + (time - 0.7) * 2),
} as const

export type Curve = keyof typeof curves

/** The answer to start and status: admin-api.md, section 2.3, with the fields the service adds. */
export type ExportJob = {
  jobId: string
  status: 'queued' | 'running' | 'completed' | 'failed'
  /** Percent of the pages rendered, 0 to 100. */
  progress: number
  /** Pages rendered so far. */
  pageCount: number
  createdAt: string
  updatedAt: string
  /** Why, when the status is `failed`. */
  error: string | null
}

export type StartRequest = { domain: string; version?: string; paths?: string[] }

/** A failure on demand: of the next job to start, once it has rendered so many pages. */
export type PlannedFailure = { error: string; afterPages: number }

export type ExportSettings = {
  /** Folder of Markdown; read afresh by each job. */
  siteDirectory: string
  domains: readonly string[]
  queueSeconds: number
  jobSeconds: number
  curve: Curve
  startsPerHour: number
  /** Whether a 429 says when to try again; the service is not known to. */
  retryAfter: boolean
  oneExportPerSite: boolean
}

type Job = {
  readonly jobId: string
  readonly createdAtMs: number
  readonly edition: Edition
  readonly plannedFailure: PlannedFailure | undefined
  /** Finished pages by file name. Its size is all that the job ever claims to have done. */
  readonly rendered: Map<string, string>
  updatedAtMs: number
  status: ExportJob['status']
  error: string | null
  archive: Promise<Buffer> | undefined
}

const hourMs = 3_600_000

/**
 * The jobs of static export. Nothing happens between requests: each request first brings its job to
 * where the clock says it must be, by rendering the pages that are due.
 */
export class ExportJobs {
  readonly #settings: ExportSettings
  readonly #clock: Clock
  readonly #newJobId: () => string
  readonly #jobs = new Map<string, Job>()
  #plannedFailure: PlannedFailure | undefined

  constructor(settings: ExportSettings, clock: Clock, newJobId: () => string) {
    this.#settings = settings
    this.#clock = clock
    this.#newJobId = newJobId
  }

  failNext(failure: PlannedFailure): void {
    this.#plannedFailure = failure
  }

  /** Throws a Refusal: 400 for what cannot be exported, 409 and 429 for the limits (if any). */
  async start({ domain, version, paths }: StartRequest): Promise<ExportJob> {
    if (!this.#settings.domains.includes(domain)) {
      const known = this.#settings.domains.join(', ')
      throw new Refusal(400, `No site is served at "${domain}". Known domains: ${known}.`)
    }
    const { site, problem } = await openSite(this.#settings.siteDirectory)
    const pages =
      paths === undefined || problem !== undefined ? site.pages : choosePages(site, paths)

    // No waiting from here on: the next request must find this job when it looks at the limits.
    this.#checkLimits(domain)
    const nowMs = this.#clock.now()
    const job: Job = {
      jobId: this.#newJobId(),
      createdAtMs: nowMs,
      edition: { site, domain, version: version ?? null, pages },
      plannedFailure:
        problem === undefined ? this.#plannedFailure : { error: problem, afterPages: 0 },
      rendered: new Map(),
      updatedAtMs: nowMs,
      status: 'queued',
      error: null,
      archive: undefined,
    }
    this.#plannedFailure = undefined
    this.#jobs.set(job.jobId, job)
    return this.#describe(job)
  }

  /** Throws a Refusal (404) for an unknown job. */
  status(jobId: string): ExportJob {
    return this.#describe(this.#find(jobId))
  }

  /**
   * The archive of a completed job, packed once (admin-api.md, section 4.4).
   * Throws a Refusal: 404 for an unknown job, 409 for one that is not completed.
   */
  async bundle(jobId: string): Promise<{ domain: string; archive: Buffer }> {
    const job = this.#find(jobId)
    if (job.status === 'failed') {
      throw new Refusal(409, `Export job ${jobId} has failed, so there is nothing to bundle.`)
    }
    if (job.status !== 'completed') {
      throw new Refusal(
        409,
        `Export job ${jobId} is ${job.status}: bundle it once it is completed.`,
      )
    }
    job.archive ??= packArchive(filesOf(job))
    return { domain: job.edition.domain, archive: await job.archive }
  }

  #find(jobId: string): Job {
    const job = this.#jobs.get(jobId)
    if (job === undefined) throw new Refusal(404, `No export job "${jobId}".`)
    this.#advance(job)
    return job
  }

  #describe(job: Job): ExportJob {
    this.#advance(job)
    const { jobId, status, error, rendered, edition } = job
    const total = edition.pages.length
    return {
      jobId,
      status,
      progress: status === 'completed' ? 100 : Math.floor((100 * rendered.size) / (total || 1)),
      pageCount: rendered.size,
      createdAt: new Date(job.createdAtMs).toISOString(),
      updatedAt: new Date(job.updatedAtMs).toISOString(),
      error,
    }
  }

  #advance(job: Job): void {
    if (job.status === 'completed' || job.status === 'failed') return
    const { queueSeconds, jobSeconds, curve } = this.#settings
    const nowMs = this.#clock.now()
    const workedSeconds = (nowMs - job.createdAtMs) / 1000 - queueSeconds
    if (workedSeconds < 0) return

    const { pages } = job.edition
    const time = workedSeconds < jobSeconds ? workedSeconds / jobSeconds : 1
    const due = time === 1 ? pages.length : Math.floor(curves[curve](time) * pages.length)
    const before = job.rendered.size
    const error = render(job, due)
    const status = error !== undefined ? 'failed' : time === 1 ? 'completed' : 'running'
    if (status !== job.status || job.rendered.size > before) job.updatedAtMs = nowMs
    job.status = status
    job.error = error ?? null
  }

  #checkLimits(domain: string): void {
    const { startsPerHour, retryAfter, oneExportPerSite } = this.#settings
    const jobs = [...this.#jobs.values()]
    for (const job of jobs) this.#advance(job)

    const running = jobs.find(
      (job) =>
        job.edition.domain === domain && (job.status === 'queued' || job.status === 'running'),
    )
    if (oneExportPerSite && running !== undefined) {
      throw new Refusal(409, `Another export of ${domain} is running.`)
    }
    const nowMs = this.#clock.now()
    const recent = jobs.filter((job) => job.createdAtMs > nowMs - hourMs)
    const oldest = recent.at(-startsPerHour)
    if (recent.length >= startsPerHour && oldest !== undefined) {
      const waitSeconds = Math.ceil((oldest.createdAtMs + hourMs - nowMs) / 1000)
      throw new Refusal(
        429,
        `Too many exports: ${startsPerHour} may be started in an hour.`,
        retryAfter ? { 'retry-after': String(waitSeconds) } : {},
      )
    }
  }
}

/** The site as it is now; one that cannot be read has no pages, and a problem for the job to tell. */
async function openSite(directory: string): Promise<{ site: Site; problem?: string }> {
  try {
    const site = await readSite(directory)
    if (!site.assets.has(stylesheet)) {
      site.assets.set(stylesheet, await readFile(join(sampleSite, stylesheet)))
    }
    return { site }
  } catch (error) {
    if (!(error instanceof SiteProblem)) throw error
    const site = { name: '', navigation: [], pages: [], assets: new Map<string, Buffer>() }
    return { site, problem: error.message }
  }
}

/** Renders until so many pages are done; returns why it could not. */
function render(job: Job, due: number): string | undefined {
  const { edition, rendered, plannedFailure } = job
  for (;;) {
    if (plannedFailure !== undefined && rendered.size >= plannedFailure.afterPages) {
      return plannedFailure.error
    }
    const page = edition.pages[rendered.size]
    if (page === undefined || rendered.size >= due) return undefined
    try {
      rendered.set(page.file, renderPage(page, edition))
    } catch (problem) {
      if (!(problem instanceof SiteProblem)) throw problem
      return problem.message
    }
  }
}

/** Pages to export, in the order of the site. Throws a Refusal (400) that names unknown paths. */
function choosePages(site: Site, paths: string[]): Site['pages'] {
  const wanted = new Map(paths.map((path) => [normalPath(path), path]))
  const pages = site.pages.filter((page) => wanted.delete(page.path))
  if (wanted.size > 0) {
    const unknown = [...wanted.values()].map((path) => `"${path}"`).join(', ')
    throw new Refusal(400, `paths: the site has no page ${unknown}.`)
  }
  return pages
}

/** `guides/start`, `/guides/start` and `/guides/start/` are the same page. */
function normalPath(path: string): string {
  return `/${path.replace(/^\/+|\/+$/g, '')}`.normalize('NFC')
}

function* filesOf(job: Job): Generator<[string, Buffer]> {
  const { site, domain, version, pages } = job.edition
  const manifest = {
    domain,
    version,
    pageCount: pages.length,
    pages: pages.map(({ path, file, title }) => ({ path, file, title })),
  }
  yield ['export.json', Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`)]
  for (const [file, html] of job.rendered) yield [file, Buffer.from(html)]
  yield* site.assets
}
