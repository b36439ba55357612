/** One upgrade in virtual time: what is watched and judged, and how it is taken back. */
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { toChartValues } from '../../src/chart-values.ts'
import { measured } from '../../src/clock.ts'
import { systemDisk } from '../../src/disk.ts'
import { Failure } from '../../src/errors.ts'
import type { UpgradeDependencies, UpgradeRequest } from '../../src/helm/attempt.ts'
import { createHelm } from '../../src/helm/helm.ts'
import { createRedactor } from '../../src/helm/redactor.ts'
import { valuesProblem } from '../../src/helm/own-values.ts'
import { type HelmReceipt, emptyHelmReceipt } from '../../src/helm/receipt.ts'
import { readRelease } from '../../src/helm/release.ts'
import { upgrade } from '../../src/helm/upgrade.ts'
import { emptyReceipt } from '../../src/receipt.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { type FakeHelmOptions, FakeHelm, troubles } from '../support/fake-helm.ts'
import { RecordingLog } from '../support/recording-log.ts'

let directory: string
let empty: string
let chart: string
beforeAll(() => {
  directory = fs.mkdtempSync(path.join(tmpdir(), 'upgrade-'))
  empty = path.join(directory, 'empty')
  chart = path.join(directory, 'chart')
  fs.mkdirSync(empty)
  fs.mkdirSync(chart)
  fs.writeFileSync(path.join(chart, 'Chart.yaml'), 'name: docs\nversion: 1.0.0\n')
})
afterAll(() => {
  fs.rmSync(directory, { recursive: true })
})

const second = 1_000
const minute = 60 * second
const never = Infinity
const place = { release: 'docs', namespace: 'default' }
const link = 'https://s.test/a?X-Amz-Signature=0123456789abcdef'

interface Outcome {
  /** Undefined when it went well. */
  readonly failure: Failure | undefined
  readonly receipt: HelmReceipt
}

