/** The sample chart: what both Helms make of it, and its script, run with the shell of this machine. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import process from 'node:process'
import { afterEach, test } from 'node:test'
import { loadAll } from 'js-yaml'
import { startEmulator } from '../emulator/index.ts'
import { sampleProcesses } from './act/processes.ts'
import { tools } from './tools/tools.ts'

interface Manifest {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> }
  readonly data?: Readonly<Record<string, string>>
  readonly spec?: {
    readonly selector: { readonly matchLabels?: object }
    readonly template: {
      readonly metadata: {
        readonly labels: Readonly<Record<string, string>>
        readonly annotations: Readonly<Record<string, string>>
      }
      readonly spec: {
        readonly initContainers?: readonly {
          readonly command: readonly string[]
          readonly env: readonly {
            readonly valueFrom?: { readonly secretKeyRef: { readonly name: string } }
          }[]
        }[]
        readonly containers: readonly {
          readonly envFrom: readonly { readonly configMapRef: { readonly name: string } }[]
        }[]
        readonly volumes: readonly { readonly name: string }[]
        readonly nodeSelector?: object
      }
    }
  }
}

const chart = path.join(import.meta.dirname, 'chart')
const script = path.join(chart, 'files/fetch.sh')
const link = 'https://storage.example.com/a,b/%2C.tar.gz?X-Amz-Signature=ab&c={d}\'"#\\'

/** What Helm allows and YAML or Kubernetes would make something else of, next to what has always been right. */
const releases = [
  ...['docs', 'docs-2', 'x'.repeat(53), `x-${'1'.repeat(51)}`],
  ...['123', '1e3', '0x1f', '1.10', '2026-11-20', '9-docs', '1'.repeat(53)],
  ...['true', 'null', 'no', 'on', 'y'],
  ...['a.b', 'a-b', 'a.b.c', 'a-b.c', 'docs.example.com', `${'a.'.repeat(26)}a`, 'a.1'],
]

for (const [major, helm] of [
  [3, tools.helm3],
  [4, tools.helm4],
] as const) {
  await test(`Helm ${major} has nothing against the chart`, () => {
    const { status, stdout } = spawnSync(helm, ['lint', '--strict', chart], { encoding: 'utf8' })
    assert.equal(status, 0, stdout)
  })

  await test(`Helm ${major} puts the link into the Secret alone`, () => {
    const { text, manifests } = template(helm, { bundleUrl: link })
    const secret = manifests.find(({ kind }) => kind === 'Secret')
    assert.equal(Buffer.from(secret?.data?.['url'] ?? '', 'base64').toString(), link)
    assert.ok(!text.includes('X-Amz-Signature'))
  })

  await test(`Helm ${major} starts new pods for a new link, and only then`, () => {
    const first = podOf(template(helm, { bundleUrl: link }).manifests)
    const same = podOf(template(helm, { bundleUrl: link }).manifests)
    const next = podOf(template(helm, { bundleUrl: `${link}2` }).manifests)
    assert.deepEqual(same, first)
    assert.notDeepEqual(next, first)
  })

  await test(`Helm ${major} labels pods with any version, and without one if there is none`, () => {
    const labelOf = (version: string | null) =>
      podOf(template(helm, { bundleUrl: link, version }).manifests).metadata.labels[
        'app.kubernetes.io/version'
      ]
    assert.equal(labelOf('2026.11'), '2026.11')
    assert.equal(labelOf('{{ 1.10, "a"'), '1.10___a')
    assert.equal(labelOf('x'.repeat(128)), 'x'.repeat(63))
    assert.equal(labelOf(''), undefined)
    assert.equal(labelOf(null), undefined)
  })

  await test(`Helm ${major} does without an export when none is enabled`, () => {
    const { manifests } = template(helm, { enabled: false })
    assert.ok(!manifests.some(({ kind }) => kind === 'Secret'))
    assert.equal(podOf(manifests).spec.initContainers, undefined)
  })

  await test(`Helm ${major} refuses an export without a link, in words that hold no value`, () => {
    const { status, stderr } = render(helm, { enabled: true, version: 'secret-version' })
    assert.equal(status, 1)
    assert.match(stderr, /staticExport\.bundleUrl is missing/)
    assert.ok(!stderr.includes('secret-version'))
  })

  await test(`Helm ${major} makes objects that Kubernetes takes and that belong together, whatever the release is called`, () => {
    const names = releases.map((release) => {
      const { text, manifests } = template(helm, { bundleUrl: link }, release)
      // YAML 1.1, which Helm reads, takes more words for a number or a flag than this test does.
      const bare = /^ *(?:name|app\.kubernetes\.io\/instance): (\S+)$/gm
      for (const [, value] of text.matchAll(bare)) assert.notEqual(value, release)
      return expectValid(manifests)
    })
    assert.equal(new Set(names).size, releases.length, 'Two releases make the same objects.')
    assert.equal(names[0], 'docs')
  })

  await test(`Helm ${major} gives pods the script as it is in the file`, () => {
    const [init] = podOf(template(helm, { bundleUrl: link }).manifests).spec.initContainers ?? []
    assert.equal(init?.command[2]?.trim(), readFileSync(script, 'utf8').trim())
  })
}

