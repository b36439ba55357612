/** The way back of an upgrade, by the history that it has left. */
import { expect, test } from '@jest/globals'
import { type WayBack, planWayBack } from '../../src/helm/way-back.ts'

const shown = (way: WayBack) => (way.kind === 'rollback' ? `rollback to ${way.to}` : way.kind)

test.each([
  // What there was before, what there is now, the revisions that are ours, and the way back.
  ['nothing', '', [], 'unchanged'],
  ['1 deployed', '1 deployed', [], 'unchanged'],
  ['1 deployed', '1 deployed, 2 failed', [2], 'rollback to 1'],
  ['1 deployed', '1 superseded, 2 deployed', [2], 'rollback to 1'],
  ['1 deployed', '1 deployed, 2 pending-upgrade', [2], 'rollback to 1'],
  ['1 deployed', '1 deployed, 2 failed', [], 'foreign'],
  ['1 deployed', '1 superseded, 2 superseded, 3 failed', [3], 'rollback to 2'],
  ['1 deployed', '1 superseded, 2 deployed, 3 failed', [3], 'rollback to 2'],
  ['1 deployed', '1 deployed, 2 failed, 3 failed', [3], 'rollback to 1'],
  ['1 deployed', '1 superseded, 2 failed, 3 pending-rollback', [2, 3], 'rollback to 1'],
  ['1 deployed, 2 failed', '1 deployed, 2 failed, 3 failed', [3], 'rollback to 1'],
  ['1 failed', '1 failed, 2 failed', [2], 'leave'],
  ['nothing', '1 failed', [1], 'uninstall'],
  ['nothing', '1 pending-install', [1], 'uninstall'],
  ['nothing', '1 deployed, 2 failed', [2], 'rollback to 1'],
  // Somebody else has failed to install it meanwhile: it is not ours to remove.
  ['nothing', '1 failed, 2 failed', [2], 'leave'],
  ['nothing', '1 pending-install', [], 'foreign'],
])('from %s to %s, where %j is ours: %s', (former, now, ours, way) => {
  const revisions = (text: string) =>
    [...text.matchAll(/(\d+) ([\w-]+)/g)]
      .map(([, revision, status = '']) => ({ revision: Number(revision), status, updated: '' }))
      .reverse()
  const before = revisions(former)
  const deployed = before.find(({ status }) => status === 'deployed')
  const attempt = {
    request: {
      before: {
        newestRevision: before[0]?.revision ?? 0,
        deployed: deployed && { ...deployed, chart: { name: 'docs', version: '1.0.0' } },
        pending: undefined,
      },
    },
    ours: new Set<number>(ours),
    helmHasSucceeded: false,
  }
  expect(shown(planWayBack(revisions(now), attempt))).toBe(way)
})
