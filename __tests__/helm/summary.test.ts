/** The summary of a deployment: what somebody who opens the run page has to know. */
import { describe, expect, test } from '@jest/globals'
import { marked } from 'marked'
import { Failure } from '../../src/errors.ts'
import { type HelmInputs, readHelmInputs } from '../../src/helm/inputs.ts'
import { type HelmReceipt, emptyHelmReceipt } from '../../src/helm/receipt.ts'
import type { DeployedRevision } from '../../src/helm/release.ts'
import { toHelmSummary } from '../../src/helm/summary.ts'
import { emptyReceipt } from '../../src/receipt.ts'
import { places } from '../support/places.ts'

const minute = 60_000
const atMs = (time: string) => Date.parse(`2026-11-20T${time}Z`)
const signature = 'X-Amz-Signature=0123456789abcdef'

const inputs: HelmInputs = await readHelmInputs(
  (name) =>
    ({
      'api-key': 'mint_secret_0123456789',
      'base-url': 'https://api.acme.test',
      'job-id': 'se_1',
      release: 'docs',
      chart: 'docs',
      'chart-repository': 'https://charts.test',
      namespace: 'web',
    })[name as string] ?? '',
  () => undefined,
  places,
)

const deployed = (revision: number, version = '1.0.0'): DeployedRevision => ({
  revision,
  chart: { name: 'docs', version },
  updated: '2026-11-19T08:30:00.123456789Z',
})

/** What a run has learned that got as far as the link. */
function receiptOf(more: Partial<HelmReceipt> = {}): HelmReceipt {
  const exported = emptyReceipt()
  exported.jobId = 'se_1'
  exported.job = { status: 'completed', percent: 100, pageCount: 321 } as typeof exported.job
  exported.bundle = {
    url: new URL(`https://storage.test/se_1/docs.tar.gz?${signature}`),
    expiresAt: '2026-11-20T13:00:00Z',
    expiresAtMs: atMs('13:00:00'),
    sizeBytes: 1_234_567,
  }
  return {
    ...emptyHelmReceipt(exported),
    helmVersion: '4.2.4',
    attempted: true,
    live: { deployed: undefined },
    ...more,
  }
}

const times = { startedWallMs: atMs('12:00:00'), durationMs: 3 * minute }

function summarize(receipt: HelmReceipt, failure?: Failure): string {
  return toHelmSummary({ receipt, inputs, failure, ...times })
}