await using emulator = await startEmulator({ queueSeconds: 0, jobSeconds: 0, linkSeconds: 600 })
/** The disk of the pods, which they share here; `cache` outlives them. */
const folder = mkdtempSync(path.join(tmpdir(), 'pods-'))
const cache = path.join(folder, 'cache')
const site = path.join(folder, 'site')
/** What the last pod printed. */
const logs: string[] = []
mkdirSync(cache)
afterEach(() => {
  for (const name of readdirSync(cache)) rmSync(path.join(cache, name))
})
process.on('exit', () => {
  rmSync(folder, { recursive: true })
})

await test('The script unpacks the archive', async () => {
  const url = await freshLink()
  using sampling = sampleProcesses([url], 2)
  assert.equal(await startPod(url), 0)
  assert.match(readFileSync(path.join(site, 'index.html'), 'utf8'), /<html/)
  assert.deepEqual(sampling.exposures, [])
  assert.ok(sampling.programs.has('sh') && sampling.looks > 1)
})

await test('The script does not need the link again for what is in the cache', async () => {
  const url = await freshLink()
  assert.equal(await startPod(url), 0)
  emulator.advanceClock(601)
  assert.equal((await fetch(url)).status, 403)
  const downloads = countDownloads()
  assert.equal(await startPod(url), 0)
  assert.match(readFileSync(path.join(site, 'index.html'), 'utf8'), /<html/)
  assert.equal(countDownloads(), downloads)
})

await test('The script fails with an expired link that is not in the cache, without showing it', async () => {
  const url = await freshLink()
  emulator.advanceClock(601)
  assert.notEqual(await startPod(url), 0)
  assert.match(logs.join(''), /403/)
  assert.ok(!logs.join('').includes('X-Amz'))
  assert.deepEqual(readdirSync(cache), [])
  assert.deepEqual(readdirSync(site), [])
})

await test('The script does not take the archive of another link from the cache', async () => {
  assert.equal(await startPod(await freshLink()), 0)
  assert.equal(await startPod(await freshLink()), 0)
  assert.equal(readdirSync(cache).length, 2)
})

for (const fault of ['download:fin:after-bytes=1000', 'download:corrupt']) {
  await test(`The script refuses an archive with the fault ${fault}`, async () => {
    emulator.addFault(fault)
    assert.notEqual(await startPod(await freshLink()), 0)
    assert.deepEqual(readdirSync(cache), [])
    assert.deepEqual(readdirSync(site), [])
  })
}

await test('The script checks a mirrored archive by its name', async () => {
  const archive = Buffer.from(await (await fetch(await freshLink())).arrayBuffer())
  const server = createServer((_, response) => response.end(archive)).listen(0, '127.0.0.1')
  try {
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as { port: number }
    const sum = createHash('sha256').update(archive).digest('hex')
    const other = createHash('sha256').update('other').digest('hex')
    const mirror = (name: string) => `http://127.0.0.1:${port}/mirror/${name}.tar.gz`
    assert.equal(await startPod(mirror(sum)), 0)
    assert.notEqual(await startPod(mirror(other)), 0)
    assert.equal(readdirSync(cache).length, 1)
  } finally {
    server.close()
  }
})

