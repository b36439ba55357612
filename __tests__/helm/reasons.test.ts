/** Why a deployment failed, as far as the cluster says. */
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { systemDisk } from '../../src/disk.ts'
import { createHelm } from '../../src/helm/helm.ts'
import { createRedactor } from '../../src/helm/redactor.ts'
import { readReasons } from '../../src/helm/reasons.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { type FakeEvent, FakeHelm, type Rollout, troubles } from '../support/fake-helm.ts'
import { RecordingLog } from '../support/recording-log.ts'

let directory: string
beforeEach(() => {
  directory = fs.mkdtempSync(path.join(tmpdir(), 'reasons-'))
})
afterEach(() => {
  fs.rmSync(directory, { recursive: true })
})

const within = { signal: new AbortController().signal, maxMs: 30_000 }
const signature = 'X-Amz-Signature=0123456789abcdef'

/** A release whose last upgrade did not become ready. */
async function stuck(rollout: Rollout = {}, major: 3 | 4 = 4) {
  const clock = new FakeClock()
  const fake = new FakeHelm({ clock, major })
  const log = new RecordingLog()
  const redactor = createRedactor()
  redactor.add(signature)
  const helm = createHelm({
    run: fake.run,
    file: '/opt/helm',
    major,
    environment: {},
    directory,
    release: 'docs',
    namespace: 'default',
    kubeContext: undefined,
    redactor,
  })
  const chart = path.join(directory, 'chart')
  fs.mkdirSync(chart)
  fs.writeFileSync(path.join(chart, 'Chart.yaml'), 'name: docs\nversion: 1.0.0\n')
  fake.plan({ readyAfterMs: Infinity, ...rollout })
  await helm
    .upgrade(
      {
        chart: [chart],
        existingValues: 'keep',
        valuesFiles: [],
        ownValues: '',
        createNamespace: false,
        timeoutMs: 60_000,
      },
      within,
    )
    .catch(() => undefined)
  fs.rmSync(chart, { recursive: true })
  const read = () =>
    readReasons(
      Date.parse('2026-11-20T12:00:00Z'),
      { helm, redactor, disk: systemDisk, log, temporaryDirectory: directory },
      within,
    )
  return { fake, log, read }
}

const event = (more: Partial<FakeEvent> = {}): FakeEvent => ({
  type: 'Warning',
  kind: 'Pod',
  name: 'docs-new1-0',
  reason: 'Unhealthy',
  message: 'Readiness probe failed: HTTP probe failed with statuscode: 404',
  last: '2026-11-20T12:00:30Z',
  ...more,
})

test.each([3, 4] as const)(
  'names the workload, then its pods, then the events (Helm %i)',
  async (major) => {
    const { fake, read } = await stuck({ trouble: troubles.fetchRefused, replicas: 1 }, major)
    fake.events.push(event())
    expect(await read()).toEqual([
      'Deployment docs: 0 of 1 ready',
      'pod docs-new1-0: fetch: CrashLoopBackOff, back-off 1m20s restarting failed container=fetch',
      'pod docs-new1-0: fetch ended before: Error, exit code 22, curl: (22) The requested URL returned error: 403',
      'pod docs-new1-0: web: PodInitializing',
      'event of Pod docs-new1-0: Unhealthy, Readiness probe failed: HTTP probe failed with statuscode: 404',
    ])
  },
)

test('says nothing, and asks for no events, when everything is ready', async () => {
  const { fake, read } = await stuck({ readyAfterMs: 0 })
  expect(await read()).toEqual([])
  expect(fake.calls.map(({ command }) => command)).not.toContain('template')
})

