/** Whole processes, one after the other in turn, so that a machine whose speed drifts is fair to both. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'

export interface Command {
  readonly argv: readonly [string, ...string[]]
  readonly environment?: NodeJS.ProcessEnv
  /** Not measured. */
  readonly before?: () => void
}

export interface Measured {
  readonly wallMs: number
  /** The most memory that was resident, where /proc tells it. */
  readonly residentBytes: number
}

/** Runs a command to its end. Throws when it fails. */
async function measure({
  argv: [program, ...words],
  environment,
  before,
}: Command): Promise<Measured> {
  before?.()
  const startedMs = performance.now()
  const child = spawn(program, words, { stdio: 'ignore', env: environment ?? process.env })
  let residentBytes = 0
  const sampler = setInterval(() => {
    residentBytes = Math.max(residentBytes, highWaterBytes(child.pid ?? 0))
  }, 20)
  const [code] = (await once(child, 'exit')) as [number | null]
  const wallMs = performance.now() - startedMs
  clearInterval(sampler)
  if (code !== 0) throw new Error(`${[program, ...words].join(' ')} ended with ${String(code)}`)
  return { wallMs, residentBytes }
}

function highWaterBytes(pid: number): number {
  try {
    const kib = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return Number(kib ?? 0) * 1024
  } catch {
    return 0 // it has ended, or this is not Linux
  }
}

/** Runs two commands in turn, after one warm-up of each; medians. */
export async function compare(
  a: Command,
  b: Command,
  rounds: number,
): Promise<{ readonly a: Measured; readonly b: Measured; readonly ratio: number }> {
  const runs: { a: Measured; b: Measured }[] = []
  for (let round = 0; round <= rounds; round += 1) {
    const run = { a: await measure(a), b: await measure(b) }
    if (round > 0) runs.push(run)
  }
  const middle = (of: 'a' | 'b'): Measured => ({
    wallMs: median(runs.map((run) => run[of].wallMs)),
    residentBytes: Math.max(...runs.map((run) => run[of].residentBytes)),
  })
  return { a: middle('a'), b: middle('b'), ratio: middle('a').wallMs / middle('b').wallMs }
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  return ((sorted[Math.ceil(middle) - 1] ?? NaN) + (sorted[Math.floor(middle)] ?? NaN)) / 2
}
