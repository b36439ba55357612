/** The story of an export: start or attach, wait, look at the agent job, mint the link, deliver the bundle. */
import { type PullRequest, type PullRequestAddress, followAgentJob } from './agent-job.ts'
import type { Deadline } from './clock.ts'
import { type ExportJob, toStartedJob } from './export-job.ts'
import type { Inputs } from './inputs.ts'
import type { Receipt } from './receipt.ts'
import { type SessionDependencies, openSession } from './session.ts'
import { targetsOf } from './targets.ts'

export interface RunDependencies extends SessionDependencies {
  /** Called the moment the job id is known: it must survive whatever comes next. */
  readonly onJobId: (jobId: string) => void
  readonly serverUrl: URL
  readonly readPullRequest: (
    address: PullRequestAddress,
    signal: AbortSignal,
  ) => Promise<PullRequest>
}

/** The agent job may not use up the time that the link needs: so much is kept of it, or a quarter. */
const keptForLinkMs = 60_000

/**
 * Runs the whole export and notes in the receipt what it learns, so that a failure leaves it filled as far
 * as the run came.
 *
 * @throws Failure, see errors.ts
 */
export async function run(
  inputs: Inputs,
  dependencies: RunDependencies,
  receipt: Receipt,
): Promise<void> {
  const { log } = dependencies
  const session = openSession(inputs, dependencies, receipt)
  const ending = new AbortController() // ends what runs beside the export
  const exportEnd = Promise.withResolvers<undefined>()
  let followed: Promise<void> | undefined
  try {
    const { id, started } = await startOrAttach()
    receipt.jobId = id
    receipt.job = started
    dependencies.onJobId(id)
    if (inputs.agentJob) {
      followed = followAgentJob(inputs.agentJob, exportEnd.promise, agentDependencies())
    }
    await session.waitForEnd(id, started)
    exportEnd.resolve(undefined)
    session.waitFor('the agent job')
    await followed
    const bundle = await session.mintLink(id)
    if (targetsOf(inputs.delivery).length > 0) await session.deliver(id, bundle, inputs.delivery)
  } finally {
    ending.abort()
    exportEnd.resolve(undefined)
    await Promise.all([followed, session.close()])
  }

  async function startOrAttach(): Promise<{ id: string; started: ExportJob | undefined }> {
    const { domain = '', jobId, version, paths } = inputs
    if (jobId !== undefined) {
      log.info(`Attached to export job ${jobId}`)
      return { id: jobId, started: undefined }
    }
    const reply = await session.timed('start', () =>
      session.client.startExport({ domain, version, paths }),
    )
    const started = toStartedJob(reply, log)
    log.info(`Export of ${domain} started: job ${started.id}`)
    return { id: started.id, started }
  }

  function agentDependencies() {
    const keptMs = Math.min(keptForLinkMs, inputs.timeoutMs / 4)
    const deadline: Deadline = {
      remainingMs: () => Math.max(0, session.deadline.remainingMs() - keptMs),
    }
    const signal = AbortSignal.any([dependencies.signal, ending.signal])
    return {
      ...dependencies,
      client: session.clientUntil(deadline, signal),
      deadline,
      signal,
      pollIntervalMs: inputs.pollIntervalMs,
      onAgentJob(agentJob: Receipt['agentJob']) {
        receipt.agentJob = agentJob
      },
    }
  }
}
