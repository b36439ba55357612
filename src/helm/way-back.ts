/** The way back of an upgrade that did not go well: decided by the history of the release alone. */
import type { Attempt } from './attempt.ts'
import type { Revision } from './helm.ts'
import { isPending } from './release.ts'

type Made = Pick<Attempt, 'ours' | 'helmHasSucceeded'> & {
  readonly request: Pick<Attempt['request'], 'before'>
}

export type WayBack =
  /** Helm has made no revision. */
  | { readonly kind: 'unchanged' }
  /** The newest revision is not known to be ours. */
  | { readonly kind: 'foreign'; readonly newest: Revision }
  /** The release existed and was never deployed: there is nothing to go back to. */
  | { readonly kind: 'leave'; readonly newest: Revision }
  | { readonly kind: 'uninstall' }
  | { readonly kind: 'rollback'; readonly to: number; readonly newest: Revision }

/** @param history the newest first */
export function planWayBack(history: readonly Revision[], attempt: Made): WayBack {
  const { request, ours } = attempt
  const { before } = request
  const [newest] = history
  if (!newest || newest.revision <= before.newestRevision) return { kind: 'unchanged' }
  if (!ours.has(newest.revision)) return { kind: 'foreign', newest }
  const to = formerRevision(history, attempt)
  if (to !== undefined) return { kind: 'rollback', to, newest }
  const isAllOurs = history.every(({ revision }) => ours.has(revision))
  return isAllOurs ? { kind: 'uninstall' } : { kind: 'leave', newest }
}

/** What was deployed before ours: a moment ago, unless another run has deployed since. */
export function formerRevision(
  history: readonly Revision[],
  { request: { before }, ours }: Made,
): number | undefined {
  const first = Math.min(...ours)
  const between = history.find(
    ({ revision, status }) =>
      revision < first &&
      revision > before.newestRevision &&
      /^(?:deployed|superseded)$/.test(status),
  )
  return between?.revision ?? before.deployed?.revision
}

/**
 * Whether the newest revision may be ours, by its status: Helm marks what it has begun and not brought to an end as
 * failed, and leaves it pending when it is killed; what is deployed without our Helm having said so is another's. Its
 * values decide.
 */
export function mayBeOurs(
  { revision, status }: Revision,
  { request: { before }, ours, helmHasSucceeded }: Made,
): boolean {
  const isNew = revision > before.newestRevision && !ours.has(revision)
  return isNew && (helmHasSucceeded || status === 'failed' || isPending(status))
}
