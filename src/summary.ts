/** The run summary: a receipt that somebody reads in the run page a month later. */
import type { AgentJob } from './agent-job.ts'
import type { Delivery } from './delivery.ts'
import type { Failure } from './errors.ts'
import type { Inputs } from './inputs.ts'
import { describeLink } from './link.ts'
import type { Sample } from './progress.ts'
import type { Phase, Receipt } from './receipt.ts'
import { toOutlook } from './report.ts'
import { escapeMarkdown } from './text.ts'
import { count, formatBytes, formatDuration, formatUtc } from './units.ts'

export interface SummaryFacts {
  readonly receipt: Receipt
  /** Undefined when the inputs were wrong. */
  readonly inputs: ExportInputs | undefined
  readonly failure: Failure | undefined
  readonly startedWallMs: number
  readonly durationMs: number
}

/** What the summary tells of the inputs. */
export type ExportInputs = Pick<Inputs, 'baseUrl' | 'domain' | 'jobId' | 'version' | 'paths'>

const phaseNames: Record<Phase, string> = {
  start: 'start',
  queue: 'waiting in the queue',
  rendering: 'rendering',
  link: 'link',
  download: 'download',
  unpack: 'unpacking',
}

/** The summary of a run as Markdown, on every outcome. Never holds the query of the link. */
export function toSummary(facts: SummaryFacts): string {
  const blocks = [
    heading(facts),
    facts.failure && failureBlock(facts.failure, outlookOf(facts.failure, facts.receipt)),
    exportTable(facts),
    chart(facts.receipt.samples),
    againBlock(facts),
  ]
  return `${blocks.filter((block) => block !== undefined).join('\n\n')}\n`
}

function heading({ inputs, receipt, failure }: SummaryFacts): string {
  const site = inputs?.domain ?? (receipt.jobId === undefined ? undefined : `job ${receipt.jobId}`)
  const of = site === undefined ? '' : ` of ${escapeMarkdown(site)}`
  if (!failure) return `## ✅ Static export${of}`
  if (failure.code === 'cancelled') return `## ⏹️ Static export${of}: cancelled`
  return `## ❌ Static export${of}: failed`
}

function outlookOf(failure: Failure, receipt: Receipt): string | undefined {
  const outlook = toOutlook(failure, receipt)
  return outlook && `${escapeMarkdown(outlook.text)} The lines below pick it up.`
}

/**
 * What failed, why, and what to do.
 *
 * @param outlook what is left to build on, in Markdown
 */
export function failureBlock(failure: Failure, outlook: string | undefined): string {
  const { code, message, serverSaid, tried, advice } = failure
  const [what = '', ...items] = message.split('\n')
  const lines = [
    `> [!CAUTION]`,
    `> **${escapeProse(what)}** (\`${code}\`)`,
    ...items.map((item) => `> - ${escapeProse(item.replace(/^- /, ''))}`),
    ...(serverSaid === undefined
      ? []
      : ['>', `> The service said: “${escapeMarkdown(serverSaid)}”`]),
    ...(tried === undefined ? [] : ['>', `> Given up after ${tried}.`]),
    '>',
    `> **What to do:** ${advice}`, // our own words, in Markdown
    ...(outlook === undefined ? [] : ['>', `> ${outlook}`]),
  ]
  return lines.join('\n')
}

/** Room for all that an error says of Helm's words and of what was done about them. */
const maxProseLength = 2_000

