/** Cancels a deployment in its middle, as a runner does. */
import assert from 'node:assert/strict'
import { type Cancellation, listProcesses } from '../act/processes.ts'
import type { RunningWorkflow, WorkflowResult } from '../act/run-workflow.ts'
import { waitFor } from '../parts/ready.ts'
import { nowhere, type Scene } from './scene.ts'
import { expectPrivateFiles } from './secrets.ts'

/** The Deployment, once Helm has it as `nowhere` has it. */
export async function begun(scene: Scene, state: string) {
  if (!(await scene.history()).includes(state)) return undefined
  const deployment = await scene.deployment()
  return deployment.spec.template.spec.nodeSelector && deployment
}

/** A runner sends SIGTERM after 7.5 seconds. */
export function expectCancelled({ signal, seconds }: Cancellation): void {
  assert.equal(signal, 'SIGINT', `It needed ${signal}, after ${seconds} s.`)
}

/**
 * Cancels a deployment of pods that never come while Helm waits for them.
 *
 * @param state of our revision while Helm waits, as `history` has it
 * @param helm what is `helm` for the step
 */
export async function cancelWhile(
  scene: Scene,
  state: string,
  helm: string = scene.program,
): Promise<WorkflowResult> {
  const running = Promise.withResolvers<RunningWorkflow>()
  const cancel = async () => {
    const workflow = await running.promise
    await waitFor({
      what: `begun: ${state}`,
      timeoutMs: 60_000,
      ask: () => begun(scene, state),
    })
    expectPrivateFiles(scene.namespace)
    return workflow.cancelStep('dist/helm/index.js')
  }
  const [cancellation, result] = await Promise.all([
    cancel(),
    scene.deploy({
      helm,
      inputs: { values: JSON.stringify(nowhere), 'helm-timeout-minutes': '2' },
      onLine: (_, workflow) => {
        running.resolve(workflow)
      },
    }),
  ])
  expectCancelled(cancellation)
  assert.equal(result.outputs.get('failureCode'), 'cancelled')
  assert.equal(result.outputs.get('jobId'), result.step('Export the site').outputs.get('jobId'))
  assert.match(result.step('Deploy').summary, /cancelled/)
  const left = listProcesses().filter(({ args }) => args.includes(scene.namespace))
  assert.deepEqual(left, [], 'Helm still runs.')
  return result
}
