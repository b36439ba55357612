/** The agent job: a look at its status and its pull request, beside the export and never in its way. */
import { toFailure } from './errors.ts'
import type { Log } from './log.ts'
import { type Polling, nextPollDelayMs } from './poll.ts'
import type { AgentJobReply } from './schemas.ts'
import { clean } from './text.ts'

export interface AgentJobRequest {
  readonly projectId: string
  readonly jobId: string
  /** Poll until the job has ended, rather than look and go on. */
  readonly wait: boolean
}

/** An agent job as last seen. */
export interface AgentJob {
  /** The service's own word, cleaned. */
  readonly status: string
  /** A valid https link, normalised; undefined when there is none. */
  readonly prLink: string | undefined
  readonly pullRequest: PullRequest | undefined
}

/** What the host of the code says about a pull request. The title is outside text. */
export interface PullRequest {
  readonly title: string
  readonly state: 'open' | 'draft' | 'merged' | 'closed'
}

/** Where a pull request lives. */
export interface PullRequestAddress {
  readonly owner: string
  readonly repo: string
  readonly number: number
}

export interface AgentJobDependencies extends Polling {
  /** The only host whose pull requests are read, as in `https://github.com`. */
  readonly serverUrl: URL
  readonly readPullRequest: (
    address: PullRequestAddress,
    signal: AbortSignal,
  ) => Promise<PullRequest>
  /** Called with every look at the job. */
  readonly onAgentJob: (job: AgentJob) => void
}

/** "A client polls the agent job lookup until status is completed, archived or failed" (admin-api.md, 3.1). */
const finalStatuses = new Set(['completed', 'archived', 'failed'])

/**
 * Follows an agent job: with `wait` until it ends, else by one look, and a second one when the export has
 * ended and the job had not. Whatever goes wrong is a warning: this never rejects.
 */
export async function followAgentJob(
  request: AgentJobRequest,
  exportEnded: Promise<unknown>,
  dependencies: AgentJobDependencies,
): Promise<void> {
  const { client, clock, log, deadline, signal, onAgentJob } = dependencies
  try {
    const startedMs = clock.nowMs()
    const look = async () => {
      const reply = await client.readAgentJob(request.projectId, request.jobId, request.wait)
      const job = toAgentJob(reply, log)
      onAgentJob(job)
      return job
    }
    let job = await look()
    if (!request.wait && !hasEnded(job)) {
      await exportEnded
      job = await look()
    }
    if (request.wait && !hasEnded(job)) log.info(`Agent job ${request.jobId}: ${job.status}`)
    while (request.wait && !hasEnded(job)) {
      const elapsedMs = clock.nowMs() - startedMs
      const delayMs = nextPollDelayMs(elapsedMs, dependencies.pollIntervalMs, dependencies.random())
      if (delayMs >= deadline.remainingMs()) {
        log.warning(
          `Agent job ${request.jobId} is still ${job.status}; the time for waiting is over. The export is not affected.`,
        )
        break
      }
      await clock.sleep(delayMs, signal)
      job = await look()
    }
    log.info(`Agent job ${request.jobId}: ${job.status}${job.prLink ? `, ${job.prLink}` : ''}`)
    await addPullRequest(job, dependencies)
  } catch (error) {
    if (signal.aborted) return
    const { message, serverSaid, advice } = toFailure(error)
    const said = serverSaid === undefined ? '' : ` The service said: "${serverSaid}"`
    log.warning(`The agent job could not be looked up. ${message}${said} ${advice}`)
  }
}

function hasEnded({ status }: AgentJob): boolean {
  return finalStatuses.has(status)
}

function toAgentJob(reply: AgentJobReply, log: Log): AgentJob {
  const { prLink } = reply
  const link = typeof prLink === 'string' ? toPullRequestLink(prLink) : undefined
  if (typeof prLink === 'string' && !link) {
    log.warning('The pull request link of the agent job is not a plain https link; it is left out.')
  }
  return { status: clean(reply.status, 40), prLink: link?.href, pullRequest: undefined }
}

function toPullRequestLink(link: string): URL | undefined {
  const url = clean(link, 2_000) === link ? URL.parse(link) : null
  if (url?.protocol !== 'https:' || url.username !== '' || url.password !== '') return undefined
  return url
}

/** Nicer words for a link are not worth a longer wait. */
const maxReadMs = 10_000

/** Reads title and state where the host allows it; elsewhere the plain link is enough. */
async function addPullRequest(job: AgentJob, dependencies: AgentJobDependencies): Promise<void> {
  const address = job.prLink && pullRequestAddress(new URL(job.prLink), dependencies.serverUrl)
  if (!address) return
  const { clock, deadline, signal, readPullRequest } = dependencies
  const patience = new AbortController()
  const stopTimer = clock.timer(Math.min(maxReadMs, deadline.remainingMs()), () => {
    patience.abort(new Error('no answer in time'))
  })
  try {
    const pullRequest = await readPullRequest(address, AbortSignal.any([signal, patience.signal]))
    dependencies.onAgentJob({ ...job, pullRequest })
  } catch (error) {
    const reason = Error.isError(error) ? error.message : String(error)
    dependencies.log.debug(`The pull request could not be read: ${clean(reason, 200)}`)
  } finally {
    stopTimer()
  }
}

/** Owner, repository and number of a pull request on that server; undefined for anything else. */
export function pullRequestAddress(link: URL, serverUrl: URL): PullRequestAddress | undefined {
  if (link.host !== serverUrl.host) return undefined
  const match = /^\/([\w.-]+)\/([\w.-]+)\/pull\/(\d{1,9})\/?$/.exec(link.pathname)
  const [, owner, repo, number] = match ?? []
  if (owner === undefined || repo === undefined) return undefined
  return { owner, repo, number: Number(number) }
}
