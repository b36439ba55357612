/**
 * Whether workloads are ready, and what their pods say. The live objects were read with `helm status` from a
 * Kubernetes 1.35 API, by both majors, and trimmed; what kubelets would say was patched into the pods.
 */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from '@jest/globals'
import {
  type Workload,
  describeProgress,
  describeWorkloads,
  reasonsOfWorkloads,
  workloadsOf,
} from '../../src/helm/workloads.ts'

type Resources = Readonly<Record<string, unknown>>

function fixture(major: 3 | 4, name: string): Resources {
  const file = path.join(import.meta.dirname, `live-resources-${major}.json`)
  const all = JSON.parse(readFileSync(file, 'utf8')) as Record<string, Resources>
  const found = all[name]
  if (!found) throw new Error(`no fixture ${name}`)
  return found
}

const look = (major: 3 | 4, name: string) => workloadsIn(fixture(major, name))
const readiness = (workloads: readonly Workload[]) =>
  Object.fromEntries(workloads.map(({ kind, isReady }) => [kind, isReady]))
const asIs = (text: string) => text.trim()
const workloadsIn = (resources: Resources) => workloadsOf(resources, asIs)
const reasons = (workloads: readonly Workload[]) => reasonsOfWorkloads(workloads)
const line = (workloads: readonly Workload[]) => describeWorkloads(workloads)

/** A workload as it is once its rollout is over, and what differs. */
function deployment(status: object = {}, spec: object = {}, metadata: object = {}): Resources {
  return {
    'v1/Deployment': [
      {
        kind: 'Deployment',
        metadata: { name: 'docs', generation: 2, ...metadata },
        spec: { replicas: 2, ...spec },
        status: {
          observedGeneration: 2,
          replicas: 2,
          updatedReplicas: 2,
          readyReplicas: 2,
          availableReplicas: 2,
          ...status,
        },
      },
    ],
  }
}

const isReady = (resources: Resources) => workloadsIn(resources).every((one) => one.isReady)

