/** Values of the caller and of the release, and inputs that are wrong: nothing is lost, nothing is changed. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import path from 'node:path'
import { after, describe } from 'node:test'
import { dump, load } from 'js-yaml'
import type { WorkflowResult } from './act/run-workflow.ts'
import { freePorts } from './parts/ready.ts'
import {
  type DeployOptions,
  forEachHelm,
  type HelmProgram,
  oneStep,
  type Scene,
  startStage,
} from './support/scene.ts'

const stage = await startStage()
after(() => stage.close())

/** All ten of the chart, none as it has them. */
const settings = {
  TITLE: 'a, b & "c" {d}',
  LANGUAGE: 'de',
  TIME_ZONE: 'Europe/Berlin',
  THEME: 'dark',
  ACCENT: '#abcdef',
  FOOTER: 'x=y\\,z',
  CONTACT: 'me@example.com',
  SEARCH: 'false',
  CACHE_SECONDS: '10',
  API_VERSION: '2.10',
}

async function settingsInCluster(scene: Scene): Promise<Readonly<Record<string, string>>> {
  const map = scene.at('configmaps/docs-settings')
  return (await stage.cluster.client.get<{ data: Record<string, string> }>(map)).data
}

/** What the deployment warned of. */
function warningsOf(result: WorkflowResult): string[] {
  const { lines } = result.step('Deploy')
  return lines.flatMap(({ command, text }) => (command === 'warning' ? [text] : []))
}

/** Null is how a version is taken away. */
function versionIn(staticExport: unknown): unknown {
  return (staticExport as { readonly version?: unknown }).version ?? undefined
}

interface Refusal {
  readonly options: DeployOptions
  readonly code: string
  readonly says: RegExp
}

type Server = Readonly<Record<string, string>>

/** The kubeconfig with another server or user. */
function kubeconfigWith(cluster: Server, user?: Server): string {
  const config = load(stage.kubeconfig) as {
    clusters: { cluster: Server }[]
    users: { user: Server }[]
  }
  for (const entry of config.clusters) entry.cluster = { ...entry.cluster, ...cluster }
  for (const entry of config.users) entry.user = user ?? entry.user
  return dump(config)
}

/** Takes connections, and never says a word. */
const silent = createServer().listen(0, '127.0.0.1')
await once(silent, 'listening')
after(() => silent.close())
const { port: silentPort } = silent.address() as AddressInfo
const { closedPort } = await freePorts('closedPort')
const token = 'not-the-token-of-this-cluster'

const oldHelm = path.join(path.dirname(stage.cluster.kubeconfig), 'old', 'helm')
mkdirSync(path.dirname(oldHelm))
writeFileSync(oldHelm, '#!/bin/sh\necho v3.13.3\n', { mode: 0o755 })

const refusals: Readonly<Record<string, Refusal>> = {
  'a values file that is not YAML': {
    options: {
      inputs: { 'values-files': 'values/broken.yaml' },
      files: { 'values/broken.yaml': 'password: secret-of-the-caller\nlist: [a, b\nmore: 1\n' },
      hidden: ['secret-of-the-caller'],
    },
    code: 'config',
    says: /values\/broken\.yaml"\) is not valid YAML \(line 3/,
  },
  'a chart that does not exist': {
    options: { inputs: { chart: './charts/docs' } },
    code: 'config',
    says: /`chart` \(".\/charts\/docs"\) does not exist/,
  },
  'a chart without the charts that it depends on': {
    options: {
      inputs: { chart: './site' },
      files: {
        'site/Chart.yaml': dump({
          apiVersion: 'v2',
          name: 'docs',
          version: '1.0.0',
          dependencies: [
            { name: 'search', version: '1.x.x', repository: 'https://charts.example.com' },
          ],
        }),
      },
    },
    code: 'config',
    says: /lacks charts that it depends on[^]*\bsearch\b[^]*`helm dependency build`/,
  },
  'a kubeconfig that is none': {
    options: { secrets: { KUBECONFIG: 'the wrong secret' }, hidden: ['the wrong secret'] },
    code: 'config',
    says: /`kubeconfig`/,
  },
  'a Helm that is too old': {
    options: { helm: oldHelm },
    code: 'config',
    says: /is 3\.13\.3, too old; 3\.14 or newer, or 4, is needed[^]*`helm-version`/,
  },
  'a storage of releases that Helm does not know': {
    options: { environment: { HELM_DRIVER: 'nope' } },
    code: 'config',
    says: /It said: ".*unknown driver .*nope/,
  },
  'a cluster that is down': {
    options: {
      secrets: { KUBECONFIG: kubeconfigWith({ server: `https://127.0.0.1:${closedPort}` }) },
    },
    code: 'network',
    says: /The cluster cannot be reached[^]*connection refused/,
  },
  'a cluster that is silent': {
    options: {
      secrets: { KUBECONFIG: kubeconfigWith({ server: `https://127.0.0.1:${silentPort}` }) },
    },
    code: 'network',
    says: /The cluster (?:cannot be reached|gave no answer in time)/,
  },
  'a cluster that refuses': {
    options: { secrets: { KUBECONFIG: kubeconfigWith({}, { token }) }, hidden: [token] },
    code: 'auth',
    says: /The cluster did not accept the credentials of the kubeconfig/,
  },
  'a namespace that is missing': {
    options: { inputs: { namespace: 'missing' } },
    code: 'config',
    says: /The namespace missing does not exist[^]*`create-namespace: true`/,
  },
}

