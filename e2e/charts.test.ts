/** Where a chart comes from, and which version of it: by path, by repository, by registry, with a password and without. */
import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe } from 'node:test'
import { sampleProcesses } from './act/processes.ts'
import type { WorkflowResult } from './act/run-workflow.ts'
import { startChartRepository } from './parts/chart-repository.ts'
import { carryOut, note } from './parts/keeper.ts'
import { startOciRegistry } from './parts/oci-registry.ts'
import { chart, type DeployOptions, forEachHelm, type Scene, startStage } from './support/scene.ts'

const credentials = { username: 'reader', password: 'chart, p@ss: "word"' }
const login = { CHART_USERNAME: credentials.username, CHART_PASSWORD: credentials.password }
const wrongLogin = { ...login, CHART_PASSWORD: 'not the password' }
/** The password also as Helm sends and stores it. */
const passwords = [
  wrongLogin.CHART_PASSWORD,
  credentials.password,
  Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64'),
]

const folder = mkdtempSync(path.join(tmpdir(), 'charts-'))
note({ remove: folder })
/** The same chart under another name. */
const handbook = path.join(folder, 'handbook')
cpSync(chart, handbook, { recursive: true })
const manifest = path.join(handbook, 'Chart.yaml')
writeFileSync(manifest, readFileSync(manifest, 'utf8').replace('name: docs', 'name: handbook'))

const stage = await startStage()
const privateRepository = await startChartRepository(credentials)
const privateRegistry = await startOciRegistry(credentials)
// A registry is given its password as an argument, so nobody looks before.
await privateRegistry.publish(chart, '1.0.0')
await privateRepository.publish(chart, '1.0.0')
const sampling = sampleProcesses(passwords, 20)
after(async () => {
  sampling.stop()
  await privateRegistry.close()
  await privateRepository.close()
  await stage.close()
  carryOut({ remove: folder })
})

const privateCharts = {
  repository: {
    chart: 'docs',
    'chart-repository': privateRepository.url,
    'chart-version': '1.0.0',
  },
  registry: { chart: `${privateRegistry.url}/docs`, 'chart-version': '1.0.0' },
} as const