describe.each([3, 4] as const)('by Helm %i,', (major) => {
  test('a Deployment is ready', () => {
    const [workload, ...others] = look(major, 'ready')
    expect(others).toEqual([])
    expect(workload).toMatchObject({ kind: 'Deployment', desired: 2, ready: 2, isReady: true })
    expect(workload?.pods).toHaveLength(2)
    expect(line(look(major, 'ready'))).toBe(`Deployment ok${major} 2 of 2 ready`)
    expect(reasons(look(major, 'ready'))).toEqual([])
  })

  test('a new pod that has no node keeps an update from being ready, although the old pods are', () => {
    const workloads = look(major, 'unschedulable')
    expect(readiness(workloads)).toEqual({ Deployment: false })
    // Two of two are ready, but that is not what anybody waits for.
    expect(line(workloads)).not.toContain('2 of 2')
    expect(line(workloads)).toMatch(/^Deployment ok\d .*\(Unschedulable, 0\/1 nodes are available/)
    expect(reasons(workloads)).toHaveLength(2)
    expect(reasons(workloads)[1]).toMatch(/^pod ok\d-\w+-\w+: Unschedulable, 0\/1 nodes/)
  })

  test('the only pod that runs is the old one: the update is not ready', () => {
    // replicas 1, maxUnavailable 0, maxSurge 1: updated, ready and available are all one.
    const workloads = look(major, 'oneReplica')
    expect(readiness(workloads)).toEqual({ Deployment: false })
    expect(line(workloads)).toContain('Unschedulable')
    expect(reasons(workloads).join('\n')).toContain('Unschedulable')
  })

  test('an init container that cannot fetch the link says so, with its last exit', () => {
    expect(readiness(look(major, 'fetchRefused'))).toEqual({ Deployment: false })
    const [first, ...others] = reasons(look(major, 'fetchRefused'))
    expect(first).toBe(`Deployment initcrash${major}: 0 of 1 ready`)
    const pod = /^pod initcrash\d-\w+-\w+: /
    expect(others[0]).toMatch(pod)
    expect(others.map((reason) => reason.replace(pod, '')).slice(0, 2)).toEqual([
      'fetch: CrashLoopBackOff, back-off 1m20s restarting failed container=fetch pod=docs-x_unit-tests(uid)',
      'fetch ended before: Error, exit code 22, curl: (22) The requested URL returned error: 403',
    ])
    expect(line(look(major, 'fetchRefused'))).toContain('0 of 1 ready (fetch: CrashLoopBackOff')
  })

  test('an image that cannot be pulled is named; the init container that is done is not', () => {
    const said = reasons(look(major, 'imagePull'))
    expect(said).toHaveLength(2)
    expect(said[1]).toMatch(
      /: web: ImagePullBackOff, Back-off pulling image "nginxinc\/nginx-unprivileged:1.29-alpin"/,
    )
  })

  test('a container that crashes tells the exit code of its last try', () => {
    const said = reasons(look(major, 'crash'))
    expect(said[1]).toMatch(/: web: CrashLoopBackOff, back-off 40s/)
    expect(said[2]).toMatch(/: web ended before: Error, exit code 1$/)
  })

  test('a container that runs and does not answer its probe is not ready', () => {
    const workloads = look(major, 'notReady')
    expect(readiness(workloads)).toEqual({ Deployment: false })
    expect(reasons(workloads)[0]).toBe(`Deployment probe${major}: 0 of 1 ready`)
  })
})

describe('in a release of several kinds,', () => {
  test('each is judged by its own numbers', () => {
    expect(readiness(look(3, 'kinds'))).toEqual({
      DaemonSet: true,
      Deployment: true,
      StatefulSet: true,
    })
  })

  test('those that cannot be updated are named with their own pods', () => {
    const workloads = look(3, 'stuck')
    expect(readiness(workloads)).toEqual({
      DaemonSet: true, // no node wants it any more
      Deployment: false,
      StatefulSet: false,
    })
    const said = reasons(workloads)
    expect(said.filter((one) => !one.startsWith('pod '))).toEqual([
      expect.stringMatching(/^Deployment kk3-web: /),
      expect.stringMatching(/^StatefulSet kk3-store: /),
    ])
    expect(said[1]).toMatch(/^pod kk3-web-/)
    expect(said[3]).toMatch(/^pod kk3-store-1: Unschedulable/)
    expect(line(workloads)).not.toContain('DaemonSet')
  })

  test('pods that change only when somebody deletes them are not waited for', () => {
    const workloads = look(3, 'onDelete')
    expect(readiness(workloads)).toMatchObject({ DaemonSet: true, StatefulSet: true })
  })

  test('the pods below a partition stay as they are', () => {
    expect(readiness(look(3, 'partition'))).toMatchObject({ StatefulSet: true })
  })

  test('nothing at all is ready at once', () => {
    const workloads = look(3, 'zero')
    expect(readiness(workloads)).toMatchObject({ Deployment: true, StatefulSet: true })
    expect(line(workloads)).toContain('Deployment kinds3-web 0 of 0 ready')
  })
})

describe('is not ready', () => {
  test.each([
    ['before the controller has seen it', deployment({ observedGeneration: 1 })],
    ['without any status', { 'v1/Deployment': [{ metadata: { name: 'docs', generation: 1 } }] }],
    ['with one pod of the former revision left to replace', deployment({ updatedReplicas: 1 })],
    ['with one pod that is not ready', deployment({ readyReplicas: 1, availableReplicas: 1 })],
    ['with pods that are ready for too short a time', deployment({ availableReplicas: 0 })],
    ['with a new pod that is not ready while an old one still is', deployment({ replicas: 3 })],
    ['with all new pods not ready beside all old ones', deployment({ replicas: 4 })],
    ['with fewer pods than there are to be', deployment({}, { replicas: 3 })],
  ])('%s', (_when, resources) => {
    expect(isReady(resources)).toBe(false)
  })

  test.each([
    ['DaemonSet with one node to go', { updatedNumberScheduled: 2 }],
    ['DaemonSet with one pod not ready', { numberReady: 2 }],
    ['DaemonSet with one pod not available', { numberAvailable: 2 }],
  ])('a %s', (_what, status) => {
    const numbers = {
      observedGeneration: 1,
      desiredNumberScheduled: 3,
      updatedNumberScheduled: 3,
      numberReady: 3,
      numberAvailable: 3,
    }
    const resources = (more: object) => ({
      'v1/DaemonSet': [
        { metadata: { name: 'agent', generation: 1 }, status: { ...numbers, ...more } },
      ],
    })
    expect(isReady(resources({}))).toBe(true)
    expect(isReady(resources(status))).toBe(false)
  })

  test('a StatefulSet with a pod above the partition to go', () => {
    const resources = (updatedReplicas: number) => ({
      'v1/StatefulSet': [
        {
          metadata: { name: 'store', generation: 1 },
          spec: {
            replicas: 5,
            updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 3 } },
          },
          status: {
            observedGeneration: 1,
            readyReplicas: 5,
            availableReplicas: 5,
            updatedReplicas,
          },
        },
      ],
    })
    expect(isReady(resources(1))).toBe(false)
    expect(isReady(resources(2))).toBe(true)
  })
})

