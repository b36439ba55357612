/** Verifying a deployment: one page of the site, as visitors see it, must become that of the archive. */
import type { Clock } from './clock.ts'
import type { Disk } from './disk.ts'
import type { Log } from './log.ts'
import type { Storage } from './network.ts'

export interface VerifyRequest {
  /** The page as visitors ask for it. */
  readonly url: URL
  readonly archiveFile: string
  /** How long `after` waits for the page. */
  readonly timeoutMs: number
  /** The input that bounds it, for the advice: `helm-timeout-minutes`; undefined where it is fixed. */
  readonly timeoutInput?: string | undefined
}

export interface VerifyDependencies {
  readonly storage: Storage
  readonly disk: Pick<Disk, 'read'>
  readonly clock: Clock
  /** From 0 to 1. */
  readonly random: () => number
  readonly log: Log
  readonly signal: AbortSignal
}

export interface Verified {
  /** The page of the archive: `guides/start.html`. */
  readonly page: string
  /** Lower-case hex. */
  readonly sha256: string
  /** From the call of `after` until the page was seen. */
  readonly durationMs: number
  /** Whether the page had matched before the deployment: then this proves reachability only. */
  readonly matchedBefore: boolean
}

export interface Verifier {
  /** Looks once, before anything is deployed. Never fails because of what the site answers. */
  before(): Promise<void>
  /** @throws Failure `verify-failed` with what was seen last */
  after(): Promise<Verified>
}

/**
 * Reads the page's hash from the archive.
 *
 * @throws Failure `config` when the archive has no such page, naming the paths that were looked for
 */
export function createVerifier(
  request: VerifyRequest,
  dependencies: VerifyDependencies,
): Promise<Verifier> {
  throw new Error(`not written yet ${request.url.host} ${dependencies.random()}`)
}
