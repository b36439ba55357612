/** The closed list of ways in which a run can fail, each with its advice. */
import { clean } from './text.ts'

/** The values of the `failureCode` output of every action. */
export const failureCodes = [
  'config',
  'environment',
  'auth',
  'forbidden',
  'bad-request',
  'not-found',
  'conflict',
  'rate-limited',
  'server',
  'network',
  'timeout',
  'tls',
  'proxy',
  'protocol',
  'job-failed',
  'expired',
  'integrity',
  'unsafe-archive',
  'disk',
  'cancelled',
  'internal',
] as const

/** What the deploying actions add. */
export const deployFailureCodes = [
  'deploy-failed',
  'release-locked',
  'verify-failed',
  'storage-failed',
] as const

export type FailureCode = (typeof failureCodes)[number] | (typeof deployFailureCodes)[number]

/** What a failure says beyond its first sentence. Outside text in it is already clean. */
export interface FailureDetails {
  /** The service's own words. */
  readonly serverSaid?: string | undefined
  /** What was tried: `5 tries in 31 s`. */
  readonly tried?: string | undefined
  /** What to do next, where the code's own advice is too general. */
  readonly advice?: string | undefined
  readonly cause?: unknown
}

/** An end of the run that we understand: a word of the closed list, what failed, and what to do next. */
export class Failure extends Error {
  override readonly name = 'Failure'
  readonly code: FailureCode
  readonly serverSaid: string | undefined
  readonly tried: string | undefined
  readonly advice: string

  constructor(code: FailureCode, what: string, details: FailureDetails = {}) {
    super(what, { cause: details.cause })
    this.code = code
    this.serverSaid = details.serverSaid
    this.tried = details.tried
    this.advice = details.advice ?? generalAdvice[code]
  }
}

const generalAdvice: Record<FailureCode, string> = {
  config: 'Correct the inputs of this step; nothing was sent.',
  environment:
    'Run this action as a step of a workflow, on a runner that may write its own files and has room for them.',
  auth: 'The API key may be wrong, revoked or expired (keys can have an end date). Create a new admin key on the API keys page of the dashboard and update the secret.',
  forbidden:
    'Four causes are known: static export is not enabled for the organisation, the key lacks the `write` scope, the address of this runner is outside the allowlist of the key (GitHub-hosted runners change theirs), or the site is behind a login.',
  'bad-request': 'The service refused the request as it was; its answer tells why.',
  'not-found': 'Is `base-url` the root of the Admin API, without /v1?',
  conflict: 'Something else is going on at the service. Try again in a while.',
  'rate-limited': 'There were too many requests. Wait, then try again.',
  server: 'The Admin API has a problem of its own. Try again later.',
  network:
    'Check `base-url`, the DNS and the firewall of the runner, and whether it needs a proxy (`HTTPS_PROXY`).',
  timeout: 'Raise `timeout-minutes`, or try again later.',
  tls: 'On a runner behind a TLS proxy, or with a private certificate authority, set NODE_EXTRA_CA_CERTS to its certificate file.',
  proxy: 'Check `HTTPS_PROXY` and `NO_PROXY` on the runner, and the credentials in them.',
  protocol:
    'The answer is not one of the Admin API. Check `base-url`, and whether a proxy or a login page stands in between.',
  'job-failed': 'Correct what the reason names in the documentation, then export again.',
  expired: 'Run again with `job-id` to get a fresh link. If it happens again, check the clocks.',
  integrity: 'Run again with `job-id` to fetch the archive once more.',
  'unsafe-archive': 'The archive holds what a static site does not need. Report it to the service.',
  disk: 'Make room or choose another path.',
  cancelled: 'Run again when you are ready.',
  'deploy-failed': 'Correct what the reason names, then run this step again.',
  'release-locked': 'Wait until no other run is deploying this release, then free it.',
  'verify-failed': 'Look at the page yourself; what was deployed stays.',
  'storage-failed': 'Check the bucket, its region and the permissions of the credentials.',
  internal: 'This is a mistake of the action. Please report it with the log of this step.',
}

/** Anything that was thrown as a failure: unknown errors become `internal`. */
export function toFailure(error: unknown): Failure {
  if (error instanceof Failure) return error
  return new Failure('internal', `Unexpected error: ${clean(describe(error))}`, { cause: error })
}

/** Anything can be thrown, also what cannot be made a string of. */
function describe(error: unknown): string {
  try {
    if (!Error.isError(error)) return String(error)
    return error.message === '' ? error.name : `${error.name}: ${error.message}`
  } catch {
    return 'an unprintable value'
  }
}