describe('pods', () => {
  const pod = (name: string, owner: object, status: object = {}) => ({
    kind: 'Pod',
    metadata: { name, ownerReferences: [owner] },
    status: { conditions: [{ type: 'Ready', status: 'False' }], ...status },
  })
  const waiting = (name: string, reason: string) => ({
    name,
    ready: false,
    state: { waiting: { reason } },
  })
  const withPods = (...items: object[]): Resources => ({
    ...deployment({ readyReplicas: 0, availableReplicas: 0 }),
    'v1/Pod(related)': [{ kind: 'PodList', items }],
  })
  const replicaSet = (name: string) => ({ kind: 'ReplicaSet', name })

  test('of another workload whose name begins the same are not its own', () => {
    const [workload] = workloadsIn(
      withPods(
        pod('docs-7d-a', replicaSet('docs-7d')),
        pod('docs-search-7d-a', replicaSet('docs-search-7d')),
        pod('docs-0', { kind: 'StatefulSet', name: 'docs' }),
        { kind: 'Pod', metadata: { name: 'by-hand' } },
      ),
    )
    expect(workload?.pods.map(({ name }) => name)).toEqual(['docs-7d-a'])
  })

  test('of a StatefulSet that stand in the way of their own successors are named', () => {
    const one = (name: string, hash: string) => {
      const made = pod(name, { kind: 'StatefulSet', name: 'store' })
      return {
        ...made,
        metadata: { ...made.metadata, labels: { 'controller-revision-hash': hash } },
      }
    }
    const [workload] = workloadsIn({
      'v1/StatefulSet': [
        {
          metadata: { name: 'store', generation: 3 },
          spec: { replicas: 2 },
          status: { observedGeneration: 3, replicas: 2, updateRevision: 'store-new' },
        },
      ],
      'v1/Pod(related)': [{ items: [one('store-0', 'store-new'), one('store-1', 'store-bad')] }],
    })
    expect(workload?.pods.map(({ reasons }) => reasons)).toEqual([
      [],
      [
        'of an older revision, which Kubernetes does not replace by itself: if it stays, delete the pod',
      ],
    ])
  })

  test('that were evicted say why', () => {
    const evicted = pod('docs-7d-a', replicaSet('docs-7d'), {
      reason: 'Evicted',
      message: 'The node was low on resource: memory.',
    })
    expect(reasons(workloadsIn(withPods(evicted)))).toContain(
      'pod docs-7d-a: Evicted, The node was low on resource: memory.',
    )
  })

  test('that ended in an error say how', () => {
    const killed = pod('docs-7d-a', replicaSet('docs-7d'), {
      containerStatuses: [
        {
          name: 'web',
          ready: false,
          state: { terminated: { reason: 'OOMKilled', exitCode: 137 } },
        },
      ],
    })
    expect(reasons(workloadsIn(withPods(killed)))).toContain(
      'pod docs-7d-a: web ended: OOMKilled, exit code 137',
    )
  })

  test('do not speak of containers that are done, or run again', () => {
    const probed = pod('docs-7d-a', replicaSet('docs-7d'), {
      initContainerStatuses: [
        {
          name: 'fetch',
          ready: true,
          state: { terminated: { reason: 'Completed', exitCode: 0 } },
          lastState: { terminated: { reason: 'Error', exitCode: 22 } },
        },
      ],
      containerStatuses: [
        {
          name: 'proxy',
          ready: true,
          state: { running: {} },
          lastState: { terminated: { reason: 'OOMKilled', exitCode: 137 } },
        },
        {
          name: 'once',
          ready: false,
          state: { terminated: { reason: 'Completed', exitCode: 0 } },
          lastState: {},
        },
        { name: 'web', ready: false, state: { running: {} }, lastState: {} },
      ],
    })
    expect(reasons(workloadsIn(withPods(probed)))).toEqual(['Deployment docs: 0 of 2 ready'])
  })

  test('beyond a handful of reasons are only counted', () => {
    const pods = Array.from({ length: 40 }, (_, index) =>
      pod(`docs-7d-${index}`, replicaSet('docs-7d'), {
        containerStatuses: [waiting('web', 'ImagePullBackOff')],
      }),
    )
    const said = reasons(workloadsIn(withPods(...pods)))
    expect(said.length).toBeLessThan(10)
    expect(said.at(-1)).toContain('35 more')
  })

  test('speak without secrets, also where what they say is cut', () => {
    const secret = 'X-Amz-Signature=0123'
    const workloads = workloadsOf(
      withPods(
        pod('docs-7d-a', replicaSet('docs-7d'), {
          containerStatuses: [waiting('web', `${'a'.repeat(140)}${secret}`)],
        }),
      ),
      (text) => text.replaceAll(secret, '***'),
    )
    const said = [...reasonsOfWorkloads(workloads), describeWorkloads(workloads)].join('\n')
    expect(said).toContain('aaa***')
    expect(said).not.toContain('X-Amz')
  })
})

