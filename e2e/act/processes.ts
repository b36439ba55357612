/** Looks at the processes of this machine, as anyone on it can. Linux only. */
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import process from 'node:process'

export interface RunningProcess {
  readonly pid: number
  readonly args: readonly string[]
}

/** All processes and their arguments, which every user of a machine can read. */
export function listProcesses(): RunningProcess[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    try {
      const args = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0').slice(0, -1)
      return [{ pid: Number(name), args }]
    } catch {
      return [] // ended meanwhile
    }
  })
}

export interface Sampling extends Disposable {
  /** How often the list was looked at. */
  readonly looks: number
  /** Every program that was seen, by the last part of its path. */
  readonly programs: ReadonlySet<string>
  /** Each argument list in which a secret was seen, once. */
  readonly exposures: readonly string[]
  /** Ends the sampling. */
  stop(): void
}

/** Looks for secrets in the arguments of all processes, again and again, until it is stopped. */
export function sampleProcesses(secrets: readonly string[], intervalMs = 10): Sampling {
  const programs = new Set<string>()
  const exposures = new Set<string>()
  let looks = 0
  const look = () => {
    looks += 1
    for (const { args } of listProcesses()) {
      programs.add(args[0]?.split('/').at(-1) ?? '')
      const all = args.join(' ')
      if (secrets.some((secret) => all.includes(secret))) exposures.add(all)
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
