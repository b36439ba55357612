/** `node --test e2e/parts/parts.test.ts`: every part starts, does what it is for, and leaves nothing behind. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import process from 'node:process'
import { afterEach, test } from 'node:test'
import { PutObjectCommand } from '@aws-sdk/client-s3'
import { requireTools, tools } from '../tools/tools.ts'
import { startChartRepository } from './chart-repository.ts'
import { startCluster, type Cluster } from './cluster.ts'
import { ClusterError } from './cluster-client.ts'
import { note } from './keeper.ts'
import { startObjectStorage } from './object-storage.ts'
import { startOciRegistry } from './oci-registry.ts'
import { startPageServer } from './page-server.ts'
import { run, startProgram } from './program.ts'
import { waitFor } from './ready.ts'

interface Pod {
  readonly metadata: { readonly name: string }
  readonly status: {
    readonly phase: string
    readonly containerStatuses: readonly { readonly restartCount: number }[]
  }
}

const credentials = { username: 'reader', password: 'p:ss, word' }

const folder = mkdtempSync(path.join(tmpdir(), 'parts-'))
const chart = path.join(folder, 'chart')
const home = path.join(folder, 'home')
/** Where the parts make their folders, whose names are in the command lines of the cluster. */
const partsFolder = path.join(folder, 'parts')

requireTools()
mkdirSync(partsFolder)
process.env['TMPDIR'] = partsFolder
writeChart()
afterEach(expectNothingLeft)
note({ remove: folder })

function writeChart(): void {
  mkdirSync(path.join(chart, 'templates'), { recursive: true })
  writeFileSync(path.join(chart, 'Chart.yaml'), 'apiVersion: v2\nname: tiny\nversion: 0.1.0\n')
  writeFileSync(
    path.join(chart, 'templates/deployment.yaml'),
    `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
spec:
  replicas: 2
  selector:
    matchLabels: { app: {{ .Release.Name }} }
  template:
    metadata:
      labels: { app: {{ .Release.Name }} }
    spec:
      containers:
        - name: web
          image: example.com/web:1
`,
  )
}

/** The processes that the parts started: whatever has their folder in its command line. */
async function processes(): Promise<readonly string[]> {
  const all = await run('ps', ['-A', '-o', 'pid=,args='])
  return all.split('\n').filter((line) => line.includes(partsFolder))
}

async function expectNothingLeft(): Promise<void> {
  await waitFor({
    what: 'clean: processes or folders of parts are left',
    timeoutMs: 10_000,
    ask: async () => {
      assert.deepEqual([await processes(), readdirSync(partsFolder)], [[], []])
      return true
    },
  })
}

function helm(program: string, ...args: readonly string[]): Promise<string> {
  return run(program, args, { environment: { HOME: home } })
}

async function expectDeployed(program: string, cluster: Cluster): Promise<void> {
  const options = ['--kubeconfig', cluster.kubeconfig, '--wait', '--timeout', '30s']
  await helm(program, 'upgrade', '--install', 'tiny', chart, ...options)

  const { client } = cluster
  const pods = await client.list<Pod>('/api/v1/namespaces/default/pods?labelSelector=app%3Dtiny')
  assert.deepEqual(
    pods.map(({ status }) => status.phase),
    ['Running', 'Running'],
  )
  const pod = `/api/v1/namespaces/default/pods/${pods[0]?.metadata.name ?? ''}`
  const patched = await client.patch<Pod>(`${pod}/status`, {
    status: { containerStatuses: [{ name: 'web', restartCount: 7 }] },
  })
  assert.equal(patched.status.containerStatuses[0]?.restartCount, 7)

  await client.create('/api/v1/namespaces', { metadata: { name: 'other' } })
  await client.get('/api/v1/namespaces/other')
  await client.delete('/apis/apps/v1/namespaces/default/deployments/tiny')
  await assert.rejects(
    client.get('/apis/apps/v1/namespaces/default/deployments/tiny'),
    (error) => error instanceof ClusterError && error.status === 404,
  )
}

await test('two clusters at once, and a deployment by each Helm', async () => {
  await Promise.all(
    [tools.helm3, tools.helm4].map(async (program) => {
      await using cluster = await startCluster()
      await expectDeployed(program, cluster)
    }),
  )
})

await test('object storage: written with a key, read by anyone', async () => {
  await using storage = await startObjectStorage()
  const { client, bucket, endpoint } = storage
  const url = storage.publicUrl('site/2026 11.tar.gz')
  await client.send(new PutObjectCommand({ Bucket: bucket, Key: 'site/2026 11.tar.gz', Body: 'x' }))

  const answer = await fetch(url)
  assert.deepEqual([answer.status, await answer.text()], [200, 'x'])
  assert.equal((await fetch(url, { method: 'PUT', body: 'y' })).status, 403)
  assert.equal((await fetch(`${endpoint}/${bucket}`)).status, 403)
})

