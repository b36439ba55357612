/** The release as it is: what is deployed, whether it is locked, and the command that frees it. */
import { tmpdir } from 'node:os'
import { describe, expect, test } from '@jest/globals'
import { Failure } from '../../src/errors.ts'
import { createHelm } from '../../src/helm/helm.ts'
import { createRedactor } from '../../src/helm/redactor.ts'
import {
  assertUnlocked,
  readDeployed,
  readRelease,
  wayBackCommand,
} from '../../src/helm/release.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { FakeHelm, type RevisionStatus } from '../support/fake-helm.ts'

const within = { signal: new AbortController().signal, maxMs: 30_000 }
const place = { release: 'docs', namespace: 'web' }

function releaseOf(...statuses: RevisionStatus[]) {
  const clock = new FakeClock()
  const fake = new FakeHelm({ clock, namespaces: ['web'] })
  for (const [index, status] of statuses.entries()) {
    const chart = { name: 'docs', version: `1.0.${index + 1}` }
    fake.add({ status, chart, updatedMs: clock.wallMs() + index * 3_600_000 }, 'docs', 'web')
  }
  const helm = createHelm({
    run: fake.run,
    file: '/opt/helm',
    major: 4,
    environment: {},
    directory: tmpdir(),
    ...place,
    kubeContext: undefined,
    redactor: createRedactor(),
  })
  return { fake, helm }
}

async function lockOf(...statuses: RevisionStatus[]): Promise<Failure> {
  const { helm } = releaseOf(...statuses)
  try {
    assertUnlocked(await readRelease(helm, within), place)
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    expect(error.code).toBe('release-locked')
    return error
  }
  throw new Error('it is not locked')
}

describe('is read', () => {
  test('when there is none', async () => {
    const { helm } = releaseOf()
    expect(await readRelease(helm, within)).toEqual({
      newestRevision: 0,
      deployed: undefined,
      pending: undefined,
    })
  })

  test('with the revision that is deployed, which need not be the newest', async () => {
    const { helm } = releaseOf('superseded', 'deployed', 'failed', 'failed')
    expect(await readRelease(helm, within)).toEqual({
      newestRevision: 4,
      deployed: {
        revision: 2,
        chart: { name: 'docs', version: '1.0.2' },
        updated: '2026-11-20T13:00:00.000929155Z',
      },
      pending: undefined,
    })
  })

  test('after a rollback, which is a revision of its own', async () => {
    const { helm } = releaseOf('superseded', 'failed', 'deployed')
    const { newestRevision, deployed } = await readRelease(helm, within)
    expect([newestRevision, deployed?.revision]).toEqual([3, 3])
  })

  test('when nothing of it was ever deployed', async () => {
    const { helm } = releaseOf('failed', 'failed')
    expect(await readRelease(helm, within)).toEqual({
      newestRevision: 2,
      deployed: undefined,
      pending: undefined,
    })
    expect(await readDeployed(helm, within)).toBeUndefined()
  })

  test('in its own namespace', async () => {
    const { helm, fake } = releaseOf()
    fake.add({}, 'docs', 'default')
    expect((await readRelease(helm, within)).newestRevision).toBe(0)
  })
})

describe('is locked', () => {
  test('by an upgrade that has not ended: the deployed revision is the way out', async () => {
    const { message, advice } = await lockOf('superseded', 'deployed', 'failed', 'pending-upgrade')
    expect(message).toContain('Release docs is locked: its revision 4 is pending-upgrade')
    expect(message).toContain('2026-11-20T15:00:00')
    expect(advice).toContain('`helm rollback docs 2 -n web --wait`')
    expect(advice).toMatch(/^Only if no other run is deploying/)
  })

  test('by a rollback that has not ended', async () => {
    const { advice } = await lockOf('deployed', 'failed', 'pending-rollback')
    expect(advice).toContain('`helm rollback docs 1 -n web --wait`')
  })

  test('by a first install: there is nothing to go back to, and no rollback may make it deployed', async () => {
    const { message, advice } = await lockOf('pending-install')
    expect(message).toContain('revision 1 is pending-install')
    expect(advice).toContain('`helm uninstall docs -n web`')
    expect(advice).not.toContain('rollback')
  })

  test('and nothing is changed by looking', async () => {
    const { helm, fake } = releaseOf('deployed', 'pending-upgrade')
    expect((await readRelease(helm, within)).pending).toBeDefined()
    expect(fake.changes).toEqual([])
  })

  // "has no deployed releases" is all that Helm says of it then (3.21.4 and 4.2.4).
  test('by an uninstall that has not ended', async () => {
    const { message, advice } = await lockOf('superseded', 'uninstalling')
    expect(message).toContain('revision 2 is uninstalling')
    expect(advice).toContain('`helm uninstall docs -n web`')
  })

  test('with the context in the command, as a shell reads it', () => {
    const command = (kubeContext: string) =>
      wayBackCommand({ release: 'docs', namespace: 'web', kubeContext }, 2)
    expect(command('arn:aws:eks:eu-central-1:1:cluster/web')).toBe(
      'helm rollback docs 2 -n web --kube-context arn:aws:eks:eu-central-1:1:cluster/web --wait',
    )
    expect(command("it's mine")).toBe(
      "helm rollback docs 2 -n web --kube-context 'it'\\''s mine' --wait",
    )
  })

  test.each(['failed', 'superseded'] as const)('not by %s', async (status) => {
    const { helm } = releaseOf('superseded', status)
    const state = await readRelease(helm, within)
    expect(() => {
      assertUnlocked(state, place)
    }).not.toThrow()
  })
})