test('a Deployment that is paused does not change, and says why', () => {
  const paused = workloadsIn(deployment({ updatedReplicas: 0 }, { paused: true }))
  expect(paused[0]?.isReady).toBe(false)
  expect(line(paused)).toBe('Deployment docs 0 of 2 updated, paused (spec.paused)')
})

describe('in a line of the log', () => {
  const resources = {
    ...deployment(),
    'v1/PersistentVolumeClaim': [
      { metadata: { name: 'docs-cache' }, status: { phase: 'Pending' } },
      { metadata: { name: 'docs-logs' }, status: { phase: 'Bound' } },
    ],
  }
  const hook = (name: string, phase: string) => ({ kind: 'Job', name, phase })

  test('stands what else Helm waits for, when all pods are ready', () => {
    const hooks = [hook('docs-migrate', 'Succeeded'), hook('docs-seed', '')]
    expect(describeProgress({ resources, hooks }, asIs)).toBe(
      'Deployment docs 2 of 2 ready · PersistentVolumeClaim docs-cache not bound to a volume',
    )
  })

  test('stands the hook that runs, and not what is there from before', () => {
    const hooks = [hook('docs-migrate', 'Running'), hook('docs-seed', '')]
    expect(describeProgress({ resources, hooks }, asIs)).toBe('hook Job docs-migrate is running')
  })
})

test.each([
  ['nothing', {}],
  ['no workload', { 'v1/ConfigMap': [{ kind: 'ConfigMap', metadata: { name: 'a' } }] }],
  ['what is no list', { 'v1/Deployment': { metadata: {} }, 'v1/Pod(related)': null }],
])('of %s there is nothing to wait for', (_what, resources) => {
  expect(workloadsIn(resources)).toEqual([])
  expect(line([])).toBe('no workload to wait for')
})
