/**
 * Stops what a test process started and can no longer stop, because it was killed, ended by Ctrl-C or threw. The
 * keeper is a process of its own that reads a line of JSON for each thing that is started or has been stopped.
 * When its input ends, so has the test process, however that came about, and what is left is undone, last first.
 */
import { spawn, spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { Socket } from 'node:net'
import process from 'node:process'
import { createInterface } from 'node:readline'
import type { Writable } from 'node:stream'

/** How to stop or remove something, as data. */
export type Undo =
  /** The number of a process that leads a group, which ends. */
  | { readonly kill: number }
  | { readonly remove: string }
  | { readonly run: readonly string[]; readonly environment: NodeJS.ProcessEnv }

interface Note {
  readonly id: number
  /** Missing when there is nothing to undo any more. */
  readonly undo?: Undo
}

let keeper: Writable | undefined
let lastId = 0

/** Has something undone when this process ends, unless the returned function has been called before. */
export function note(undo: Undo): () => void {
  const input = (keeper ??= startKeeper())
  const id = (lastId += 1)
  const send = (line: Note) => input.write(`${JSON.stringify(line)}\n`)
  send({ id, undo })
  return () => {
    send({ id })
  }
}

function startKeeper(): Writable {
  const child = spawn(process.execPath, [import.meta.filename], {
    stdio: ['pipe', 'ignore', 'ignore'],
    // Out of reach of Ctrl-C in the terminal, which goes to the whole group.
    detached: true,
  })
  // It must not keep this process from ending.
  child.unref()
  if (child.stdin instanceof Socket) child.stdin.unref()
  return child.stdin
}

/** Stops or removes something, which may be gone already. */
export function carryOut(undo: Undo): void {
  if ('kill' in undo) killGroup(undo.kill)
  else if ('remove' in undo) removeFolder(undo.remove)
  else {
    const [command = '', ...args] = undo.run
    spawnSync(command, args, { env: undo.environment, stdio: 'ignore' })
  }
}

function killGroup(leader: number): void {
  try {
    process.kill(-leader, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

function removeFolder(folder: string): void {
  // A process that has just been killed may still be ending its last write.
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 })
}

async function keep(): Promise<void> {
  const undos = new Map<number, Undo>()
  for await (const line of createInterface(process.stdin)) {
    const { id, undo } = JSON.parse(line) as Note
    if (undo === undefined) undos.delete(id)
    else undos.set(id, undo)
  }
  for (const undo of [...undos.values()].reverse()) {
    try {
      carryOut(undo)
    } catch {
      // Nobody is left to be told, and the others must still be undone.
    }
  }
}

if (import.meta.main) await keep()
