/** Another run deploys the same release between our look at it and our upgrade: neither takes the other's work away. */
import assert from 'node:assert/strict'
import { after, describe } from 'node:test'
import type { WorkflowResult } from './act/run-workflow.ts'
import { cancelWhile } from './support/cancel.ts'
import { intrude } from './support/intruder.ts'
import { forEachHelm, nowhere, type Scene, startStage } from './support/scene.ts'

const stage = await startStage()
after(() => stage.close())

/** What is deployed when our run looks. */
const former = {
  staticExport: { enabled: true, bundleUrl: 'https://storage.example.com/former.tar.gz' },
  settings: { TITLE: 'Former' },
}

/** What the other run deploys. */
const foreign = {
  staticExport: { enabled: true, bundleUrl: 'https://storage.example.com/foreign.tar.gz' },
  settings: { TITLE: 'Foreign' },
}

/** The release is as the other run has it, and its pods run. */
async function expectForeign(scene: Scene): Promise<void> {
  assert.deepEqual(await scene.values(), foreign)
  assert.equal((await scene.ready()).spec.template.spec.nodeSelector, undefined)
  assert.equal(await scene.link(), foreign.staticExport.bundleUrl)
}

/** Ours never becomes ready, and the revision that the other run has deployed is put back. */
function expectPutBack(result: WorkflowResult, theirs: number, now: number): void {
  assert.equal(result.exitCode, 1, result.log)
  assert.equal(result.outputs.get('failureCode'), 'deploy-failed')
  assert.equal(result.outputs.get('releaseRevision'), String(now))
  const { errors, summary } = result.step('Deploy')
  assert.equal(errors.length, 1)
  for (const text of [errors.join(), summary]) {
    assert.match(text, /Unschedulable/)
    assert.match(text, new RegExp(`Rolled back to revision ${theirs}\\.`))
  }
}

/** Ours is in, and its summary goes back to what the other run has deployed. */
async function expectBothIn(
  scene: Scene,
  result: WorkflowResult,
  theirs: number,
  now: number,
): Promise<void> {
  assert.equal(result.exitCode, 0, result.log)
  assert.equal(result.outputs.get('failureCode'), '')
  assert.equal(result.outputs.get('releaseRevision'), String(now))
  assert.match(result.log, new RegExp(`^Deployed: revision ${now} of docs`, 'm'))
  const { summary } = result.step('Deploy')
  assert.match(summary, new RegExp(`Live now.*revision ${now}\\b`))
  assert.match(summary, new RegExp(`Before.*revision ${theirs}\\b`))
  assert.match(
    summary,
    new RegExp(`Roll back.*helm rollback docs ${theirs} -n ${scene.namespace} `),
  )
  await scene.expectServed(result.outputs.get('jobId') ?? '')
  assert.deepEqual((await scene.values())['settings'], foreign.settings)
}

/** Ours was cancelled, and the revision that the other run has deployed is put back. */
function expectTakenBack(result: WorkflowResult, theirs: number, now: number): void {
  assert.equal(result.outputs.get('releaseRevision'), String(now))
  const { errors, summary } = result.step('Deploy')
  assert.match(errors.join(), new RegExp(`Rolled back to revision ${theirs}\\.`))
  const live = `Live now.*revision ${now}\\b.*revision ${theirs} put back`
  assert.match(summary, new RegExp(live))
}

/** Ours has changed nothing, and says why and what to do. */
function expectLocked(result: WorkflowResult, revision: string): void {
  assert.equal(result.exitCode, 1, result.log)
  assert.equal(result.outputs.get('failureCode'), 'release-locked')
  assert.equal(result.outputs.get('releaseRevision'), revision)
  const { errors, summary } = result.step('Deploy')
  for (const text of [errors.join(), summary]) {
    assert.match(text, /Another operation on release docs began at the same moment/)
    assert.match(text, /This run has changed nothing/)
  }
}

