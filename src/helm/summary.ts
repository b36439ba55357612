/** The run summary of a deployment: what is live now, the way back, and the export behind it. */
import type { RunTimes } from '../action.ts'
import type { Failure } from '../errors.ts'
import { toOutlook } from '../report.ts'
import { duration, exportTable, failureBlock, twoColumns } from '../summary.ts'
import { escapeMarkdown } from '../text.ts'
import { formatUtc } from '../units.ts'
import type { HelmInputs } from './inputs.ts'
import type { HelmReceipt, HelmStep, Live } from './receipt.ts'
import { type DeployedRevision, wayBackCommand } from './release.ts'

export interface HelmSummaryFacts extends RunTimes {
  readonly receipt: HelmReceipt
  /** Undefined when the inputs were wrong. */
  readonly inputs: HelmInputs | undefined
  readonly failure: Failure | undefined
}

const stepNames: Record<HelmStep, string> = {
  mirror: 'mirror',
  upgrade: 'Helm',
  readiness: 'becoming ready',
  rollback: 'rollback',
  verification: 'verification',
}

/** The summary of a deployment as Markdown, on every outcome. Never holds the query of the link. */
export function toHelmSummary(facts: HelmSummaryFacts): string {
  const { receipt, failure } = facts
  const blocks = [
    heading(facts),
    failure && failureBlock(failure, toOutlook(failure, receipt.exported)?.text),
    table(facts),
    exportBlock(facts),
  ]
  return `${blocks.filter((block) => block !== undefined).join('\n\n')}\n`
}

function heading({ inputs, failure }: HelmSummaryFacts): string {
  const of = inputs
    ? ` of ${escapeMarkdown(inputs.release)} in ${escapeMarkdown(inputs.namespace)}`
    : ''
  if (!failure) return `## ✅ Helm deployment${of}`
  if (failure.code === 'cancelled') return `## ⏹️ Helm deployment${of}: cancelled`
  return `## ❌ Helm deployment${of}: failed`
}

function table(facts: HelmSummaryFacts): string | undefined {
  const { inputs, receipt, durationMs } = facts
  if (!inputs) return undefined
  const { before, live, verified, helmVersion, contextName, stepMs } = receipt
  const changed = live !== undefined && live.deployed?.revision !== before?.revision
  return twoColumns([
    ['Live now', live ? liveNow(live, receipt) : receipt.attempted ? 'not known' : ''],
    ['Before', changed ? (before ? revision(before) : 'nothing') : ''],
    ['Roll back', rollBack(facts)],
    ['Link', lifeOfLink(facts)],
    ['Mirror', receipt.mirrored && mirror(receipt.mirrored)],
    [
      'Verified',
      verified &&
        `${code(verified.page)}${verified.matchedBefore ? ' (it was the same before: this proves only that it can be reached)' : ''}`,
    ],
    ['Context', contextName && code(contextName)],
    ['Helm', helmVersion && escapeMarkdown(helmVersion)],
    ['Took', duration(durationMs, stepMs, stepNames)],
  ])
}

function liveNow({ deployed }: Live, { putBack, liveSinceMs }: HelmReceipt): string {
  if (!deployed) return 'nothing'
  const origin = putBack === undefined ? '' : ` (revision ${putBack} put back)`
  const sinceMs = liveSinceMs ?? Date.parse(deployed.updated)
  const since = Number.isNaN(sinceMs) ? '' : `, since ${formatUtc(sinceMs)}`
  return `**${revision(deployed)}**${origin}${since}`
}

function revision({ revision: number, chart }: DeployedRevision): string {
  return `revision ${number}, chart ${escapeMarkdown(chart.name, 80)} ${escapeMarkdown(chart.version, 80)}`
}

/** The exact command, only where this run has moved on. */
function rollBack({ inputs, receipt: { before, liveSinceMs } }: HelmSummaryFacts): string {
  if (!inputs || liveSinceMs === undefined) return ''
  return code(wayBackCommand(inputs, before?.revision))
}

function lifeOfLink({ receipt }: HelmSummaryFacts): string {
  const { bundle } = receipt.exported
  if (receipt.mirrored || receipt.liveSinceMs === undefined || !bundle) return ''
  return `works until **${formatUtc(bundle.expiresAtMs)}**. Pods that start later cannot fetch it, unless the chart keeps what it fetched: deploy again, or use a mirror (${code('mirror-bucket')}).`
}

function mirror({ url, uploaded }: { readonly url: string; readonly uploaded: boolean }): string {
  return `${escapeMarkdown(url, 400)}<br>${uploaded ? 'uploaded by this run' : 'was there before'}; does not expire`
}

function code(text: string): string {
  return `<code>${escapeMarkdown(text, 300)}</code>`
}

function exportBlock(facts: HelmSummaryFacts): string | undefined {
  const { inputs, receipt, failure, startedWallMs, durationMs } = facts
  const exported = exportTable({
    receipt: receipt.exported,
    inputs: inputs && { ...inputs, domain: undefined, paths: [] },
    failure,
    startedWallMs,
    durationMs,
  })
  if (exported === undefined) return undefined
  return `<details><summary>The export behind it</summary>\n\n${exported}\n\n</details>`
}