/** The first table, as names and values, as GitHub shows them. */
function rows(markdown: string): Record<string, string> {
  const table = /<table>.*?<\/table>/s.exec(marked.parse(markdown, { async: false }))?.[0] ?? ''
  const cells = [...table.matchAll(/<t[hd](?: [^>]*)?>(.*?)<\/t[hd]>/gs)].map(([, cell = '']) =>
    cell
      .replace(/<br>/g, ' ')
      .replace(/<[^>]+>/g, '')
      .replace(/&#(\d+);/g, (_all, code: string) => String.fromCharCode(Number(code))),
  )
  const pairs = cells.flatMap((cell, index) =>
    index % 2 === 0 ? [[cell, cells[index + 1] ?? ''] as const] : [],
  )
  return Object.fromEntries(pairs)
}

describe('a first install', () => {
  const receipt = receiptOf({ live: { deployed: deployed(1) }, liveSinceMs: atMs('12:03:00') })

  test('tells what is live, since when, and how to take it away', () => {
    const markdown = summarize(receipt)
    expect(markdown).toMatch(/^## ✅ Helm deployment of docs in web\n/)
    expect(rows(markdown)).toMatchObject({
      'Live now': 'revision 1, chart docs 1.0.0, since 2026-11-20 12:03 UTC',
      Before: 'nothing',
      'Roll back': 'helm uninstall docs -n web',
      Helm: '4.2.4',
    })
  })

  test('tells how long the link works, and what happens then', () => {
    const { Link } = rows(summarize(receipt))
    expect(Link).toContain('works until 2026-11-20 13:00 UTC')
    expect(Link).toContain('Pods that start later cannot fetch it')
    expect(Link).toContain('mirror-bucket')
  })

  test('has the receipt of the export below, folded', () => {
    const markdown = summarize(receipt)
    const folded = markdown.slice(markdown.indexOf('<details>'))
    expect(rows(folded)).toMatchObject({ Pages: '321', Archive: '1.2 MB', Job: 'se_1 (attached)' })
    expect(markdown.indexOf('Pages')).toBeGreaterThan(markdown.indexOf('<details>'))
  })

  test('never holds what opens the link', () => {
    expect(summarize(receipt)).not.toMatch(/Signature|0123456789/)
  })
})

test('an upgrade tells both revisions, and the command that goes back to the first', () => {
  const receipt = receiptOf({
    before: deployed(4, '1.0.0'),
    live: { deployed: deployed(5, '1.3.0') },
    liveSinceMs: atMs('12:03:00'),
    stepMs: new Map([
      ['upgrade', 2 * minute],
      ['readiness', 1_000],
    ]),
  })
  expect(rows(summarize(receipt))).toMatchObject({
    'Live now': 'revision 5, chart docs 1.3.0, since 2026-11-20 12:03 UTC',
    Before: 'revision 4, chart docs 1.0.0',
    'Roll back': 'helm rollback docs 4 -n web --wait',
    Took: '3m 00s (Helm 2m 00s, becoming ready 1 s)',
  })
})

test.each([
  [true, 'uploaded by this run'],
  [false, 'was there before'],
])('a mirror tells its address, which does not expire (uploaded: %s)', (uploaded, words) => {
  const url = `https://mirror.test/docs/${'a'.repeat(64)}.tar.gz`
  const receipt = receiptOf({
    live: { deployed: deployed(1) },
    liveSinceMs: atMs('12:03:00'),
    mirrored: { url, uploaded },
  })
  const table = rows(summarize(receipt))
  expect(table['Mirror']).toContain(url)
  expect(table['Mirror']).toContain(words)
  expect(table['Mirror']).toContain('does not expire')
  expect(table['Link']).toBeUndefined()
})

test.each([
  [false, /^guides\/start\.html$/],
  [true, /^guides\/start\.html .*proves only that it can be reached/],
])('a verified page is named (the same before: %s)', (matchedBefore, words) => {
  const verified = { page: 'guides/start.html', matchedBefore }
  const receipt = receiptOf({
    live: { deployed: deployed(1) },
    liveSinceMs: atMs('12:03:00'),
    verified,
  })
  expect(rows(summarize(receipt))['Verified']).toMatch(words)
})

describe('a failure', () => {
  const reasons = ['Deployment docs: 0 of 2 ready', 'pod docs-a: web: ImagePullBackOff']
  const rolledBack = (said: string) =>
    new Failure(
      'deploy-failed',
      `The upgrade of docs failed. Helm said: "${said}" Rolled back to revision 4.\n- ${reasons.join('\n- ')}`,
      { advice: 'Correct what keeps it from being ready, or raise `helm-timeout-minutes`.' },
    )
  const receipt = receiptOf({
    before: deployed(4),
    live: { deployed: deployed(6) },
    reasons,
    putBack: 4,
  })

  test('tells what failed, what the pods say, what is live now, and what to do', () => {
    const markdown = summarize(receipt, rolledBack('context deadline exceeded'))
    expect(markdown).toMatch(/^## ❌ Helm deployment of docs in web: failed\n/)
    const html = marked.parse(markdown, { async: false })
    expect(html).toContain('The upgrade of docs failed.')
    expect(html).toContain('Rolled back to revision 4.')
    for (const reason of ['0 of 2 ready', 'ImagePullBackOff']) {
      expect(html).toMatch(new RegExp(`<li>.*${reason}.*</li>`))
    }
    expect(html).toContain('<code>helm-timeout-minutes</code>')
    expect(rows(markdown)).toMatchObject({
      'Live now': 'revision 6, chart docs 1.0.0 (revision 4 put back), since 2026-11-19 08:30 UTC',
      Before: 'revision 4, chart docs 1.0.0',
    })
    // Nothing of this run is live: neither its link nor a way back from it is of any use.
    expect(rows(markdown)['Roll back']).toBeUndefined()
    expect(rows(markdown)['Link']).toBeUndefined()
  })

  test('tells of the rollback also when Helm had much to say', () => {
    const markdown = summarize(receipt, rolledBack('on and on '.repeat(69)))
    expect(markdown).toContain('Rolled back to revision 4.')
  })

  test('before anything was read of the release claims nothing about it', () => {
    const exported = emptyReceipt()
    exported.jobId = 'se_1'
    const unknown = emptyHelmReceipt(exported)
    const markdown = summarize(unknown, new Failure('network', 'The cluster cannot be reached.'))
    expect(markdown).toContain('The cluster cannot be reached.')
    expect(rows(markdown)['Live now'] ?? '').not.toContain('nothing')
    expect(rows(markdown)['Before']).toBeUndefined()
  })

  test('that leaves what is new in place tells the way back', () => {
    const live = receiptOf({
      before: deployed(4),
      live: { deployed: deployed(5) },
      liveSinceMs: atMs('12:03:00'),
    })
    const failure = new Failure('verify-failed', 'docs.test/ did not become index.html')
    expect(rows(summarize(live, failure))).toMatchObject({
      'Live now': 'revision 5, chart docs 1.0.0, since 2026-11-20 12:03 UTC',
      'Roll back': 'helm rollback docs 4 -n web --wait',
    })
  })

  test('of the inputs tells nothing else', () => {
    const unread = emptyHelmReceipt(emptyReceipt())
    const failure = new Failure('config', '`release` is missing: the name of the Helm release.')
    const markdown = toHelmSummary({ receipt: unread, inputs: undefined, failure, ...times })
    expect(markdown).toMatch(/^## ❌ Helm deployment: failed\n/)
    expect(markdown).toContain('<code>release</code> is missing')
    expect(markdown).not.toContain('|')
  })

  test('shows what the cluster says as text, whatever it holds', () => {
    const failure = new Failure(
      'deploy-failed',
      'The upgrade of docs failed.\n- pod <img src=x onerror=alert(1)>: [click](https://evil.test) | `x`',
    )
    const html = marked.parse(summarize(receipt, failure), { async: false })
    expect(html).not.toMatch(/<img|<a /)
  })
})

test('a run that was cancelled is not called a failure', () => {
  const receipt = receiptOf({ before: deployed(4), live: { deployed: deployed(6) } })
  const failure = new Failure('cancelled', 'Cancelled by SIGINT. Rolled back to revision 4.')
  const markdown = summarize(receipt, failure)
  expect(markdown).toMatch(/^## ⏹️ Helm deployment of docs in web: cancelled\n/)
  expect(markdown).toContain('Rolled back to revision 4.')
})
