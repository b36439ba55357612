/** Waiting for something to be ready by asking, and ports to listen on. */
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { lastLines, type Program } from './program.ts'

const pauseMs = 50

export interface Question<T> {
  /** What is waited for, as the end of "not …". */
  readonly what: string
  /** Answers with undefined, or rejects, as long as it is not so. */
  readonly ask: () => Promise<T | undefined>
  readonly timeoutMs?: number
  /** Whose end ends the waiting, and whose output the error shows. */
  readonly program?: Program
}

/** Asks until there is an answer. Rejects when the time is up, or the program that should answer is gone. */
export async function waitFor<T>({
  what,
  ask,
  timeoutMs = 30_000,
  program,
}: Question<T>): Promise<T> {
  const startedMs = Date.now()
  let problem: unknown
  while (Date.now() - startedMs < timeoutMs && program?.ending() === undefined) {
    try {
      const answer = await ask()
      if (answer !== undefined) return answer
    } catch (error) {
      problem = error
    }
    await setTimeout(pauseMs)
  }
  const why = program?.ending() ?? `${timeoutMs / 1000} s have passed`
  const output = program === undefined ? '' : `\n${lastLines(program.output())}`
  throw new Error(`not ${what}: ${why}${output}`, { cause: problem })
}

/** Below what Linux hands out by itself, so that nobody is given one of them before it is listened on. */
const ports = { first: 15_000, end: 32_000 } as const

/** Free ports, for programs that cannot take any free one by themselves. Random, for runs side by side. */
export async function freePorts<const T extends readonly string[]>(
  ...names: T
): Promise<Record<T[number], number>> {
  const found = new Set<number>()
  while (found.size < names.length) {
    const port = randomInt(ports.first, ports.end)
    if (await isFree(port)) found.add(port)
  }
  const numbers = [...found]
  return Object.fromEntries(names.map((name, index) => [name, numbers[index]])) as Record<
    T[number],
    number
  >
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening')
  } catch {
    return false
  }
  await once(server.close(), 'close')
  return true
}