test('takes only warnings about this release, each once, the last five in their order', async () => {
  const { fake, read } = await stuck({ replicas: 1 })
  const warning = (number: number) =>
    event({
      kind: 'ReplicaSet',
      name: 'docs-new1',
      reason: 'FailedCreate',
      message: `no quota (${number})`,
      last: `2026-11-20T12:00:0${number}Z`,
    })
  fake.events.push(
    ...[7, 3, 2, 6, 5, 4].map(warning),
    warning(4),
    event({ type: 'Normal', message: 'Created container web' }),
    event({ name: 'shop-7d-a', message: 'of another release' }),
    event({ name: 'docs-old-a', message: 'of a pod that is gone' }),
  )
  const events = (await read()).filter((reason) => reason.startsWith('event '))
  expect(events).toEqual(
    [3, 4, 5, 6, 7].map(
      (number) => `event of ReplicaSet docs-new1: FailedCreate, no quota (${number})`,
    ),
  )
})

test('tells nothing that the cluster said before this attempt', async () => {
  const { fake, read } = await stuck({ replicas: 1 })
  const failedCreate = { kind: 'ReplicaSet', name: 'docs-new1', reason: 'FailedCreate' }
  fake.events.push(
    event({ ...failedCreate, message: 'exceeded quota', last: '2026-11-20T11:40:00Z' }),
    event({ ...failedCreate, message: 'forbidden image', last: '2026-11-20T11:59:30Z' }), // its clock is behind
  )
  const events = (await read()).filter((reason) => reason.startsWith('event '))
  expect(events).toEqual(['event of ReplicaSet docs-new1: FailedCreate, forbidden image'])
})

test('does not repeat as an event what a pod says itself', async () => {
  const { fake, read } = await stuck({ trouble: troubles.unschedulable, replicas: 1 })
  fake.events.push(
    event({ reason: 'FailedScheduling', message: troubles.unschedulable.conditions[0].message }),
  )
  const reasons = await read()
  expect(reasons).toHaveLength(2)
  expect(reasons[1]).toMatch(/^pod docs-new1-0: Unschedulable, 0\/1 nodes/)
})

test('hides the link in whatever says it', async () => {
  const message = `curl: (22) https://s.test/a?${signature}: 403`
  const trouble = {
    containerStatuses: [
      { name: 'web', ready: false, state: { waiting: { reason: 'Error', message } } },
    ],
  }
  const { fake, log, read } = await stuck({ trouble, replicas: 1 })
  fake.events.push(event({ message: `MountVolume failed for ?${signature}` }))
  const told = [...(await read()), ...log.lines].join('\n')
  expect(told).not.toContain('0123456789abcdef')
  expect(told).toContain('https://s.test/a?***: 403')
  expect(told).toContain('MountVolume failed for ?***')
})

const migration = {
  kind: 'Job',
  name: 'docs-migrate',
  phase: 'Failed',
  pods: [
    {
      name: 'docs-migrate-x7k2p',
      status: {
        phase: 'Failed',
        containerStatuses: [
          {
            name: 'migrate',
            ready: false,
            state: {
              terminated: { exitCode: 3, reason: 'Error', message: `no table, ?${signature}` },
            },
          },
        ],
      },
    },
    { name: 'docs-migrate-first', status: { phase: 'Succeeded' } },
  ],
} as const

test.each([3, 4] as const)(
  'tells of a hook that failed, though every workload is ready (Helm %i)',
  async (major) => {
    const hooks = [migration, { kind: 'Job', name: 'docs-seed', phase: '' }] as const
    const { fake, read } = await stuck({ readyAfterMs: 0, error: 'hooks failed', hooks }, major)
    fake.events.push(
      event({
        kind: 'Job',
        name: 'docs-migrate',
        reason: 'BackoffLimitExceeded',
        message: 'Job has reached the specified backoff limit',
      }),
      event({ name: 'docs-migrate-older', message: 'of an attempt before' }),
    )
    expect(await read()).toEqual([
      'hook Job docs-migrate: failed',
      'pod docs-migrate-x7k2p: migrate ended: Error, exit code 3, no table, ?***',
      'event of Job docs-migrate: BackoffLimitExceeded, Job has reached the specified backoff limit',
    ])
  },
)

test('tells of a hook whose pods it may not read', async () => {
  const { fake, log, read } = await stuck({ readyAfterMs: 0, error: 'failed', hooks: [migration] })
  fake.failNext('template', 'Error: pods is forbidden: User "ci" cannot list resource "pods"\n')
  expect(await read()).toEqual(['hook Job docs-migrate: failed'])
  expect(log.lines).toEqual([
    'info: The pods of the hooks could not be read: pods is forbidden: User "ci" cannot list resource "pods"',
  ])
})

