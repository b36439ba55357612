/** Another run that deploys the same release in the worst moment: when ours has looked, and not yet begun. */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { carryOut, note } from '../parts/keeper.ts'
import type { Scene, Values } from './scene.ts'

export interface Intruder extends Disposable {
  /** Takes the place of Helm: it does the same, after the other run. */
  readonly helm: string
}

/**
 * Has another run upgrade the release, with the real Helm, as soon as our run asks Helm to upgrade it.
 *
 * @param values those of the other run
 * @param ending whether it comes to its end first, or is killed in the middle
 */
export function intrude(scene: Scene, values: Values, ending: 'done' | 'killed'): Intruder {
  const folder = mkdtempSync(path.join(tmpdir(), 'intruder-'))
  const undo = { remove: folder } as const
  const forget = note(undo)
  const helm = path.join(folder, 'helm')
  writeFileSync(helm, scriptOf(scene, values, ending), { mode: 0o755 })
  return {
    helm,
    [Symbol.dispose]: () => {
      carryOut(undo)
      forget()
    },
  }
}

function scriptOf(scene: Scene, values: Values, ending: 'done' | 'killed'): string {
  const program = quoted(scene.program)
  const place = ['--namespace', scene.namespace]
  const command = (...args: readonly string[]) =>
    [program, ...[...args, ...place].map(quoted)].join(' ')
  // The standard input has our link.
  const upgrade = `${command(...scene.installArguments(values))} </dev/null >/dev/null`
  const other = {
    done: upgrade,
    killed: `
  ${upgrade} 2>&1 &
  until ${command('status', 'docs')} 2>/dev/null | grep -q '^STATUS: pending-'; do :; done
  kill -KILL $!`,
  }
  return `#!/bin/sh
set -eu
if [ "$1" = upgrade ]; then
  ${other[ending].trim()}
fi
exec ${program} "$@"
`
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
