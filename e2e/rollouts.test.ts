/** Deployments that succeed, fail and are cancelled: what is then in the cluster, and what the user is told. */
import assert from 'node:assert/strict'
import { after, describe } from 'node:test'
import { dump } from 'js-yaml'
import type { Cancellation } from './act/processes.ts'
import type { RunningWorkflow, WorkflowResult } from './act/run-workflow.ts'
import { waitFor } from './parts/ready.ts'
import { begun, cancelWhile, expectCancelled } from './support/cancel.ts'
import { crashNextPod, failNextPod } from './support/pods.ts'
import { forEachHelm, nowhere, oneStep, type Scene, startStage } from './support/scene.ts'
import { expectNoSecrets } from './support/secrets.ts'

const stage = await startStage()
after(() => stage.close())

/** What a chart does before each upgrade, with the link at hand; no node takes its pod. */
const migration = {
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name: 'docs-migrate', annotations: { 'helm.sh/hook': 'pre-upgrade' } },
  spec: {
    backoffLimit: 0,
    template: {
      spec: {
        ...nowhere,
        restartPolicy: 'Never',
        containers: [
          {
            name: 'migrate',
            image: 'example.com/image',
            env: [{ name: 'BUNDLE_URL', value: '{{ .Values.staticExport.bundleUrl }}' }],
          },
        ],
      },
    },
  },
}

/** A volume that nobody provides. */
const claim = {
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'docs-cache' },
  spec: {
    storageClassName: 'missing',
    accessModes: ['ReadWriteOnce'],
    resources: { requests: { storage: '1Gi' } },
  },
}

