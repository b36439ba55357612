/** Pods that fail, which kwok does not imitate. */
import assert from 'node:assert/strict'
import type { KubernetesObject } from '../parts/cluster-client.ts'
import { waitFor } from '../parts/ready.ts'
import type { Scene } from './scene.ts'

interface Pod extends KubernetesObject {
  readonly spec: {
    readonly nodeName?: string
    readonly containers: readonly {
      readonly name: string
      readonly env?: readonly { readonly name: string; readonly value?: string }[]
    }[]
  }
}

/**
 * Waits for a pod that has no node (see `nowhere`), and lets its container crash again and again.
 *
 * @param say the last words of the container, given the link
 * @returns the name of the pod
 */
export async function crashNextPod(
  scene: Scene,
  container: string,
  say: (link: string) => string,
): Promise<string> {
  const { client } = scene.cluster
  const { name } = (await nextPod(scene)).metadata
  const status = {
    name: container,
    image: 'example.com/image',
    imageID: '',
    ready: false,
    restartCount: 3,
    state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off restarting' } },
    lastState: { terminated: terminated(say(await scene.link())) },
  }
  // With an address it counts as started, so that kwok leaves it alone once it has a node.
  await client.patch(`${scene.at('pods')}/${name}/status`, {
    status: {
      phase: 'Pending',
      podIP: '10.0.0.99',
      podIPs: [{ ip: '10.0.0.99' }],
      initContainerStatuses: [status],
    },
  })
  const [node] = await client.list('/api/v1/nodes')
  await client.create(`${scene.at('pods')}/${name}/binding`, {
    metadata: { name },
    target: { apiVersion: 'v1', kind: 'Node', name: node?.metadata.name },
  })
  return name
}

/**
 * Waits for a pod that has no node, and lets its only container fail, once and for all.
 *
 * @param say the last words of the container, given the link, which it has in its environment
 * @returns the name of the pod
 */
export async function failNextPod(scene: Scene, say: (link: string) => string): Promise<string> {
  const { metadata, spec } = await nextPod(scene)
  const [container] = spec.containers
  const link = container?.env?.find(({ name }) => name === 'BUNDLE_URL')?.value ?? ''
  assert.match(link, /^https?:/, 'The pod gets no link.')
  await scene.cluster.client.patch(`${scene.at('pods')}/${metadata.name}/status`, {
    status: {
      phase: 'Failed',
      conditions: [{ type: 'PodScheduled', status: 'True' }],
      containerStatuses: [
        {
          name: container?.name,
          image: 'example.com/image',
          imageID: '',
          ready: false,
          restartCount: 0,
          state: { terminated: terminated(say(link)) },
        },
      ],
    },
  })
  return metadata.name
}

function nextPod(scene: Scene): Promise<Pod> {
  return waitFor({
    what: 'there: a pod without a node',
    timeoutMs: 60_000,
    ask: async () => {
      const pods = await scene.cluster.client.list<Pod>(scene.at('pods'))
      return pods.find(({ spec }) => spec.nodeName === undefined)
    },
  })
}

function terminated(message: string) {
  return {
    exitCode: 22,
    reason: 'Error',
    message,
    startedAt: '2026-11-20T10:00:00Z',
    finishedAt: '2026-11-20T10:00:01Z',
  }
}