test('tells of a volume and of a load balancer that Helm waited for', async () => {
  const others = {
    'v1/PersistentVolumeClaim': [
      { metadata: { name: 'docs-cache' }, status: { phase: 'Pending' } },
      { metadata: { name: 'docs-logs' }, status: { phase: 'Bound' } },
    ],
    'v1/Service': [
      { metadata: { name: 'docs' }, spec: { type: 'LoadBalancer' }, status: { loadBalancer: {} } },
      { metadata: { name: 'docs-inside' }, spec: { type: 'ClusterIP' }, status: {} },
      {
        metadata: { name: 'docs-given' },
        spec: { type: 'LoadBalancer', externalIPs: ['192.0.2.7'] },
      },
      {
        metadata: { name: 'docs-outside' },
        spec: { type: 'LoadBalancer' },
        status: { loadBalancer: { ingress: [{ ip: '192.0.2.8' }] } },
      },
    ],
  }
  const { fake, read } = await stuck({ readyAfterMs: 0, error: 'timed out', others })
  const message = 'storageclass.storage.k8s.io "missing" not found'
  const of = { kind: 'PersistentVolumeClaim', reason: 'ProvisioningFailed', message }
  fake.events.push(event({ ...of, name: 'docs-cache' }), event({ ...of, name: 'docs-logs' }))
  expect(await read()).toEqual([
    'PersistentVolumeClaim docs-cache: not bound to a volume',
    'Service docs: without an address',
    'event of PersistentVolumeClaim docs-cache: ProvisioningFailed, storageclass.storage.k8s.io "missing" not found',
  ])
})

test('goes on without events that it may not read, and says so in one line', async () => {
  const { fake, log, read } = await stuck({ replicas: 1 })
  fake.failNext(
    'template',
    'Error: template: events/templates/events.yaml:6:30: executing "events/templates/events.yaml" at <lookup "v1" "Event" .Release.Namespace "">: error calling lookup: events is forbidden: User "ci" cannot list resource "events" in API group "" in the namespace "default"\n',
  )
  expect(await read()).toHaveLength(2)
  expect(log.lines).toHaveLength(1)
  expect(log.lines[0]).toMatch(
    /^info: The events of the cluster could not be read: .*cannot list resource "events"/,
  )
})

test('never hides the failure behind one of its own', async () => {
  const { fake, log, read } = await stuck()
  fake.clusterError = 'kubernetes cluster unreachable: dial tcp: connection refused'
  expect(await read()).toEqual([])
  expect(log.lines).toEqual([
    expect.stringMatching(/^info: The reasons could not be read from the cluster: .*refused/),
  ])
})

test('asks by a chart of its own, which is gone afterwards', async () => {
  const { fake, read } = await stuck()
  let modes: string[] = []
  fake.onCall = ({ command, args }) => {
    if (command !== 'template') return
    const chart = args[2] ?? ''
    expect(path.dirname(chart)).toBe(directory)
    modes = ['Chart.yaml', 'templates/lookup.yaml'].map((file) =>
      (fs.statSync(path.join(chart, file)).mode & 0o777).toString(8),
    )
  }
  await read()
  expect(modes).toEqual(['600', '600'])
  expect(fs.readdirSync(directory)).toEqual([])
})

test('tells twenty lines at most, however much goes wrong', async () => {
  const { fake, read } = await stuck({ replicas: 30, trouble: troubles.fetchRefused })
  for (let number = 0; number < 30; number += 1) {
    fake.events.push(event({ name: `docs-new1-${number}`, message: `probe failed (${number})` }))
  }
  const reasons = await read()
  expect(reasons.length).toBeLessThanOrEqual(20)
  expect(reasons[0]).toBe('Deployment docs: 0 of 30 ready')
  expect(reasons.at(-1)).toMatch(/^event of Pod /)
})