void describe('Races', { concurrency: 3 }, () => {
  forEachHelm((helm, _, scenario) => {
    scenario('Another run has deployed, and ours fails: theirs is put back', async () => {
      await using scene = await stage.scene(helm)
      await scene.install(former)
      using intruder = intrude(scene, foreign, 'done')
      using result = await scene.deploy({
        helm: intruder.helm,
        inputs: { values: JSON.stringify(nowhere) },
      })
      expectPutBack(result, 2, 4)
      const history = ['1 superseded', '2 superseded', '3 failed', '4 deployed']
      assert.deepEqual(await scene.history(), history)
      await expectForeign(scene)
    })

    scenario('Another run has installed, and ours fails: theirs is not removed', async () => {
      await using scene = await stage.scene(helm)
      using intruder = intrude(scene, foreign, 'done')
      using result = await scene.deploy({
        helm: intruder.helm,
        inputs: { values: JSON.stringify(nowhere) },
      })
      expectPutBack(result, 1, 3)
      assert.deepEqual(await scene.history(), ['1 superseded', '2 failed', '3 deployed'])
      await expectForeign(scene)
    })

    scenario('Another run has deployed, and ours comes after it: both are in', async () => {
      await using scene = await stage.scene(helm)
      await scene.install(former)
      using intruder = intrude(scene, foreign, 'done')
      using result = await scene.deploy({ helm: intruder.helm })
      await expectBothIn(scene, result, 2, 3)
      const history = ['1 superseded', '2 superseded', '3 deployed']
      assert.deepEqual(await scene.history(), history)
    })

    scenario('Another run has installed, and ours comes after it: both are in', async () => {
      await using scene = await stage.scene(helm)
      using intruder = intrude(scene, foreign, 'done')
      using result = await scene.deploy({ helm: intruder.helm })
      await expectBothIn(scene, result, 1, 2)
      assert.deepEqual(await scene.history(), ['1 superseded', '2 deployed'])
    })

    scenario('Another run has deployed, and ours is cancelled: theirs is put back', async () => {
      await using scene = await stage.scene(helm)
      await scene.install(former)
      using intruder = intrude(scene, foreign, 'done')
      using result = await cancelWhile(scene, '3 pending-upgrade', intruder.helm)
      expectTakenBack(result, 2, 4)
      const history = ['1 superseded', '2 superseded', '3 failed', '4 deployed']
      assert.deepEqual(await scene.history(), history)
      await expectForeign(scene)
    })

    scenario(
      'Another run has installed, and ours is cancelled: theirs is not removed',
      async () => {
        await using scene = await stage.scene(helm)
        using intruder = intrude(scene, foreign, 'done')
        using result = await cancelWhile(scene, '2 pending-upgrade', intruder.helm)
        expectTakenBack(result, 1, 3)
        assert.deepEqual(await scene.history(), ['1 superseded', '2 failed', '3 deployed'])
        await expectForeign(scene)
      },
    )

    scenario('Another run is at work: ours changes nothing, and says what frees it', async () => {
      await using scene = await stage.scene(helm)
      await scene.install(former)
      const values = { ...foreign, ...nowhere }
      using intruder = intrude(scene, values, 'killed')
      using result = await scene.deploy({ helm: intruder.helm })
      expectLocked(result, '1')
      assert.deepEqual(await scene.history(), ['1 deployed', '2 pending-upgrade'])
      assert.deepEqual(await scene.values(), values)

      await scene.followAdvice(result.step('Deploy').errors)
      assert.equal((await scene.history()).at(-1), '3 deployed')
      assert.deepEqual(await scene.values(), former)
      await scene.ready()
      assert.equal(await scene.link(), former.staticExport.bundleUrl)
    })

    scenario(
      'Another run is installing: ours changes nothing, and says what frees it',
      async () => {
        await using scene = await stage.scene(helm)
        const values = { ...foreign, ...nowhere }
        using intruder = intrude(scene, values, 'killed')
        using result = await scene.deploy({ helm: intruder.helm })
        expectLocked(result, '')
        assert.deepEqual(await scene.history(), ['1 pending-install'])
        assert.deepEqual(await scene.values(), values)

        await scene.followAdvice(result.step('Deploy').errors)
        assert.deepEqual(await scene.history(), [])
      },
    )
  })
})
