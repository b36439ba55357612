/** The bundle: asking for a link to the archive, and what the answer is worth. */
import type { Client } from './client.ts'
import { Failure } from './errors.ts'
import { linkProblem, parseTimestampMs, secretsOf, signedExpiryMs } from './link.ts'
import type { Log } from './log.ts'
import type { BundleReply } from './schemas.ts'
import { clean } from './text.ts'
import { formatDuration } from './units.ts'

export interface Bundle {
  readonly url: URL
  /** As the service says it, or derived from the link where the service does not. */
  readonly expiresAt: string
  /** The end of the link that we trust, in epoch milliseconds: the earlier of what is known. */
  readonly expiresAtMs: number
  readonly sizeBytes: number | undefined
}

export interface BundleDependencies {
  readonly client: Client
  readonly baseUrl: URL
  readonly log: Log
  /** Makes the runner hide a value from now on; undefined when the link is not to be masked. */
  readonly mask: ((secret: string) => void) | undefined
}

/** A link that ends sooner than this is worth a warning: a deployment takes its time. */
export const shortLifeMs = 15 * 60_000
const tolerableDifferenceMs = 60_000

/**
 * Asks for a link to the archive of a completed job; once more when the link is dead on arrival.
 *
 * @throws Failure `protocol` when the answer cannot be used, `expired`, and whatever asking can end in
 */
export async function mintBundle(jobId: string, dependencies: BundleDependencies): Promise<Bundle> {
  const { client, log } = dependencies
  for (let mints = 1; ; mints += 1) {
    const bundle = toBundle(await client.createBundle(jobId), jobId, dependencies)
    const lifeMs = bundle.expiresAtMs - client.serverWallMs()
    if (lifeMs > 0) {
      if (lifeMs < shortLifeMs) {
        log.warning(
          `The link works only for ${formatDuration(lifeMs)} more. Use it at once, or mint a fresh one with \`job-id\`.`,
        )
      }
      return bundle
    }
    if (mints > 1) {
      throw new Failure('expired', 'The service handed out a link that had already expired, twice.')
    }
    log.details('The link had already expired when it arrived; asking for a fresh one', [])
  }
}

/** @throws Failure `protocol`, never with the link in it */
function toBundle(reply: BundleReply, jobId: string, dependencies: BundleDependencies): Bundle {
  const { baseUrl, log, mask } = dependencies
  if (typeof reply.jobId === 'string' && reply.jobId !== jobId) {
    throw new Failure('protocol', `Asked for the bundle of job ${jobId}, got that of another one.`)
  }
  const url = URL.parse(reply.bundleUrl)
  if (!url) throw unusableLink('it is not a URL')
  if (mask) for (const secret of secretsOf(url)) mask(secret)

  const problem = linkProblem(url, baseUrl)
  if (problem !== undefined) throw unusableLink(problem)

  const stated = parseTimestampMs(reply.expiresAt)
  const signed = signedExpiryMs(url)
  const expiresAtMs = Math.min(stated ?? Infinity, signed ?? Infinity)
  if (expiresAtMs === Infinity) {
    const what = 'The service does not say until when the link works, and the link does not either.'
    throw new Failure('protocol', what)
  }
  if (
    stated !== undefined &&
    signed !== undefined &&
    Math.abs(stated - signed) > tolerableDifferenceMs
  ) {
    log.warning(
      `The service says that the link works until ${new Date(stated).toISOString()}, its signature until ${new Date(signed).toISOString()}. The earlier counts.`,
    )
  }
  return {
    url,
    expiresAt:
      stated !== undefined && typeof reply.expiresAt === 'string'
        ? reply.expiresAt
        : new Date(expiresAtMs).toISOString(),
    expiresAtMs,
    sizeBytes: readSizeBytes(reply.sizeBytes),
  }
}

function unusableLink(problem: string): Failure {
  return new Failure('protocol', `The service handed out a link that cannot be used: ${problem}.`)
}

function readSizeBytes(sizeBytes: unknown): number | undefined {
  if (sizeBytes === undefined || sizeBytes === null) return undefined
  if (Number.isSafeInteger(sizeBytes) && Number(sizeBytes) > 0) return Number(sizeBytes)
  const seen = typeof sizeBytes === 'object' ? 'an object' : clean(JSON.stringify(sizeBytes), 40)
  throw new Failure('protocol', `The service reports an impossible \`sizeBytes\`: ${seen}.`)
}