function machine({ major = 4, ...options }: Partial<FakeHelmOptions> = {}) {
  const clock = new FakeClock()
  const fake = new FakeHelm({ clock, major, ...options })
  const log = new RecordingLog()
  const redactor = createRedactor()
  redactor.add('X-Amz-Signature=0123456789abcdef')
  const cancelling = new AbortController()
  const { signal } = cancelling
  const helm = createHelm({
    run: fake.run,
    file: '/opt/helm',
    major,
    environment: {},
    directory: empty,
    ...place,
    kubeContext: undefined,
    redactor,
  })

  /** Upgrades with five minutes for Helm. */
  async function run(more: Partial<UpgradeRequest> = {}): Promise<Outcome> {
    const before = await readRelease(helm, { signal, maxMs: 30 * second })
    fake.calls.length = 0
    const receipt = emptyHelmReceipt(emptyReceipt())
    receipt.before = before.deployed
    receipt.live = { deployed: before.deployed }
    const request: UpgradeRequest = {
      ...place,
      before,
      chart: [chart],
      existingValues: 'keep',
      valuesFiles: [],
      ownValues: toChartValues({ key: 'staticExport', bundleUrl: link, version: undefined }),
      createNamespace: false,
      helmTimeoutMs: 5 * minute,
      valuesProblem: (values) => valuesProblem(values, 'staticExport', link, undefined),
      rollbackWarning: () => undefined,
      ...more,
    }
    const timed: UpgradeDependencies['timed'] = (step, work) =>
      measured(step, receipt.stepMs, clock, work)
    const dependencies = {
      helm,
      redactor,
      disk: systemDisk,
      clock,
      log,
      signal,
      startedMs: 0,
      timed,
      temporaryDirectory: directory,
    }
    try {
      await upgrade(request, dependencies, receipt)
      return { failure: undefined, receipt }
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      return { failure: error, receipt }
    }
  }

  async function fail(more: Partial<UpgradeRequest> = {}): Promise<Outcome & { failure: Failure }> {
    const { failure, receipt } = await run(more)
    if (!failure) throw new Error('it went well')
    return { failure, receipt }
  }

  const cancel = () => {
    cancelling.abort(new Failure('cancelled', 'Cancelled by SIGINT.'))
  }
  const cancelAfter = (delayMs: number) => clock.timer(delayMs, cancel)
  const commands = () => fake.calls.map(({ command }) => command)
  /** The lines on the pods. */
  const progress = () => log.lines.filter((line) => /^info: (?:\[|Ready)/.test(line))
  return { clock, fake, log, run, fail, cancel, cancelAfter, commands, progress }
}

describe('goes well', () => {
  test('for a first install', async () => {
    const { fake, run } = machine()
    const { failure, receipt } = await run()
    expect(failure).toBeUndefined()
    expect(receipt.live?.deployed).toMatchObject({
      revision: 1,
      chart: { name: 'docs', version: '1.0.0' },
    })
    expect(receipt.attempted).toBe(true)
    expect(fake.history()).toBe('1 deployed')
    expect(fake.changes).toHaveLength(1)
  })

  test.each([3, 4] as const)('over a revision whose values are kept (Helm %i)', async (major) => {
    const { fake, run, progress } = machine({ major })
    fake.add({ values: { replicas: 2, staticExport: { enabled: true, bundleUrl: 'old' } } })
    const { failure, receipt } = await run()
    expect(failure).toBeUndefined()
    expect(receipt.live?.deployed?.revision).toBe(2)
    expect(fake.history()).toBe('1 superseded, 2 deployed')
    expect(fake.revisions()[1]?.values).toEqual({
      replicas: 2,
      staticExport: { enabled: true, bundleUrl: link },
    })
    expect(progress()).toEqual(['info: Ready: Deployment docs 2 of 2 ready'])
  })

  test('over a revision that failed, which Helm counts too', async () => {
    const { fake, run } = machine()
    fake.add()
    fake.add({ status: 'failed' })
    const { receipt } = await run()
    expect(receipt.live?.deployed?.revision).toBe(3)
  })

  test('when the pods need longer than Helm, but not longer than they have', async () => {
    const { clock, fake, run, progress } = machine({ major: 3 })
    fake.add()
    fake.plan({
      replicas: 1,
      formerPodsStay: false,
      contentAfterMs: 2 * second,
      readyAfterMs: 40 * second,
    })
    const { failure, receipt } = await run()
    expect(failure).toBeUndefined()
    expect(clock.nowMs()).toBeLessThan(46 * second)
    expect(receipt.stepMs.get('readiness')).toBeGreaterThan(30 * second)
    expect(progress()).toEqual([
      expect.stringMatching(/^info: \[00:02\] Deployment docs 0 of 1 ready \(Unschedulable/),
      'info: Ready: Deployment docs 1 of 1 ready',
    ])
  })

  test('when the cluster does not answer once, after Helm was content', async () => {
    const { fake, run } = machine()
    fake.add()
    fake.onCall = ({ command }) => {
      if (command !== 'get values') return
      fake.onCall = undefined
      fake.failNext('status', 'Error: kubernetes cluster unreachable: connection reset by peer\n')
    }
    const { failure } = await run()
    expect(failure?.message).toBeUndefined()
    expect(fake.history()).toBe('1 superseded, 2 deployed')
  })

  test('for a chart without any workload', async () => {
    const { fake, log, run } = machine()
    fake.plan({ replicas: 0 })
    const { failure } = await run()
    expect(failure).toBeUndefined()
    expect(log.warnings).toEqual([])
  })
})

describe('while Helm waits', () => {
  test('tells a change at once, and otherwise a line a minute', async () => {
    const { fake, run, progress } = machine()
    fake.plan({ readyAfterMs: 255 * second, trouble: troubles.imagePull })
    await run()
    const why = '(web: ImagePullBackOff, Back-off pulling image "nginx:1.29-alpin")'
    expect(progress()).toEqual([
      `info: [00:10] Deployment docs 0 of 2 ready ${why}`,
      `info: [01:10] Deployment docs 0 of 2 ready ${why}`,
      `info: [02:10] Deployment docs 1 of 2 ready ${why}`,
      `info: [03:10] Deployment docs 1 of 2 ready ${why}`,
      `info: [04:10] Deployment docs 1 of 2 ready ${why}`,
      'info: Ready: Deployment docs 2 of 2 ready',
    ])
  })

  test('does not call the pods of the former revision those of this one', async () => {
    const { fake, fail, progress } = machine()
    fake.add()
    fake.plan({ recordsNothing: true, error: 'hooks failed', errorAfterMs: 75 * second })
    await fail()
    expect(progress()).toEqual(['info: [00:10] Helm is at work', 'info: [01:10] Helm is at work'])
  })

  test('tells of a hook that runs', async () => {
    const { fake, run, progress } = machine()
    fake.plan({
      readyAfterMs: 15 * second,
      hooks: [{ kind: 'Job', name: 'docs-migrate', phase: 'Running' }],
    })
    await run()
    expect(progress()).toEqual([
      'info: [00:10] hook Job docs-migrate is running',
      'info: Ready: Deployment docs 2 of 2 ready',
    ])
  })

  test('asks again after a look that failed', async () => {
    const { fake, run, progress } = machine()
    fake.plan({ readyAfterMs: 35 * second })
    fake.onCall = ({ command, atMs }) => {
      if (command !== 'status' || atMs === 0) return
      fake.onCall = undefined
      fake.failNext('status', 'Error: kubernetes cluster unreachable: i/o timeout\n')
    }
    const { failure } = await run()
    expect(failure).toBeUndefined()
    expect(progress()).toEqual([
      expect.stringMatching(/^info: \[00:20\] Deployment docs 1 of 2 ready/),
      'info: Ready: Deployment docs 2 of 2 ready',
    ])
  })

  test('has stopped to look when Helm has ended', async () => {
    const { clock, fake, run } = machine()
    fake.plan({ readyAfterMs: 25 * second })
    await run()
    const asked = fake.calls.length
    await clock.advance(10 * minute)
    expect(fake.calls).toHaveLength(asked)
    expect(clock.pending).toBe(0)
  })
})

describe('a rollout that does not become ready', () => {
  test.each([3, 4] as const)(
    'is taken back, after the cluster was asked why (Helm %i)',
    async (major) => {
      const { clock, fake, log, fail, commands } = machine({ major })
      fake.add({ values: { staticExport: { enabled: true, bundleUrl: 'old' } } })
      fake.plan({ readyAfterMs: never, formerPodsStay: false, trouble: troubles.fetchRefused })
      fake.events.push({
        type: 'Warning',
        kind: 'Pod',
        name: 'docs-new2-1',
        reason: 'Unhealthy',
        message: 'Readiness probe failed',
        last: '2026-11-20T12:00:30Z',
      })
      const { failure, receipt } = await fail()

      // The pods that could say why are gone after the rollback.
      const order = commands().filter((command) =>
        ['upgrade', 'template', 'rollback'].includes(command),
      )
      expect(order).toEqual(['upgrade', 'template', 'rollback'])
      expect(fake.changes[1]).toBe('rollback docs 1 --namespace default --wait --timeout 300s')
      expect(fake.history()).toBe('1 superseded, 2 failed, 3 deployed')
      expect(fake.revisions()[2]?.values).toEqual({
        staticExport: { enabled: true, bundleUrl: 'old' },
      })

      expect(failure.code).toBe('deploy-failed')
      const [what = '', ...reasons] = failure.message.split('\n- ')
      expect(what).toContain('The upgrade of docs failed.')
      expect(what).toContain('context deadline exceeded')
      expect(what).toContain('Rolled back to revision 1.')
      expect(reasons[0]).toBe('Deployment docs: 0 of 2 ready')
      expect(reasons).toContain(
        'pod docs-new2-0: fetch ended before: Error, exit code 22, curl: (22) The requested URL returned error: 403',
      )
      expect(reasons.at(-1)).toBe('event of Pod docs-new2-1: Unhealthy, Readiness probe failed')
      expect(receipt.reasons).toEqual(reasons)
      // The time was too short or the pods are broken: neither the kubeconfig nor the network is to blame.
      expect(failure.advice).toContain('`helm-timeout-minutes`')
      expect(failure.advice).not.toContain('kubeconfig')

      expect(receipt.live?.deployed?.revision).toBe(3)
      expect(receipt.putBack).toBe(1)
      expect(clock.nowMs()).toBe(5 * minute)
      expect(log.lines).toContain('info: Rolling back to revision 1')
    },
  )

  test('beside pods that keep running is told by the new pod, also with a single replica', async () => {
    const { fake, run, fail, progress } = machine()
    fake.plan({ replicas: 1 })
    await run()
    fake.plan({ replicas: 1, readyAfterMs: never, trouble: troubles.fetchRefused })
    const { failure } = await fail()
    expect(failure.message).toContain('exit code 22')
    expect(progress().at(-1)).toContain('CrashLoopBackOff')
  })

  test('goes back to what was deployed, not to the revision before', async () => {
    const { fake, fail } = machine()
    fake.add()
    fake.add({ status: 'failed' })
    fake.add({ status: 'failed' })
    fake.plan({ readyAfterMs: never })
    const { failure } = await fail()
    expect(failure.message).toContain('Rolled back to revision 1.')
    expect(fake.history()).toBe('1 superseded, 2 failed, 3 failed, 4 failed, 5 deployed')
  })

  test('as a first install is removed', async () => {
    const { fake, fail } = machine()
    fake.plan({ readyAfterMs: never, trouble: troubles.imagePull })
    const { failure, receipt } = await fail()
    expect(fake.changes[1]).toBe('uninstall docs --namespace default --wait --timeout 300s')
    expect(fake.history()).toBe('')
    expect(failure.message).toContain('The install of docs failed.')
    expect(failure.message).toContain('What was installed has been removed again.')
    expect(failure.message).toContain('ImagePullBackOff')
    expect(receipt.live).toEqual({ deployed: undefined })
  })

  test('of a release that was never deployed is left as it is', async () => {
    const { fake, fail } = machine()
    fake.add({ status: 'failed' })
    fake.plan({ readyAfterMs: never })
    const { failure, receipt } = await fail()
    expect(fake.changes).toHaveLength(1)
    expect(fake.history()).toBe('1 failed, 2 failed')
    expect(failure.message).toContain('was not deployed before')
    expect(receipt.live).toEqual({ deployed: undefined })
  })

  test('and cannot be taken back names the command to try', async () => {
    const { fake, fail } = machine()
    fake.add()
    fake.plan({ readyAfterMs: never })
    fake.planSetback({ error: 'services "docs" is forbidden' })
    const { failure, receipt } = await fail()
    expect(failure.code).toBe('deploy-failed')
    expect(failure.message).toContain('`helm rollback docs 1 -n default --wait`')
    expect(failure.message).toContain('services "docs" is forbidden')
    expect(failure.message).not.toContain('Rolled back')
    // Helm still calls revision 1 deployed, while objects of revision 2 run.
    expect(receipt.live).toBeUndefined()
    expect(failure.advice).toContain('Put the release back first')
  })

  test('and cannot be removed names the command to try', async () => {
    const { fake, fail } = machine()
    fake.plan({ readyAfterMs: never })
    fake.planSetback({ error: 'no' })
    const { failure } = await fail()
    expect(failure.message).toContain('`helm uninstall docs -n default`')
  })

  test('says what a rollback means for the pods, only when there was one', async () => {
    const rollbackWarning = () => 'Its link has expired.'
    const first = machine()
    first.fake.add()
    first.fake.plan({ readyAfterMs: never })
    const rolledBack = await first.fail({ rollbackWarning })
    expect(rolledBack.failure.message).toContain('Rolled back to revision 1. Its link has expired.')

    const other = machine()
    other.fake.add()
    other.fake.plan({ recordsNothing: true, error: 'no such thing' })
    const untouched = await other.fail({ rollbackWarning })
    expect(untouched.failure.message).not.toContain('expired')
  })

  test('although Helm 3 was content is a failed upgrade, when the time is over', async () => {
    const { clock, fake, fail, commands } = machine({ major: 3 })
    fake.add()
    fake.plan({
      replicas: 1,
      formerPodsStay: false,
      contentAfterMs: 2_300,
      readyAfterMs: never,
    })
    const { failure, receipt } = await fail()
    expect(failure.code).toBe('deploy-failed')
    expect(failure.message).toContain('revision 2 of docs was not ready within 5m 00s')
    expect(failure.message).toContain('Rolled back to revision 1.')
    expect(failure.message).toContain('Unschedulable')
    expect(failure.advice).toContain('`helm-timeout-minutes`')
    expect(commands().indexOf('template')).toBeLessThan(commands().indexOf('rollback'))
    expect(fake.history()).toBe('1 superseded, 2 superseded, 3 deployed')
    expect(clock.nowMs()).toBe(5 * minute) // in all, not once more
    expect(receipt.live?.deployed?.revision).toBe(3)
  })

  test('and that Helm does not end by itself is ended soon after its time', async () => {
    const { clock, fake, fail } = machine()
    fake.add()
    fake.plan({ readyAfterMs: never, hangs: true })
    const { failure } = await fail()
    expect(failure.code).toBe('deploy-failed')
    expect(failure.message).toContain('was not done after 5m 00s')
    expect(failure.message).toContain('Unschedulable')
    expect(failure.advice).toContain('`helm-timeout-minutes`')
    expect(clock.nowMs()).toBeLessThanOrEqual(6 * minute)
    expect(fake.history()).toBe('1 superseded, 2 failed, 3 deployed')
  })

  test('measures its steps', async () => {
    const { fake, fail } = machine()
    fake.add()
    fake.plan({ readyAfterMs: never })
    fake.planSetback({ afterMs: 7 * second })
    const { receipt } = await fail()
    expect([...receipt.stepMs]).toEqual([
      ['upgrade', 5 * minute],
      ['rollback', 7 * second],
    ])
  })
})

describe('a revision that is not ours', () => {
  test('in its values is a failure, and taken back, although everything is ready', async () => {
    const { fake, fail } = machine()
    fake.add({ values: { staticExport: { enabled: true, bundleUrl: 'old' } } })
    fake.plan({ dropsInput: true })
    const { failure } = await fail()
    expect(failure.code).toBe('deploy-failed')
    expect(failure.message).toBe(
      'Revision 2 of docs does not hold the link of this run at staticExport.bundleUrl. Rolled back to revision 1.',
    )
    expect(fake.history()).toBe('1 superseded, 2 superseded, 3 deployed')
  })

  test('but of another run, which came right after it, is not rolled back', async () => {
    const { fake, fail } = machine()
    fake.add()
    fake.onCall = ({ command }) => {
      if (command !== 'history' || fake.changes.length === 0) return
      fake.onCall = undefined
      fake.add({ values: { staticExport: { enabled: true, bundleUrl: 'of another run' } } })
    }
    const { failure, receipt } = await fail()
    expect(failure.code).toBe('deploy-failed')
    expect(failure.message).toContain(
      'Revision 3 may be of another run, so nothing was rolled back. Look at `helm history docs -n default`.',
    )
    expect(failure.advice).toContain('at the same time')
    expect(fake.changes).toHaveLength(1)
    expect(receipt.live?.deployed?.revision).toBe(3)
  })

  test('but of another run that was a moment faster is left to that run', async () => {
    const { fake, fail } = machine()
    fake.add()
    // It began after this run had looked, and before this run's Helm did.
    fake.plan({ meanwhile: () => fake.add({ status: 'pending-upgrade' }) })
    const { failure, receipt } = await fail()
    expect(failure.code).toBe('release-locked')
    expect(failure.message).toMatch(
      /^Another operation on release docs began at the same moment\. Release docs is locked: its revision 2 is pending-upgrade since 2026-11-20T12:00:\d\d\S*\. This run has changed nothing\.$/,
    )
    expect(failure.advice).toContain('Only if no other run is deploying')
    expect(failure.advice).toContain('`helm rollback docs 1 -n default --wait`')
    expect(fake.changes).toHaveLength(1)
    expect(fake.history()).toBe('1 deployed, 2 pending-upgrade')
    expect(receipt.live?.deployed?.revision).toBe(1)
  })

  test('but of another run with the same mirror is left alone, whatever this Helm says', async () => {
    const values = { staticExport: { enabled: true, bundleUrl: link } }
    const { fake, fail } = machine()
    fake.add()
    fake.plan({
      recordsNothing: true,
      error: 'release: already exists',
      meanwhile: () => fake.add({ values }),
    })
    const { failure } = await fail()
    expect(failure.code).toBe('release-locked')
    expect(failure.advice).not.toContain('helm ')
    expect(fake.changes).toHaveLength(1)
    expect(fake.history()).toBe('1 superseded, 2 deployed')
  })

  test('but of another run with the same mirror survives a cancel before Helm has done anything', async () => {
    const values = { staticExport: { enabled: true, bundleUrl: link } }
    const { fake, fail, cancelAfter } = machine()
    fake.add()
    fake.plan({
      recordsNothing: true,
      errorAfterMs: minute,
      meanwhile: () => fake.add({ values }),
    })
    cancelAfter(15 * second)
    await fail()
    expect(fake.changes).toHaveLength(1)
    expect(fake.history()).toBe('1 superseded, 2 deployed')
  })

  test('but of another run that installs the same release is not uninstalled', async () => {
    const { fake, fail } = machine()
    fake.plan({ meanwhile: () => fake.add({ status: 'pending-install' }) })
    const { failure } = await fail()
    expect(failure.code).toBe('release-locked')
    expect(fake.changes).toHaveLength(1)
    expect(fake.history()).toBe('1 pending-install')
  })
})

// Between this run's look at the release and its Helm there may be a download, a mirror, and minutes.
describe('when another run has deployed since this one looked, the revision of this one', () => {
  const meanwhile = (fake: FakeHelm) => () => fake.add({ values: { of: 'another run' } })

  test('is not called that of something else', async () => {
    const { fake, run } = machine()
    fake.add()
    fake.plan({ meanwhile: meanwhile(fake) })
    const { failure, receipt } = await run()
    expect(receipt.live?.deployed?.revision).toBe(3)
    expect(failure?.message ?? '').not.toContain('something else has made revision 3')
  })

  test('is taken back when it does not become ready, to that of the other', async () => {
    const { fake, fail } = machine()
    fake.add()
    fake.plan({ readyAfterMs: never, formerPodsStay: false, meanwhile: meanwhile(fake) })
    await fail()
    expect(fake.history()).toBe('1 superseded, 2 superseded, 3 failed, 4 deployed')
    expect(fake.revisions().at(-1)?.values).toEqual({ of: 'another run' })
  })

  test.each([
    ['an upgrade', true, 2],
    ['an install', false, 1],
  ])('has replaced that of the other, when it was %s', async (_what, isInstalled, former) => {
    const { fake, run } = machine()
    if (isInstalled) fake.add()
    fake.plan({
      meanwhile: () => fake.add({ chart: { name: 'docs', version: '1.0.1' }, values: { a: 1 } }),
    })
    const { failure, receipt } = await run()
    expect(failure).toBeUndefined()
    expect(receipt.before).toMatchObject({
      revision: former,
      chart: { name: 'docs', version: '1.0.1' },
    })
  })

  test.each([
    ['an upgrade', true, '1 superseded, 2 superseded, 3 failed, 4 deployed'],
    ['an install', false, '1 superseded, 2 failed, 3 deployed'],
  ])('is taken back when %s is cancelled', async (_what, isInstalled, history) => {
    const { fake, fail, cancelAfter } = machine()
    if (isInstalled) fake.add()
    fake.plan({ readyAfterMs: never, formerPodsStay: false, meanwhile: meanwhile(fake) })
    cancelAfter(15 * second)
    const { failure, receipt } = await fail()
    const former = isInstalled ? 2 : 1
    expect(failure.message).toBe(`Cancelled by SIGINT. Rolled back to revision ${former}.`)
    expect(fake.history()).toBe(history)
    expect(fake.revisions().at(-1)?.values).toEqual({ of: 'another run' })
    expect(receipt.live?.deployed?.revision).toBe(former + 2)
  })

  test('is taken back when the rollback to that of the other is cancelled', async () => {
    const { fake, fail, cancelAfter } = machine()
    fake.plan({ readyAfterMs: never, formerPodsStay: false, meanwhile: meanwhile(fake) })
    fake.planSetback({ afterMs: 4 * minute })
    cancelAfter(6 * minute)
    const { receipt } = await fail()
    expect(fake.revisions().at(-1)).toMatchObject({
      status: 'deployed',
      values: { of: 'another run' },
    })
    expect(receipt.live?.deployed?.revision).toBe(fake.revisions().at(-1)?.revision)
  })
})

describe('a Helm that is killed from outside leaves the release locked:', () => {
  test('the former revision is put back, which frees it', async () => {
    const { fake, fail } = machine()
    fake.add()
    fake.plan({ readyAfterMs: never, error: '', errorAfterMs: 30 * second, isKilled: true })
    const { failure, receipt } = await fail()
    expect(failure.code).toBe('deploy-failed')
    expect(failure.message).toContain('Rolled back to revision 1.')
    expect(fake.history()).toBe('1 superseded, 2 pending-upgrade, 3 deployed')
    expect(receipt.live?.deployed?.revision).toBe(3)
  })

  test('a first install is removed', async () => {
    const { fake, fail } = machine()
    fake.plan({ readyAfterMs: never, error: '', errorAfterMs: 30 * second, isKilled: true })
    await fail()
    expect(fake.history()).toBe('')
  })

  test('one that was never deployed is left with the command that frees it', async () => {
    const { fake, fail } = machine()
    fake.add({ status: 'failed' })
    fake.plan({ readyAfterMs: never, error: '', errorAfterMs: 30 * second, isKilled: true })
    const { failure } = await fail()
    expect(failure.message).toContain('It is locked; `helm uninstall docs -n default` frees it.')
  })
})

describe('a login that ends while Helm is at work', () => {
  const expired = 'the server has asked for the client to provide credentials'

  test('is told at once, and what is deployed is not guessed', async () => {
    const { clock, fake, fail } = machine()
    fake.add()
    fake.onCall = ({ command }) => {
      if (command === 'history' && fake.changes.length > 0) fake.clusterError = expired
    }
    const { failure, receipt } = await fail()
    expect(failure.code).toBe('deploy-failed')
    expect(failure.message).toMatch(
      /^Helm reported success, but it could not be confirmed\. The cluster did not accept the credentials.*could not be read \(the cluster did not accept the credentials of the kubeconfig\), so nothing was rolled back, and the release may be locked\. Look at `helm history docs -n default`/,
    )
    expect(receipt.live).toBeUndefined()
    expect(fake.changes).toHaveLength(1)
    expect(clock.nowMs()).toBeLessThan(5 * second)
  })

  test('after a rollback does not keep an old revision in the output', async () => {
    const { fake, fail } = machine()
    fake.add()
    fake.plan({ readyAfterMs: never, formerPodsStay: false })
    fake.onCall = ({ command }) => {
      if (command === 'history' && fake.changes.length === 2) fake.clusterError = expired
    }
    const { failure, receipt } = await fail()
    expect(failure.message).toContain('Rolled back to revision 1.')
    expect(receipt.live).toBeUndefined()
  })
})

test('a rollback that the cluster interrupts is tried again', async () => {
  const { fake, log, fail } = machine()
  fake.add()
  fake.plan({ readyAfterMs: never, formerPodsStay: false })
  const reset = 'create: failed to create: read tcp 10.0.0.1:6443: connection reset by peer'
  fake.planSetback({ afterMs: 2 * second, error: reset })
  const { failure, receipt } = await fail()
  expect(failure.message).toContain('Rolled back to revision 1.')
  expect(fake.history()).toBe('1 superseded, 2 failed, 3 failed, 4 deployed')
  expect(receipt.live?.deployed?.revision).toBe(4)
  expect(log.text).toContain('`helm rollback`, which is tried again')
})

test('a cancelled run that cannot put things back says what comes first', async () => {
  const { fake, fail, cancelAfter } = machine()
  fake.add()
  fake.plan({ readyAfterMs: never })
  fake.planSetback({ error: 'pre-rollback hooks failed: timed out' })
  cancelAfter(15 * second)
  const { failure, receipt } = await fail()
  expect(failure.message).toContain('Putting it back failed as well: the release may be locked')
  expect(failure.message).toContain('`--no-hooks`')
  expect(failure.advice).toMatch(/^Put the release back first/)
  expect(receipt.live).toBeUndefined()
})

test('a cluster that does not answer for a moment is asked again, and the log says so', async () => {
  const { fake, log, run } = machine()
  fake.onCall = ({ command }) => {
    if (command !== 'history') return
    fake.onCall = undefined
    fake.failNext('history', 'Error: kubernetes cluster unreachable: connection refused\n')
  }
  const { failure } = await run()
  expect(failure).toBeUndefined()
  expect(log.lines).toContain(
    'info: The cluster did not answer `helm history`, and is asked again: kubernetes cluster unreachable: connection refused',
  )
})

test('a stumble after the way back does not make a secret of what is deployed', async () => {
  const { fake, fail } = machine()
  fake.add()
  fake.plan({ readyAfterMs: never, formerPodsStay: false })
  fake.onCall = ({ command }) => {
    if (command !== 'history' || fake.changes.length < 2) return
    fake.onCall = undefined
    fake.failNext('history', 'Error: kubernetes cluster unreachable: connection refused\n')
  }
  const { receipt } = await fail()
  expect(receipt.live?.deployed?.revision).toBe(3)
})

describe('what was deployed a moment ago is put back', () => {
  test('and not what only counts as superseded since a rollback of it failed', async () => {
    const { fake, fail } = machine()
    for (const status of ['superseded', 'deployed', 'superseded', 'failed'] as const) {
      fake.add({ status })
    }
    fake.plan({ readyAfterMs: never, formerPodsStay: false })
    const { receipt } = await fail()
    expect(receipt.putBack).toBe(2)
  })

  test('also when the cluster does not answer once', async () => {
    const { fake, fail } = machine()
    fake.add()
    fake.plan({ readyAfterMs: never, formerPodsStay: false })
    fake.onCall = ({ command }) => {
      if (command !== 'history' || fake.changes.length === 0) return
      fake.onCall = undefined
      fake.failNext('history', 'Error: kubernetes cluster unreachable: connection reset by peer\n')
    }
    const { failure } = await fail()
    expect(failure.message).toContain('Rolled back to revision 1.')
    expect(failure.message).toContain('Unschedulable')
  })
})

describe('an error before anything changed', () => {
  test.each([
    ['namespaces "default" not found', 'config'],
    [
      'kubernetes cluster unreachable: dial tcp 127.0.0.1:9: connect: connection refused',
      'network',
    ],
    [
      'unable to continue with install: deployments.apps is forbidden: User "ci" cannot get resource',
      'forbidden',
    ],
    ["values don't meet the specifications of the schema(s)", 'deploy-failed'],
  ])('(%s) rolls nothing back', async (error, code) => {
    const { fake, fail } = machine()
    fake.add()
    fake.plan({ recordsNothing: true, error })
    const { failure, receipt } = await fail()
    expect(failure.code).toBe(code)
    expect(failure.message).toContain(error)
    expect(failure.message).toContain('Nothing has changed: revision 1 is still deployed.')
    expect(fake.changes).toHaveLength(1)
    expect(fake.history()).toBe('1 deployed')
    expect(receipt.live?.deployed?.revision).toBe(1)
    expect(receipt.reasons).toEqual([])
  })

  test('says so for a first install', async () => {
    const { fake, fail } = machine({ namespaces: [] })
    const { failure } = await fail()
    expect(failure.code).toBe('config')
    expect(failure.advice).toContain('`create-namespace: true`')
    expect(failure.message).toContain('Nothing has changed.')
    expect(fake.changes).toHaveLength(1)
  })

  test('never shows the link that a schema error quotes', async () => {
    const { fake, log, fail } = machine()
    fake.plan({
      recordsNothing: true,
      error: `values don't meet the specifications of the schema(s) in the following chart(s):\ndocs:\n- at '/staticExport/bundleUrl': '${link}' does not match pattern '^ftp://'`,
    })
    const { failure } = await fail()
    expect(failure.message).toContain("'…' does not match pattern")
    expect([failure.message, failure.advice, ...log.lines].join('\n')).not.toContain('0123456789')
  })

  test('that is followed by a cluster out of reach names the command to try later', async () => {
    const { fake, fail } = machine()
    fake.add()
    fake.plan({
      readyAfterMs: never,
      error: 'connection reset by peer',
      errorAfterMs: 20 * second,
    })
    fake.onCall = ({ atMs }) => {
      if (atMs >= 20 * second)
        fake.clusterError = 'kubernetes cluster unreachable: connection refused'
    }
    const { failure } = await fail()
    expect(failure.message).toContain('connection reset by peer')
    expect(failure.message).toContain('`helm rollback docs 1 -n default --wait`')
  })
})

test('an account that may not watch is told to be granted it (Helm 4)', async () => {
  const { fake, fail } = machine()
  fake.add()
  fake.plan({
    readyAfterMs: never,
    error: 'configmaps is forbidden: User "ci" cannot watch resource "configmaps" in API group ""',
    errorAfterMs: 500,
  })
  const { failure } = await fail()
  expect(failure.code).toBe('deploy-failed')
  expect(failure.advice).toContain('Grant `watch`')
})

describe('cancelled', () => {
  test('while Helm waits: Helm is ended, and the release put back without waiting', async () => {
    const { clock, fake, fail, cancelAfter } = machine()
    fake.add()
    fake.plan({ readyAfterMs: never })
    cancelAfter(65 * second)
    const { failure, receipt } = await fail()
    expect(failure.code).toBe('cancelled')
    expect(failure.message).toBe('Cancelled by SIGINT. Rolled back to revision 1.')
    expect(fake.changes[1]).toBe('rollback docs 1 --namespace default')
    expect(fake.history()).toBe('1 superseded, 2 failed, 3 deployed')
    expect(receipt.live?.deployed?.revision).toBe(3)
    expect(clock.nowMs()).toBe(65 * second)
    // All that a runner gives is ten seconds.
    const afterwards = fake.calls.slice(
      fake.calls.findIndex(({ command }) => command === 'rollback'),
    )
    for (const { maxMs } of afterwards) expect(maxMs).toBeLessThanOrEqual(7.5 * second)
  })

  test('what Helm takes to end is taken from the time to put things back', async () => {
    const { clock, fake, fail, cancelAfter } = machine()
    fake.add()
    fake.plan({ readyAfterMs: never, endsAfterMs: 3 * second })
    const ended: number[] = []
    fake.onCall = ({ command, maxMs }) => {
      if (clock.nowMs() < 15 * second) return
      expect(['history', 'rollback']).toContain(command)
      ended.push(clock.nowMs() + maxMs)
    }
    cancelAfter(15 * second)
    await fail()
    expect(ended).toHaveLength(2)
    for (const endMs of ended) expect(endMs).toBeLessThanOrEqual(22.5 * second)
  })

  test('so that Helm has to be killed: what it left half done is put back', async () => {
    const { fake, fail, cancelAfter } = machine()
    fake.add()
    fake.plan({ readyAfterMs: never, isKilled: true })
    cancelAfter(15 * second)
    const { failure, receipt } = await fail()
    expect(failure.message).toBe('Cancelled by SIGINT. Rolled back to revision 1.')
    expect(fake.history()).toBe('1 superseded, 2 pending-upgrade, 3 deployed')
    expect(receipt.live?.deployed?.revision).toBe(3)
  })

  test('when everything was put back already: it is not done twice', async () => {
    const { fake, fail, cancel } = machine()
    fake.add()
    fake.plan({ readyAfterMs: never, formerPodsStay: false })
    fake.onCall = ({ command }) => {
      if (command === 'history' && fake.changes.length === 2) cancel()
    }
    const { failure, receipt } = await fail()
    expect(failure.message).toBe('Cancelled by SIGINT. Rolled back to revision 1.')
    expect(fake.history()).toBe('1 superseded, 2 failed, 3 deployed')
    expect(receipt.live?.deployed?.revision).toBe(3)
  })

  test('in a first install: it is removed without waiting', async () => {
    const { fake, fail, cancelAfter } = machine()
    fake.plan({ readyAfterMs: never })
    cancelAfter(15 * second)
    const { failure, receipt } = await fail()
    expect(failure.code).toBe('cancelled')
    expect(failure.message).toContain('What was installed has been removed again.')
    expect(fake.changes[1]).toBe('uninstall docs --namespace default')
    expect(receipt.live).toEqual({ deployed: undefined })
  })

  test('before Helm has recorded anything: nothing is rolled back', async () => {
    const { fake, fail, cancelAfter } = machine()
    fake.add()
    fake.plan({ recordsNothing: true, errorAfterMs: minute })
    cancelAfter(15 * second)
    const { failure } = await fail()
    expect(failure.code).toBe('cancelled')
    expect(failure.message).toContain('Nothing has changed: revision 1 is still deployed.')
    expect(fake.changes).toHaveLength(1)
  })

  test('while the pods become ready after Helm', async () => {
    const { fake, fail, cancelAfter } = machine({ major: 3 })
    fake.add()
    fake.plan({ formerPodsStay: false, contentAfterMs: 2 * second, readyAfterMs: never })
    cancelAfter(20 * second)
    const { failure } = await fail()
    expect(failure.code).toBe('cancelled')
    expect(fake.history()).toBe('1 superseded, 2 superseded, 3 deployed')
  })

  test('while the reasons of a failure are read: it is still rolled back', async () => {
    const { fake, fail, cancel } = machine()
    fake.add()
    fake.plan({ readyAfterMs: never, formerPodsStay: false })
    fake.onCall = ({ command }) => {
      if (command === 'template') cancel()
    }
    const { failure } = await fail()
    expect(fake.history()).toBe('1 superseded, 2 failed, 3 deployed')
    expect(failure.code).toBe('cancelled')
  })

  // A signal ends `helm rollback --wait` at once and leaves `pending-rollback` (3.21.4 and 4.2.4): locked.
  test('while it is rolled back: the release is not left locked', async () => {
    const { fake, fail, cancelAfter } = machine()
    fake.add()
    fake.plan({ readyAfterMs: never, formerPodsStay: false })
    fake.planSetback({ afterMs: 4 * minute })
    cancelAfter(6 * minute)
    const { failure, receipt } = await fail()
    expect(fake.revisions().at(-1)?.status).toBe('deployed')
    expect(receipt.live?.deployed).toBeDefined()
    expect(failure.code).toBe('cancelled')
  })

  test('tells nothing that only the log of Helm would say', async () => {
    const { fake, log, fail, cancelAfter } = machine()
    fake.add()
    fake.plan({ readyAfterMs: never })
    cancelAfter(5 * second)
    const { failure } = await fail()
    expect([failure.message, ...log.lines].join('\n')).not.toContain('0123456789')
    expect(failure.message).not.toContain('Putting it back failed')
  })
})