await test('The script keeps ten archives', async () => {
  for (let count = 0; count < 12; count += 1) assert.equal(await startPod(await freshLink()), 0)
  assert.equal(readdirSync(cache).length, 10)
})

/** What the init container of a new pod does, with the cache of the pods before. */
async function startPod(url: string): Promise<number | null> {
  rmSync(site, { recursive: true, force: true })
  mkdirSync(site)
  logs.length = 0
  const child = spawn('sh', ['-c', readFileSync(script, 'utf8')], {
    env: {
      PATH: process.env['PATH'],
      BUNDLE_URL: url,
      CACHE: cache,
      SITE: site,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const keep = (chunk: Buffer) => logs.push(chunk.toString())
  child.stdout.on('data', keep)
  child.stderr.on('data', keep)
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', resolve)
  })
}

/** A link to the archive of an export that nobody has fetched yet. */
async function freshLink(): Promise<string> {
  const { jobId } = await ask<{ jobId: string }>('jobs', { domain: emulator.domains[0] })
  const { bundleUrl } = await ask<{ bundleUrl: string }>(`jobs/${jobId}/bundle`, {})
  return bundleUrl
}

async function ask<Answer>(endpoint: string, body: object): Promise<Answer> {
  const response = await fetch(`${emulator.apiUrl}/v1/static-export/${endpoint}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${emulator.keys.good}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify(body),
  })
  assert.ok(response.ok, await response.clone().text())
  return (await response.json()) as Answer
}

function countDownloads(): number {
  return emulator.requests.filter(({ operation }) => operation === 'download').length
}

function render(helm: string, staticExport: object, release = 'docs') {
  const input = JSON.stringify({ staticExport })
  return spawnSync(helm, ['template', release, chart, '-f', '-'], { input, encoding: 'utf8' })
}

function template(helm: string, staticExport: object, release?: string) {
  const { status, stdout, stderr } = render(helm, { enabled: true, ...staticExport }, release)
  assert.equal(status, 0, stderr)
  const manifests = loadAll(stdout) as Manifest[]
  return { text: stdout, manifests }
}

function podOf(manifests: readonly Manifest[]) {
  const pod = manifests.find(({ kind }) => kind === 'Deployment')?.spec?.template
  assert.ok(pod)
  return pod
}

/**
 * Names and labels are those that Kubernetes takes, and what names another object names one that is there.
 *
 * @returns the name of the Deployment
 */
function expectValid(manifests: readonly Manifest[]): string {
  const find = (kind: string) => {
    const found = manifests.find((manifest) => manifest.kind === kind)
    assert.ok(found, kind)
    return found
  }
  for (const { kind, metadata } of manifests) {
    // Of a Service, the strictest; of pods, it becomes the name of their host.
    assert.match(metadata.name, /^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/, kind)
    expectLabels(metadata.labels)
  }
  const pod = podOf(manifests)
  expectLabels(pod.metadata.labels)
  const selector = find('Deployment').spec?.selector.matchLabels
  assert.ok(selector)
  assert.deepEqual(find('Service').spec?.selector, selector)
  assert.deepEqual({ ...pod.metadata.labels, ...selector }, pod.metadata.labels)

  const variables = pod.spec.initContainers?.flatMap(({ env }) => env) ?? []
  const secrets = variables.flatMap(({ valueFrom }) => valueFrom?.secretKeyRef.name ?? [])
  assert.deepEqual(secrets, [find('Secret').metadata.name])
  const sources = pod.spec.containers.flatMap(({ envFrom }) => envFrom)
  const settings = sources.map(({ configMapRef }) => configMapRef.name)
  assert.deepEqual(settings, [find('ConfigMap').metadata.name])
  return find('Deployment').metadata.name
}

function expectLabels(labels: Readonly<Record<string, string>>): void {
  for (const value of Object.values(labels)) {
    assert.match(value, /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/)
  }
}