await test('a chart repository with a password', async () => {
  await using repository = await startChartRepository(credentials)
  await repository.publish(chart, '1.0.0')
  await repository.publish(chart, '1.1.0')
  const { username, password } = credentials
  const login = ['--repo', repository.url, '--username', username, '--password', password]
  for (const program of [tools.helm3, tools.helm4]) {
    assert.match(await helm(program, 'show', 'chart', 'tiny', ...login), /^version: 1\.1\.0$/m)
    await assert.rejects(helm(program, 'show', 'chart', 'tiny', '--repo', repository.url), /401/)
  }

  await repository.withdraw('tiny', '1.1.0')
  assert.match(await helm(tools.helm4, 'show', 'chart', 'tiny', ...login), /^version: 1\.0\.0$/m)
})

await test('an OCI registry with a password', async () => {
  await using registry = await startOciRegistry(credentials)
  await registry.publish(chart, '1.0.0')
  const { username, password } = credentials
  const reference = [`${registry.url}/tiny`, '--plain-http']
  const login = ['--username', username, '--password', password]
  for (const program of [tools.helm3, tools.helm4]) {
    await assert.rejects(helm(program, 'show', 'chart', ...reference), /401|basic credential/)
    const shown = await helm(program, 'show', 'chart', ...reference, ...login)
    assert.match(shown, /^version: 1\.0\.0$/m)
  }
})

await test('a page server whose answers change', async () => {
  await using server = await startPageServer()
  const get = async (path: string) => {
    const response = await fetch(server.url + path, { signal: AbortSignal.timeout(500) })
    return [response.status, await response.text()]
  }
  server.serve('/', (count) => (count > 2 ? { body: 'new' } : { body: 'old' }))
  assert.deepEqual(await get('/'), [200, 'old'])
  assert.deepEqual(await get('/'), [200, 'old'])
  assert.deepEqual(await get('/'), [200, 'new'])
  server.serve('/', { status: 503 })
  assert.deepEqual(await get('/'), [503, ''])
  assert.deepEqual(await get('/missing'), [404, 'Not found'])
  server.serve('/', () => undefined)
  await assert.rejects(get('/'), /timeout/)

  assert.equal(server.requests.length, 6)
  assert.equal(server.requests[0]?.headers.host, new URL(server.url).host)
})

const endings = {
  'is killed': 'process.kill(process.pid, "SIGKILL")',
  throws: 'throw new Error("as planned")',
  'ends by Ctrl-C': 'process.kill(process.pid, "SIGINT")',
}

for (const [name, ending] of Object.entries(endings)) {
  await test(`a test process that ${name} leaves nothing behind`, async () => {
    const addresses = await runToEnd(`
      const [storage, registry] = await Promise.all([startObjectStorage(), startOciRegistry()])
      console.log(storage.endpoint, 'http://' + registry.host)
      ${ending}
    `)
    assert.match(addresses, /^http:\S+ http:\S+\n$/)
    await expectNothingLeft()
    for (const address of addresses.trim().split(' ')) await assert.rejects(fetch(address))
  })
}

await test('a test process that is killed while a cluster starts leaves nothing behind', async () => {
  const child = startTestProcess('await startCluster()')
  await waitFor({
    what: 'starting: a cluster',
    program: child,
    ask: async () => (await processes()).find((line) => line.includes('kube-apiserver')),
  })
  await child.stop()
})

await test('a part that does not start says why, and leaves nothing behind', async () => {
  const child = startTestProcess(
    `await startChartRepository().then((r) => r.publish('none', '1.0.0'))`,
  )
  await child.ended
  assert.match(child.output(), /exit code 1: .*helm package none[^]*none/)
})

function startTestProcess(script: string) {
  const imports = ['chart-repository', 'cluster', 'object-storage', 'oci-registry'].map((name) => {
    const starter = name.replace(/(?:^|-)(.)/g, (_, letter: string) => letter.toUpperCase())
    const url = new URL(`${name}.ts`, import.meta.url)
    return `import { start${starter} } from ${JSON.stringify(url)}\n`
  })
  return startProgram(
    process.execPath,
    ['--input-type=module', '--eval', imports.join('') + script],
    { TMPDIR: partsFolder },
  )
}

async function runToEnd(script: string): Promise<string> {
  const child = startTestProcess(script)
  await child.ended
  return child.stdout()
}
