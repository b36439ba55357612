/** Looks at the processes that the tests have started, as anyone on this machine can. Linux only. */
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import process from 'node:process'
import { marker } from '../parts/program.ts'

export interface RunningProcess {
  readonly pid: number
  readonly args: readonly string[]
}

/** Who is ours does not change, and asking takes longer than the list itself. */
const known = new Map<number, boolean>()

/**
 * The processes that this one has started, and those that they have, with their arguments, which every user of a
 * machine can read. Others on the machine are not ours to judge: another run of the tests has the same secrets.
 *
 * Ours is what has the marker in its environment, or a parent that is ours. The marker finds what was left by its
 * parent, such as the programs of a cluster, and the parent finds what was started with an environment of its own.
 */
export function listProcesses(): RunningProcess[] {
  const pids = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
  const running = new Set(pids)
  // Their numbers are given to others in time.
  for (const pid of known.keys()) if (!running.has(pid)) known.delete(pid)
  return pids.flatMap((pid) => {
    try {
      if (!isOurs(pid)) return []
      const args = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1)
      return [{ pid, args }]
    } catch {
      return [] // ended meanwhile
    }
  })
}

/** @throws when the process has ended */
function isOurs(pid: number): boolean {
  if (pid === process.pid) return true
  if (pid === 0) return false // the parent of the first one
  const answer = known.get(pid) ?? (isMarked(pid) || isOurs(parentOf(pid)))
  known.set(pid, answer)
  return answer
}

function isMarked(pid: number): boolean {
  try {
    const variables = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')
    return variables.includes(`E2E_RUN=${marker.E2E_RUN}`)
  } catch (error) {
    // Another user's.
    if ((error as NodeJS.ErrnoException).code === 'EACCES') return false
    throw error
  }
}

function parentOf(pid: number): number {
  // The name before it is in brackets, and may hold anything.
  const [, parent] = /^.*\) \S (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? []
  return Number(parent)
}

export interface Sampling extends Disposable {
  /** How often the list was looked at. */
  readonly looks: number
  /** Every program that was seen, by the last part of its path. */
  readonly programs: ReadonlySet<string>
  /** Each process in whose arguments a secret was seen, by its program and number, without the secret. */
  readonly exposures: readonly string[]
  /** Ends the sampling. */
  stop(): void
}

/** Looks for secrets in the arguments of our processes, again and again, until it is stopped. */
export function sampleProcesses(secrets: readonly string[], intervalMs = 10): Sampling {
  const programs = new Set<string>()
  const exposures = new Set<string>()
  let looks = 0
  const look = () => {
    looks += 1
    for (const { pid, args } of listProcesses()) {
      const program = args[0]?.split('/').at(-1) ?? ''
      programs.add(program)
      const all = args.join(' ')
      if (secrets.some((secret) => all.includes(secret))) {
        exposures.add(`${program}, process ${pid}`)
      }
    }
  }
  const timer = setInterval(look, intervalMs)
  const stop = () => {
    clearInterval(timer)
  }
  return {
    get looks() {
      return looks
    },
    programs,
    get exposures() {
      return [...exposures]
    },
    stop,
    [Symbol.dispose]: stop,
  }
}

export interface Cancellation {
  /** The last signal that was sent. */
  readonly signal: NodeJS.Signals
  readonly seconds: number
}

/**
 * Cancels a step as a runner does: SIGINT to its process alone, SIGTERM after 7.5 s, SIGKILL after another 2.5 s
 * (actions/runner, ProcessInvoker.cs). The step is the one that runs a file whose path begins and ends so. A signal
 * to act would not do: act kills the process at once.
 */
export async function cancelStep(folder: string, entry: string): Promise<Cancellation> {
  const found = listProcesses().find(({ args: [, file = ''] }) => {
    return file.startsWith(folder) && file.endsWith(entry)
  })
  if (found === undefined) throw new Error(`No step runs ${entry}.`)
  const start = performance.now()
  const endedBy = (signal: NodeJS.Signals) => {
    return { signal, seconds: (performance.now() - start) / 1000 }
  }
  process.kill(found.pid, 'SIGINT')
  if (await endsWithin(found.pid, 7500)) return endedBy('SIGINT')
  process.kill(found.pid, 'SIGTERM')
  if (await endsWithin(found.pid, 2500)) return endedBy('SIGTERM')
  process.kill(found.pid, 'SIGKILL')
  return endedBy('SIGKILL')
}

async function endsWithin(pid: number, limitMs: number): Promise<boolean> {
  const end = performance.now() + limitMs
  while (performance.now() < end) {
    // One that has ended and was not yet collected has no arguments.
    if (!listProcesses().some((one) => one.pid === pid && one.args.length > 0)) return true
    await sleep(20)
  }
  return false
}
