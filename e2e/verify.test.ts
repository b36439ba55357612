/** `verify-url`: one page of the site, asked for until it is that of the export. */
import assert from 'node:assert/strict'
import { after, describe } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { extract } from 'tar-stream'
import { buffer } from 'node:stream/consumers'
import type { WorkflowResult } from './act/run-workflow.ts'
import { startPageServer } from './parts/page-server.ts'
import { forEachHelm, type Scene, startStage } from './support/scene.ts'

const stage = await startStage()
const site = await startPageServer()
after(async () => {
  await site.close()
  await stage.close()
})

const old = { body: '<title>The site as it was</title>' }

await describe('verify-url', { concurrency: 3 }, () => {
  forEachHelm((helm, _, scenario) => {
    scenario('A page that switches over late is waited for', async () => {
      await using scene = await stage.scene(helm)
      const { page, address, inputs } = await prepare(scene)
      site.serve(address, (count) => (count > 3 ? page : old))
      using result = await scene.deploy({ inputs })
      await expectDeployed(scene, result)
      assert.match(
        result.log,
        /Waiting for start\/install\.html: another page: "The site as it was"/,
      )
      assert.match(result.log, /^Verified after .* is start\/install\.html$/m)
      assert.match(result.step('Deploy').summary, /Verified.*start\/install\.html/)
      const requests = site.requests.filter((request) => request.path === address)
      assert.equal(requests.length, 4)
      for (const { headers } of requests) assert.equal(headers['cache-control'], 'no-cache')
    })

    scenario('A page that matched before proves little, and the run says so', async () => {
      await using scene = await stage.scene(helm)
      const { page, address, inputs } = await prepare(scene)
      site.serve(address, page)
      using result = await scene.deploy({ inputs })
      await expectDeployed(scene, result)
      assert.match(
        result.log,
        /after the deployment it will prove only that the site can be reached/,
      )
      assert.match(result.step('Deploy').summary, /proves only that it can be reached/)
    })

    scenario(
      'A site that does not answer fails the run, and what was installed stays',
      async () => {
        await using scene = await stage.scene(helm)
        const { address, inputs } = await prepare(scene)
        site.serve(address, { status: 503 })
        using result = await scene.deploy({ inputs })
        const error = await expectUnverified(scene, result, ['1 deployed'])
        assert.match(
          error,
          /did not become start\/install\.html of the archive .* Seen last: HTTP 503\./,
        )
        assert.ok(
          error.includes(`\`helm uninstall docs -n ${scene.namespace}\` takes it away.`),
          error,
        )
      },
    )

    scenario(
      'A site that stays as it was fails the run, and the error names the way back',
      async () => {
        await using scene = await stage.scene(helm)
        const { address, inputs } = await prepare(scene)
        await scene.install({ replicaCount: 1 })
        site.serve(address, old)
        using result = await scene.deploy({ inputs })
        const error = await expectUnverified(scene, result, ['1 superseded', '2 deployed'])
        assert.match(error, /"The site as it was"[^]*It is the page from before the deployment\./)
        const back = `\`helm rollback docs 1 -n ${scene.namespace} --wait\` goes back.`
        assert.ok(error.includes(back), error)
      },
    )

    scenario('A page that the export does not have is refused before the deployment', async () => {
      await using scene = await stage.scene(helm)
      using result = await scene.deploy({ inputs: { 'verify-url': `${site.url}/no/such/page` } })
      assert.equal(result.outputs.get('failureCode'), 'config')
      assert.match(result.step('Deploy').errors.join(), /neither no\/such\/page\.html nor /)
      assert.deepEqual(await scene.history(), [])
    })
  })
})

/** An address for this test alone, and the page that the export will have for it. */
async function prepare(scene: Scene) {
  const archive = await scene.archiveOf(await scene.startExport())
  const address = `/start/install?${scene.namespace}`
  const page = { body: await pageIn(archive, 'start/install.html') }
  const inputs = { 'verify-url': site.url + address, 'helm-timeout-minutes': '0.15' }
  return { page, address, inputs }
}

async function pageIn(archive: Buffer, name: string): Promise<string> {
  const entries = extract()
  entries.end(gunzipSync(archive))
  for await (const entry of entries) {
    const bytes = await buffer(entry)
    if (entry.header.name === name) return bytes.toString()
  }
  throw new Error(`The archive has no ${name}.`)
}

async function expectDeployed(scene: Scene, result: WorkflowResult): Promise<void> {
  assert.equal(result.exitCode, 0, result.log)
  await scene.expectServed(result.outputs.get('jobId') ?? '')
}

/** The run has failed, and the release is that of this export all the same. Resolves with the error. */
async function expectUnverified(
  scene: Scene,
  result: WorkflowResult,
  history: readonly string[],
): Promise<string> {
  assert.equal(result.exitCode, 1, result.log)
  assert.equal(result.outputs.get('failureCode'), 'verify-failed')
  assert.deepEqual(await scene.history(), history)
  assert.equal(result.outputs.get('releaseRevision'), String(history.length))
  await scene.expectServed(result.outputs.get('jobId') ?? '')
  return result.step('Deploy').errors.join()
}
