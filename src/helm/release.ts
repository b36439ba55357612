/** The release: what is deployed now, whether it is locked, and the way back. Deployed is a status, not the last revision. */
import { Failure } from '../errors.ts'
import { clean } from '../text.ts'
import type { ChartIdentity, Helm, Revision, Within } from './helm.ts'

export interface ReleaseState {
  /** The newest revision, whatever became of it; 0 when there is no release. */
  readonly newestRevision: number
  readonly deployed: DeployedRevision | undefined
  /** An operation that has begun and not ended: a word on it, for the user. */
  readonly pending: string | undefined
}

export interface DeployedRevision {
  readonly revision: number
  readonly chart: ChartIdentity
  /** As Helm writes it. */
  readonly updated: string
}

export interface ReleasePlace {
  readonly release: string
  readonly namespace: string
  readonly kubeContext?: string | undefined
}

/** Reads what there is of a release. */
export async function readRelease(helm: Helm, within: Within): Promise<ReleaseState> {
  const status = await helm.status(within)
  if (!status) return { newestRevision: 0, deployed: undefined, pending: undefined }
  const { revision, status: word, lastDeployed } = status
  const since = clean(lastDeployed, 60)
  const pending = isPending(word)
    ? `revision ${revision} is ${clean(word, 40)} since ${since}`
    : undefined
  return { newestRevision: revision, deployed: await readDeployed(helm, within), pending }
}

/** Whether an operation has begun and not ended, by the status of a revision: Helm then begins no other. */
export function isPending(status: string): boolean {
  return status.startsWith('pending-') || status === 'uninstalling'
}

/** @throws Failure `release-locked` when an operation has begun and not ended, with the command that frees it */
export function assertUnlocked(state: ReleaseState, place: ReleasePlace): void {
  const lock = lockOf(state, place)
  if (lock) throw lock
}

/** What keeps other operations from beginning; undefined when nothing does. */
export function lockOf(
  { pending, deployed }: ReleaseState,
  place: ReleasePlace,
): Failure | undefined {
  if (pending === undefined) return undefined
  return lockedRelease(`Release ${place.release} is locked: its ${pending}.`, place, deployed)
}

/** The newest revision with the status `deployed`; undefined when there is none. */
export async function readDeployed(
  helm: Helm,
  within: Within,
): Promise<DeployedRevision | undefined> {
  const found = (await helm.history(within)).find(({ status }) => status === 'deployed')
  if (!found) return undefined
  return withChart(found, helm, within)
}

/** A revision of the history with its chart. */
export async function withChart(
  { revision, updated }: Revision,
  helm: Helm,
  within: Within,
): Promise<DeployedRevision> {
  return { revision, updated, chart: await helm.chartOf(revision, within) }
}

/** A release that another operation holds, with the command that frees it. */
export function lockedRelease(
  what: string,
  place: ReleasePlace,
  deployed: DeployedRevision | undefined,
): Failure {
  // Never a rollback to a half install: it would be marked as deployed.
  const command = wayBackCommand(place, deployed?.revision)
  return new Failure('release-locked', what, {
    advice: `Only if no other run is deploying this release: \`${command}\` frees it. Then run this step again.`,
  })
}

/** The command that goes back to a revision; without one, the command that takes the release away. */
export function wayBackCommand(place: ReleasePlace, revision: number | undefined): string {
  return revision === undefined
    ? `helm uninstall ${at(place)}`
    : `helm rollback ${at(place, revision)} --wait`
}

/** The command that shows what there is. */
export function historyCommand(place: ReleasePlace): string {
  return `helm history ${at(place)}`
}

/** What to do when nobody knows what was left. */
export function lookFirst(place: ReleasePlace, revision: number | undefined): string {
  return `Look at \`${historyCommand(place)}\`; \`${wayBackCommand(place, revision)}\` goes back.`
}

function at({ release, namespace, kubeContext }: ReleasePlace, revision?: number): string {
  const context = kubeContext === undefined ? [] : ['--kube-context', quoted(kubeContext)]
  return [release, ...(revision === undefined ? [] : [revision]), '-n', namespace, ...context].join(
    ' ',
  )
}

/** For a shell. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}