/** The only error and the summary, as a reader has it. */
function toldBy(result: WorkflowResult): readonly string[] {
  const { errors, summary } = result.step('Deploy')
  assert.equal(errors.length, 1)
  const character = (_: string, code: string) => String.fromCharCode(Number(code))
  return [errors.join(), summary.replaceAll(/&#(\d+);/g, character)]
}

void describe('Rollouts', { concurrency: 3 }, () => {
  forEachHelm((helm, _, scenario) => {
    scenario('The first install, and an upgrade that drops the version label', async () => {
      await using scene = await stage.scene(helm)
      using first = await scene.deploy({
        inputs: { version: '1.10' },
        environment: { HELM_DEBUG: '1' },
      })
      assert.equal(first.exitCode, 0, first.log)
      assert.deepEqual(await scene.history(), ['1 deployed'])
      const firstId = first.outputs.get('jobId') ?? ''
      await scene.expectServed(firstId)
      const label = 'static-export/version'
      assert.equal((await scene.ready()).spec.template.metadata.annotations[label], '1.10')
      assert.throws(() => {
        expectNoSecrets(first, [firstId])
      }, /A secret .* is in the log/)

      using second = await scene.deploy()
      assert.equal(second.exitCode, 0, second.log)
      assert.deepEqual(await scene.history(), ['1 superseded', '2 deployed'])
      assert.equal(second.outputs.get('releaseRevision'), '2')
      assert.equal(second.outputs.get('failureCode'), '')
      await scene.expectServed(second.outputs.get('jobId') ?? '')
      assert.equal((await scene.ready()).spec.template.metadata.annotations[label], undefined)
      const { summary } = second.step('Deploy')
      assert.match(summary, /revision 2/)
      assert.ok(summary.includes(`helm rollback docs 1 -n ${scene.namespace} --wait`), summary)
    })

    scenario('An export that is there is deployed, and none is started', async () => {
      await using scene = await stage.scene(helm)
      const jobId = await scene.startExport()
      using result = await scene.deploy({ inputs: { domain: '', 'job-id': jobId } })
      assert.equal(result.exitCode, 0, result.log)
      assert.equal(scene.count('start'), 1)
      assert.equal(result.outputs.get('jobId'), jobId)
      await scene.expectServed(jobId)
    })

    scenario('A failed export leaves the cluster untouched', async () => {
      await using scene = await stage.scene(helm)
      const former = await scene.installFormer()
      scene.emulator.failNextJob({ error: 'Out of paper.', afterPages: 1 })
      using result = await scene.deploy()
      assert.equal(result.exitCode, 1)
      assert.deepEqual([...result.jobs.keys()], ['export'])
      assert.equal(result.outputs.get('failureCode'), 'job-failed')
      const jobId = result.outputs.get('jobId') ?? ''
      assert.match(jobId, /^se_/)

      using again = await scene.deploy({ workflow: oneStep, inputs: { 'job-id': jobId } })
      const { outputs, errors } = again.step('Deploy')
      assert.match(errors.join('\n'), /Out of paper\./)
      assert.equal(outputs.get('failureCode'), 'job-failed')
      assert.equal(outputs.get('releaseRevision'), '1')
      assert.deepEqual(await scene.history(), ['1 deployed'])
      await scene.expectFormer(former)
    })

    scenario(
      'Pods that no node takes: the reason is told, and the former revision is back',
      async () => {
        await using scene = await stage.scene(helm)
        const former = await scene.installFormer()
        using result = await scene.deploy({
          inputs: { values: JSON.stringify(nowhere), 'helm-timeout-minutes': '0.3' },
        })
        assert.equal(result.exitCode, 1)
        assert.deepEqual(await scene.history(), ['1 superseded', '2 failed', '3 deployed'])
        await scene.expectFormer(former)
        assert.equal(result.outputs.get('failureCode'), 'deploy-failed')
        assert.equal(result.outputs.get('releaseRevision'), '3')
        const { errors, summary } = result.step('Deploy')
        assert.equal(errors.length, 1)
        for (const text of [errors.join(), summary]) {
          assert.match(text, /Unschedulable/)
          assert.match(text, /node affinity/)
          assert.match(text, /Rolled back to revision 1/)
        }
        assert.match(result.log, /^\[00:\d\d\] Deployment docs .*Unschedulable/m)
      },
    )

    scenario('A rollout that only Helm 3 believes in fails', async () => {
      await using scene = await stage.scene(helm)
      const former = await scene.installFormer()
      const values = {
        ...nowhere,
        replicaCount: 1,
        strategy: { rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } },
      }
      using result = await scene.deploy({ inputs: { values: JSON.stringify(values) } })
      assert.equal(result.exitCode, 1)
      const [error = '', ...more] = result.step('Deploy').errors
      assert.deepEqual(more, [])
      assert.match(error, /Unschedulable/)
      assert.equal(/Helm reported success, but revision/.test(error), helm.major === 3)
      assert.equal(result.outputs.get('failureCode'), 'deploy-failed')
      assert.equal(result.outputs.get('releaseRevision'), '3')
      assert.equal((await scene.history()).at(-1), '3 deployed')
      await scene.expectFormer(former)
    })

    scenario('A pod that crashes: its last words are told, without the link in them', async () => {
      await using scene = await stage.scene(helm)
      const former = await scene.installFormer()
      const [crashed, deployed] = await Promise.all([
        crashNextPod(scene, 'fetch', (link) => `could not fetch ${link}`),
        scene.deploy({
          inputs: { values: JSON.stringify(nowhere) },
          environment: { HELM_DEBUG: '1' },
        }),
      ])
      using result = deployed
      assert.equal(result.exitCode, 1)
      const { errors, summary } = result.step('Deploy')
      for (const text of [errors.join(), summary]) {
        assert.ok(text.includes(crashed), text)
        assert.match(text, /CrashLoopBackOff/)
        assert.match(text, /exit code 22/)
        assert.match(text, /could not fetch/)
      }
      assert.equal(result.outputs.get('releaseRevision'), '3')
      assert.equal((await scene.history()).at(-1), '3 deployed')
      await scene.expectFormer(former)
    })

    scenario('A hook that fails: its last words are told, without the link in them', async () => {
      await using scene = await stage.scene(helm)
      const former = await scene.installFormer()
      const told = Promise.withResolvers<undefined>()
      const end = () => {
        told.resolve(undefined)
      }
      const [pod, deployed] = await Promise.all([
        told.promise.then(() => failNextPod(scene, (link) => `could not migrate to ${link}`)),
        scene
          .deploy({
            inputs: { 'helm-timeout-minutes': '0.5' },
            files: { 'chart/templates/migrate.yaml': dump(migration) },
            environment: { HELM_DEBUG: '1' },
            onLine: ({ text }) => {
              if (/^\[00:\d\d\] hook Job docs-migrate is running$/.test(text)) end()
            },
          })
          .finally(end),
      ])
      using result = deployed
      assert.equal(result.exitCode, 1)
      assert.match(result.log, /^\[00:\d\d\] hook Job docs-migrate is running$/m)
      for (const text of toldBy(result)) {
        assert.match(text, /hook Job docs-migrate: failed/)
        assert.ok(text.includes(pod), text)
        assert.match(text, /migrate ended: Error, exit code 22, could not migrate to/)
        assert.match(text, /Rolled back to revision 1/)
      }
      assert.equal(result.outputs.get('failureCode'), 'deploy-failed')
      assert.equal(result.outputs.get('releaseRevision'), '3')
      assert.deepEqual(await scene.history(), ['1 superseded', '2 failed', '3 deployed'])
      await scene.expectFormer(former)
    })

    scenario('A volume that nobody provides: the reason is told', async () => {
      await using scene = await stage.scene(helm)
      const former = await scene.installFormer()
      using result = await scene.deploy({
        files: { 'chart/templates/claim.yaml': dump(claim) },
      })
      assert.equal(result.exitCode, 1)
      for (const text of toldBy(result)) {
        assert.match(text, /PersistentVolumeClaim docs-cache: not bound to a volume/)
        assert.match(
          text,
          /event of PersistentVolumeClaim docs-cache: ProvisioningFailed, .*missing/,
        )
        assert.match(text, /Rolled back to revision 1/)
      }
      assert.equal(result.outputs.get('failureCode'), 'deploy-failed')
      assert.equal(result.outputs.get('releaseRevision'), '3')
      assert.deepEqual(await scene.history(), ['1 superseded', '2 failed', '3 deployed'])
      await scene.expectFormer(former)
    })

    scenario('A first install that fails is removed again', async () => {
      await using scene = await stage.scene(helm)
      using result = await scene.deploy({ inputs: { values: JSON.stringify(nowhere) } })
      assert.equal(result.exitCode, 1)
      assert.deepEqual(await scene.history(), [])
      await assert.rejects(scene.deployment(), /404/)
      assert.match(result.step('Deploy').errors.join(), /Unschedulable/)
      assert.match(result.step('Deploy').errors.join(), /has been removed again/)
      assert.equal(result.outputs.get('failureCode'), 'deploy-failed')
      assert.equal(result.outputs.get('releaseRevision'), '')
    })

    scenario(
      'A release that never was deployed is left as it is, and can be deployed',
      async () => {
        await using scene = await stage.scene(helm)
        await assert.rejects(scene.install(nowhere, '--timeout', '1s'))
        assert.deepEqual(await scene.history(), ['1 failed'])
        using failed = await scene.deploy({ inputs: { values: JSON.stringify(nowhere) } })
        assert.equal(failed.exitCode, 1)
        assert.deepEqual(await scene.history(), ['1 failed', '2 failed'])
        assert.match(failed.step('Deploy').errors.join(), /left as it is/)
        assert.equal(failed.outputs.get('releaseRevision'), '')

        using result = await scene.deploy({ inputs: { 'existing-values': 'reset' } })
        assert.equal(result.exitCode, 0, result.log)
        assert.equal(result.outputs.get('releaseRevision'), '3')
        await scene.expectServed(result.outputs.get('jobId') ?? '')
      },
    )

    scenario('An upgrade that was killed: the error names what frees the release', async () => {
      await using scene = await stage.scene(helm)
      const former = await scene.installFormer()
      await killInTheMiddle(scene, '2 pending-upgrade')
      const inputs = { 'job-id': await scene.startExport() }
      using locked = await scene.deploy({ workflow: oneStep, inputs })
      assert.equal(scene.count('bundle'), 1) // that of the former export
      assert.deepEqual(await scene.history(), ['1 deployed', '2 pending-upgrade'])
      assert.equal(locked.step('Deploy').outputs.get('failureCode'), 'release-locked')
      assert.equal(locked.step('Deploy').outputs.get('releaseRevision'), '1')

      await scene.followAdvice(locked.step('Deploy').errors)
      await scene.expectFormer(former)
      using result = await scene.deploy({ workflow: oneStep, inputs })
      assert.equal(result.exitCode, 0, result.log)
      assert.equal((await scene.history()).at(-1), '4 deployed')
      await scene.expectServed(inputs['job-id'])
    })

    scenario('An install that was killed: the error names what frees the release', async () => {
      await using scene = await stage.scene(helm)
      await killInTheMiddle(scene, '1 pending-install')
      const inputs = { 'job-id': await scene.startExport() }
      using locked = await scene.deploy({ workflow: oneStep, inputs })
      assert.equal(scene.count('bundle'), 0)
      assert.deepEqual(await scene.history(), ['1 pending-install'])
      assert.equal(locked.step('Deploy').outputs.get('failureCode'), 'release-locked')
      assert.equal(locked.step('Deploy').outputs.get('releaseRevision'), '')

      await scene.followAdvice(locked.step('Deploy').errors)
      assert.deepEqual(await scene.history(), [])
    })

    scenario('A cancel while the export runs changes nothing', async () => {
      await using scene = await stage.scene(helm, { jobSeconds: 3600 })
      await scene.install({ settings: { TITLE: 'Former' } })
      const { cancel, onLine } = canceller()
      using result = await scene.deploy({
        onLine: onLine(/^Export of .* started/, 'dist/index.js'),
      })
      expectCancelled(await cancel)
      assert.deepEqual([...result.jobs.keys()], ['export'])
      assert.equal(result.outputs.get('failureCode'), 'cancelled')
      const jobId = result.outputs.get('jobId') ?? ''

      const attached = canceller()
      using step = await scene.deploy({
        workflow: oneStep,
        inputs: { 'job-id': jobId },
        onLine: attached.onLine(/^Attached to export job/, 'dist/helm/index.js'),
      })
      expectCancelled(await attached.cancel)
      const { outputs } = step.step('Deploy')
      assert.equal(outputs.get('failureCode'), 'cancelled')
      assert.equal(outputs.get('jobId'), jobId)
      assert.equal(outputs.get('releaseRevision'), '1')
      assert.equal(scene.count('bundle'), 0)
      assert.deepEqual(await scene.history(), ['1 deployed'])
      assert.deepEqual(await scene.values(), { settings: { TITLE: 'Former' } })
    })

    scenario('A cancel while Helm waits brings the former revision back', async () => {
      await using scene = await stage.scene(helm)
      const former = await scene.installFormer()
      using result = await cancelWhile(scene, '2 pending-upgrade')
      assert.deepEqual(await scene.history(), ['1 superseded', '2 failed', '3 deployed'])
      assert.equal(result.outputs.get('releaseRevision'), '3')
      await scene.expectFormer(former)
    })

    scenario('A cancel in the first install takes it away', async () => {
      await using scene = await stage.scene(helm)
      using result = await cancelWhile(scene, '1 pending-install')
      assert.deepEqual(await scene.history(), [])
      await assert.rejects(scene.deployment(), /404/)
      assert.equal(result.outputs.get('releaseRevision'), '')
    })
  })
})

/** Kills Helm while it waits for pods that never come, so that nobody ends what it has begun. */
async function killInTheMiddle(scene: Scene, state: string): Promise<void> {
  const helm = scene.startHelm(...scene.installArguments(nowhere))
  await waitFor({
    what: `begun: ${state}`,
    program: helm,
    ask: () => begun(scene, state),
  })
  await helm.stop()
  assert.equal(helm.ending(), 'SIGKILL')
}

/** Cancels the step that runs a file, once a line of the log matches. */
function canceller() {
  const { promise: cancel, resolve } = Promise.withResolvers<Cancellation>()
  const onLine = (pattern: RegExp, entry: string) => {
    return ({ text }: { readonly text: string }, running: RunningWorkflow) => {
      if (pattern.test(text)) resolve(running.cancelStep(entry))
    }
  }
  return { cancel, onLine }
}