await describe('Charts', { concurrency: 3 }, () => {
  forEachHelm((helm, _, scenario) => {
    scenario(
      'A chart by path has no version to choose, and is found where the caller has it',
      async () => {
        await using scene = await stage.scene(helm)
        using refused = await scene.deploy({ inputs: { 'chart-version': '1.0.0' } })
        expectConfig(refused, /`chart-version`/)
        assert.deepEqual(await scene.history(), [])

        using result = await scene.deploy({ inputs: { chart: 'chart' } })
        await expectDeployed(scene, result, 'docs-1.0.0')
      },
    )

    scenario(
      'A chart of a repository stays at its version until another one is asked for',
      async () => {
        await using repository = await startChartRepository()
        await repository.publish(chart, '1.0.0')
        await using scene = await stage.scene(helm)
        const inputs = { chart: 'docs', 'chart-repository': repository.url }

        using first = await scene.deploy({ inputs })
        expectConfig(first, /`chart-version` is missing/)
        assert.deepEqual(await scene.history(), [])

        using installed = await scene.deploy({ inputs: { ...inputs, 'chart-version': '1.0.0' } })
        await expectDeployed(scene, installed, 'docs-1.0.0')

        await repository.publish(chart, '1.1.0')
        using kept = await scene.deploy({ inputs })
        await expectDeployed(scene, kept, 'docs-1.0.0')
        assert.match(kept.log, /^Chart docs 1\.0\.0 \(as deployed\)$/m)

        using moved = await scene.deploy({ inputs: { ...inputs, 'chart-version': '>1.0' } })
        await expectDeployed(scene, moved, 'docs-1.1.0')
        assert.match(moved.log, /^Chart docs 1\.1\.0 \(was 1\.0\.0\)$/m)

        await repository.withdraw('docs', '1.1.0')
        using gone = await scene.deploy({ inputs })
        expectConfig(gone, /Version 1\.1\.0 .* not in its repository any more[^]*`chart-version`/)
        assert.equal(gone.outputs.get('releaseRevision'), '3')
        assert.deepEqual(await scene.history(), ['1 superseded', '2 superseded', '3 deployed'])
      },
    )

    scenario(
      'A chart of a registry stays at its version, and a tag leaves none to choose',
      async () => {
        await using registry = await startOciRegistry()
        await registry.publish(chart, '1.0.0')
        await using scene = await stage.scene(helm)
        const inputs = { chart: `${registry.url}/docs` }

        using installed = await scene.deploy({ inputs: { ...inputs, 'chart-version': '1.0.0' } })
        await expectDeployed(scene, installed, 'docs-1.0.0')

        await registry.publish(chart, '2.0.0')
        using kept = await scene.deploy({ inputs })
        await expectDeployed(scene, kept, 'docs-1.0.0')

        const tagged = { chart: `${registry.url}/docs:2.0.0` }
        using both = await scene.deploy({ inputs: { ...tagged, 'chart-version': '2.0.0' } })
        expectConfig(both, /`chart-version`/)
        using moved = await scene.deploy({ inputs: tagged })
        await expectDeployed(scene, moved, 'docs-2.0.0')
      },
    )

    scenario('A release of one chart is not taken over by another', async () => {
      await using registry = await startOciRegistry()
      await registry.publish(handbook, '1.0.0')
      await using scene = await stage.scene(helm)
      await scene.install({ replicaCount: 1 })
      using result = await scene.deploy({ inputs: { chart: `${registry.url}/handbook` } })
      expectConfig(result, /deployed from the chart docs, not from handbook/)
      assert.deepEqual(await scene.history(), ['1 deployed'])
      assert.equal(result.outputs.get('releaseRevision'), '1')
    })

    for (const [kind, inputs] of Object.entries(privateCharts)) {
      scenario(`A chart of a ${kind} with a password, which nobody sees`, async () => {
        await using scene = await stage.scene(helm)
        using refused = await deployWithLogin(scene, { inputs, secrets: wrongLogin })
        assert.equal(refused.exitCode, 1, refused.log)
        assert.equal(refused.outputs.get('failureCode'), 'auth')
        const error = refused.step('Deploy').errors.join()
        assert.match(error, /wants other credentials[^]*`chart-username` and `chart-password`/)
        assert.deepEqual(await scene.history(), [])

        using result = await deployWithLogin(scene, { inputs, secrets: login })
        await expectDeployed(scene, result, 'docs-1.0.0')
      })
    }
  })
})

/** Looks for the password wherever a run could show it or leave it. */
async function deployWithLogin(scene: Scene, options: DeployOptions): Promise<WorkflowResult> {
  const looksBefore = sampling.looks
  const result = await scene.deploy({ ...options, hidden: passwords })
  assert.ok(sampling.looks > looksBefore + 10, 'Nobody looked at the processes.')
  assert.deepEqual(sampling.exposures, [], 'A process had the password as an argument.')
  return result
}

/** The chart in the cluster, and behind its link the export, byte for byte. */
async function expectDeployed(scene: Scene, result: WorkflowResult, label: string): Promise<void> {
  assert.equal(result.exitCode, 0, result.log)
  const path = scene.at('deployments/docs', 'apps/v1')
  const deployment = await scene.cluster.client.get(path)
  assert.equal(deployment.metadata.labels?.['helm.sh/chart'], label)
  await scene.expectServed(result.outputs.get('jobId') ?? '')
}

/** A mistake of the caller, told as such. */
function expectConfig(result: WorkflowResult, error: RegExp): void {
  assert.equal(result.exitCode, 1, result.log)
  assert.equal(result.outputs.get('failureCode'), 'config')
  assert.match(result.step('Deploy').errors.join(), error)
}