/** Whatever a deployment would change. */
async function state(scene: Scene) {
  const { metadata, spec } = await scene.ready()
  const list = await scene.helm('list', '--output', 'json')
  const others = await stage.cluster.client.list('/api/v1/namespaces/missing/secrets')
  return [await scene.history(), list, metadata.generation, spec, others]
}

void describe('Values', { concurrency: 3 }, () => {
  forEachHelm((helm, _, scenario) => {
    scenario('A release with ten values of its own keeps them all', async () => {
      await using scene = await stage.scene(helm)
      await scene.install({ settings, replicaCount: 3 })
      using first = await scene.deploy({ inputs: { version: '1.10' } })
      assert.equal(first.exitCode, 0, first.log)
      assert.deepEqual(warningsOf(first), [])
      const link = await scene.link()
      assert.deepEqual(await scene.values(), {
        settings,
        replicaCount: 3,
        staticExport: { enabled: true, bundleUrl: link, version: '1.10' },
      })
      assert.deepEqual(await settingsInCluster(scene), settings)

      using second = await scene.deploy({
        inputs: { values: 'replicaCount: 1', 'existing-values': 'keep' },
      })
      assert.equal(second.exitCode, 0, second.log)
      assert.deepEqual(await settingsInCluster(scene), settings)
      const { replicaCount, staticExport } = await scene.values()
      assert.equal(replicaCount, 1)
      assert.equal(versionIn(staticExport), undefined)
      await scene.expectServed(second.outputs.get('jobId') ?? '')
    })

    scenario('With "reset" only what the caller gives is left', async () => {
      await using scene = await stage.scene(helm)
      await scene.install({ settings, replicaCount: 3 })
      using result = await scene.deploy({ inputs: { 'existing-values': 'reset' } })
      assert.equal(result.exitCode, 0, result.log)
      const { staticExport, ...others } = await scene.values()
      assert.deepEqual(others, {})
      assert.equal((staticExport as { bundleUrl: string }).bundleUrl, await scene.link())
      assert.equal((await settingsInCluster(scene))['TITLE'], 'Documentation')
      assert.match(result.log, /Values of the release: forgotten/)
      await scene.expectServed(result.outputs.get('jobId') ?? '')
    })

    scenario('Values of the caller that set the link do not win', async () => {
      await using scene = await stage.scene(helm)
      const theirs = { enabled: false, bundleUrl: 'https://other.example.com/site.tar.gz' }
      using result = await scene.deploy({
        inputs: {
          'values-files': 'values/production.yaml\nvalues/a, b.yaml',
          values: dump({ staticExport: theirs }),
        },
        files: { 'values/a, b.yaml': dump({ staticExport: theirs }) },
      })
      assert.equal(result.exitCode, 0, result.log)
      await scene.expectServed(result.outputs.get('jobId') ?? '')
      assert.equal((await scene.values())['replicaCount'], 3)
      const warnings = warningsOf(result).join('\n')
      assert.match(warnings, /a, b\.yaml.*staticExport\.bundleUrl/)
      assert.match(warnings, /`values` sets staticExport\.bundleUrl/)
    })

    scenario('A key that the chart does not read: the log warns of it', async () => {
      await using scene = await stage.scene(helm)
      using result = await scene.deploy({ inputs: { 'values-key': 'site' } })
      assert.equal(result.exitCode, 0, result.log)
      assert.equal(result.outputs.get('releaseRevision'), '1')
      const [warning = '', ...more] = warningsOf(result)
      assert.deepEqual(more, [])
      assert.match(warning, /^Nothing that the chart has rendered holds the link: .*`values-key`/)
      assert.match(warning, /\bsite\.bundleUrl\b/)
      assert.equal((await scene.ready()).spec.template.spec.initContainers, undefined)
    })

    scenario('Values from standard input are refused before anything is asked', async () => {
      await using scene = await stage.scene(helm)
      const inputs = {
        'job-id': await scene.startExport(),
        'values-files': 'values/production.yaml\n-',
      }
      using result = await scene.deploy({ workflow: oneStep, inputs })
      assert.equal(result.exitCode, 1)
      const { errors, outputs } = result.step('Deploy')
      assert.match(errors.join('\n'), /`values-files` names standard input \(-\)/)
      assert.equal(outputs.get('failureCode'), 'config')
      assert.equal(scene.emulator.requests.length, 1)
      assert.deepEqual(await scene.history(), [])
    })
  })
})

void describe('Refusals', { concurrency: 3 }, () => {
  forEachHelm((helm, _, scenario) => {
    const prepared = prepare(helm)
    after(async () => (await prepared).scene[Symbol.asyncDispose]())
    for (const [name, { options, code, says }] of Object.entries(refusals)) {
      scenario(`Refused: ${name}`, async () => {
        const { scene, before, jobId } = await prepared
        const inputs = { 'job-id': jobId, ...options.inputs }
        using result = await scene.deploy({ workflow: oneStep, ...options, inputs })
        assert.equal(result.exitCode, 1)
        const { errors, outputs } = result.step('Deploy')
        assert.equal(errors.length, 1, result.log)
        assert.match(errors.join(), says)
        assert.equal(outputs.get('failureCode'), code)
        assert.equal(scene.emulator.requests.length, 1, 'The export was asked for something.')
        assert.ok(result.seconds < 60, `${result.seconds} s`)
        assert.deepEqual(await state(scene), before)
      })
    }
  })
})

/** A release that refusals must not change. */
async function prepare(helm: HelmProgram) {
  const scene = await stage.scene(helm)
  await scene.install({ replicaCount: 1 })
  return { scene, before: await state(scene), jobId: await scene.startExport() }
}
