/** Programs that are not ours: each in a process group of its own, with all that it prints kept for error messages. */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import process from 'node:process'
import { carryOut, note } from './keeper.ts'

export interface Program {
  /** What it has printed so far, on both streams. */
  output(): string
  stdout(): string
  /** How it ended: `exit code 0`, the name of a signal, or why it never began. Undefined while it runs. */
  ending(): string | undefined
  /** Resolves when it has ended. */
  readonly ended: Promise<void>
  /** Kills it and what it started, and resolves when it is gone. */
  stop(): Promise<void>
}

/**
 * A variable for all that this process starts, which they hand on to what they start themselves: see `listProcesses`.
 * Its value is of this process alone, so that two runs of the tests on one machine tell theirs apart.
 */
export const marker = { E2E_RUN: randomUUID() } as const

/** Starts a program. Its environment is PATH, the marker and what is given, nothing else of this machine. */
export function startProgram(
  command: string,
  args: readonly string[],
  environment: NodeJS.ProcessEnv = {},
): Program {
  const child = spawn(command, args, {
    env: { PATH: process.env['PATH'], ...marker, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    // Ctrl-C in the terminal is for the tests: they stop their programs, in order.
    detached: true,
  })
  const undo = child.pid === undefined ? undefined : { kill: child.pid }
  const release = undo && note(undo)
  let output = ''
  let stdout = ''
  let ending: string | undefined
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  const ended = new Promise<void>((resolve) => {
    const end = (how: string) => {
      ending ??= how
      release?.()
      resolve()
    }
    child.on('error', (error) => {
      end(error.message)
    })
    child.on('close', (code, signal) => {
      end(signal ?? `exit code ${code ?? ''}`)
    })
  })
  return {
    output: () => output,
    stdout: () => stdout,
    ending: () => ending,
    ended,
    stop: async () => {
      if (undo !== undefined && ending === undefined) carryOut(undo)
      await ended
    },
  }
}

export interface RunOptions {
  readonly environment?: NodeJS.ProcessEnv
  readonly timeoutMs?: number
}

/** Runs a program to its end and resolves with its standard output. Rejects with all of its output on a failure. */
export async function run(
  command: string,
  args: readonly string[],
  { environment, timeoutMs = 60_000 }: RunOptions = {},
): Promise<string> {
  const program = startProgram(command, args, environment)
  const limit = AbortSignal.timeout(timeoutMs)
  limit.addEventListener('abort', () => void program.stop())
  await program.ended
  const ending = program.ending() ?? ''
  if (ending === 'exit code 0') return program.stdout()
  const what = limit.aborted ? `stopped after ${timeoutMs / 1000} s` : ending
  throw new Error(`${what}: ${[command, ...args].join(' ')}\n${lastLines(program.output())}`)
}

/** The end of an output, for an error message. */
export function lastLines(output: string, count = 30): string {
  return output.trimEnd().split('\n').slice(-count).join('\n')
}