/** A sentence of ours with outside text in it: escaped, but the names of inputs stay set as code. */
function escapeProse(text: string): string {
  return escapeMarkdown(text, maxProseLength).replace(/&#96;([a-z-]+)&#96;/g, '<code>$1</code>')
}

/** The export in two columns; undefined when the inputs were wrong. */
export function exportTable(facts: SummaryFacts): string | undefined {
  const { receipt, inputs, startedWallMs, durationMs } = facts
  const { job, bundle, delivery, agentJob, phaseMs } = receipt
  if (!inputs) return undefined
  const rows: [string, string | undefined][] = [
    ['Site', inputs.domain && escapeMarkdown(inputs.domain)],
    ['Version', inputs.version && escapeMarkdown(inputs.version)],
    ['Pages', pages(job?.pageCount, inputs.paths.length)],
    ['Archive', archive(delivery.sizeBytes ?? bundle?.sizeBytes, delivery.bundleSha256)],
    ['Unpacked', unpacked(delivery)],
    [
      'Link',
      bundle &&
        `works until **${formatUtc(bundle.expiresAtMs)}**<br>${escapeMarkdown(describeLink(bundle.url))}`,
    ],
    ['Job', receipt.jobId && `<code>${escapeMarkdown(receipt.jobId)}</code>${jobStatus(facts)}`],
    ['Admin API', escapeMarkdown(inputs.baseUrl.host)],
    ['Agent job', agentJob && agentRow(agentJob)],
    ['Took', duration(durationMs, phaseMs, phaseNames)],
    ['When', formatUtc(startedWallMs)],
  ]
  return twoColumns(rows)
}

/** A table of names and values, in Markdown and already escaped; rows without a value are left out. */
export function twoColumns(rows: readonly (readonly [string, string | undefined])[]): string {
  const [first = '', ...others] = rows.flatMap(([name, value]) =>
    value ? [`| **${name}** | ${value} |`] : [],
  )
  // The first row is the head: Markdown has no table without one, and an empty one looks broken.
  return [first, '| :-- | :-- |', ...others].join('\n')
}

function pages(pageCount: number | undefined, pathCount: number): string | undefined {
  if (pageCount === undefined) return undefined
  return pathCount === 0 ? `${pageCount}` : `${pageCount} (${count(pathCount, 'path')} asked for)`
}

function archive(sizeBytes: number | undefined, sha256: string | undefined): string | undefined {
  if (sizeBytes === undefined) return undefined
  return `${formatBytes(sizeBytes)}${sha256 === undefined ? '' : `<br>sha256 <code>${sha256}</code>`}`
}

function unpacked({ fileCount, unpackedBytes }: Delivery): string | undefined {
  if (fileCount === undefined || unpackedBytes === undefined) return undefined
  return `${count(fileCount, 'file')}, ${formatBytes(unpackedBytes)}`
}

function jobStatus({ receipt: { job }, failure, inputs }: SummaryFacts): string {
  const attached = inputs?.jobId === undefined ? '' : ' (attached)'
  if (!failure || !job) return attached
  const showPercent = job.percent !== undefined && job.status !== 'completed'
  const percent = showPercent ? ` at ${Math.floor(job.percent)} %` : ''
  return `${attached}, last seen ${escapeMarkdown(job.status)}${percent}`
}

function agentRow({ status, prLink, pullRequest }: AgentJob): string {
  if (prLink === undefined) return `${escapeMarkdown(status)}, no pull request`
  const title = pullRequest?.title.trim() ? pullRequest.title : prLink
  const state = pullRequest ? ` (${pullRequest.state})` : ''
  return `${escapeMarkdown(status)}: <a href="${escapeMarkdown(prLink, 2_000)}">${escapeMarkdown(title, 200)}</a>${state}`
}

/** How long it took as a whole, and each part of it, the longest in bold. */
export function duration<Part extends string>(
  durationMs: number,
  partMs: ReadonlyMap<Part, number>,
  names: Readonly<Record<Part, string>>,
): string {
  const slowestMs = Math.max(...partMs.values())
  const parts = [...partMs].map(([part, ms]) => {
    const text = `${names[part]} ${formatDuration(ms)}`
    return ms > 0 && ms === slowestMs ? `**${text}**` : text
  })
  const detail = parts.length === 0 ? '' : ` (${parts.join(', ')})`
  return `${formatDuration(durationMs)}${detail}`
}

/** The default line is all but invisible on white; this green reads on light and dark pages. */
const chartStyle =
  '%%{init: {"xyChart": {"height": 300}, "themeVariables": {"xyChart": {"plotColorPalette": "#2ea043"}}}}%%'
const fewestSamples = 5
const chartPoints = 20

/** The progress over time; the chart type spaces its points evenly, so they are interpolated. */
function chart(samples: readonly Sample[]): string | undefined {
  const points = samples.flatMap(({ atMs, percent }) =>
    percent === undefined ? [] : [{ atMs, percent }],
  )
  const first = points[0]
  const last = points.at(-1)
  if (points.length < fewestSamples || !first || !last || last.atMs - first.atMs < 1_000) {
    return undefined
  }
  const spanMs = last.atMs - first.atMs
  const values = Array.from({ length: chartPoints + 1 }, (_, index) => {
    const atMs = first.atMs + (spanMs * index) / chartPoints
    const nextIndex = points.findIndex((point) => point.atMs >= atMs)
    const next = points[nextIndex] ?? last
    const previous = points[nextIndex - 1] ?? next
    const share = next === previous ? 0 : (atMs - previous.atMs) / (next.atMs - previous.atMs)
    return Math.round(previous.percent + (next.percent - previous.percent) * share)
  })
  const [unit, unitMs] = spanMs > 180_000 ? ['minutes', 60_000] : ['seconds', 1_000]
  const axis = (atMs: number) => Math.round((atMs / unitMs) * 10) / 10
  return [
    '```mermaid',
    chartStyle,
    'xychart-beta',
    '  title "Progress of the export"',
    `  x-axis "${unit}" ${axis(first.atMs)} --> ${axis(last.atMs)}`,
    '  y-axis "percent" 0 --> 100',
    `  line [${values.join(', ')}]`,
    '```',
  ].join('\n')
}

/** The lines that resume a wait, or mint a fresh link for the same export. */
function againBlock({ receipt, inputs, failure }: SummaryFacts): string | undefined {
  const outlook = failure && toOutlook(failure, receipt)
  if (!inputs || receipt.jobId === undefined || (failure && !outlook)) return undefined
  const title = failure
    ? 'Pick this export up again'
    : 'Get a fresh link for this export, also after this one has expired'
  return [
    `<details${failure ? ' open' : ''}><summary>${title}</summary>`,
    '',
    '```yaml',
    'with:',
    '  api-key: ${{ secrets.ADMIN_API_KEY }} # your secret',
    `  base-url: ${inputs.baseUrl.href.replace(/\/$/, '')}`,
    `  job-id: ${receipt.jobId}`,
    '```',
    '',
    '</details>',
  ].join('\n')
}
