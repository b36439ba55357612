/** Other programs: started without a shell, listened to with a limit, ended with a signal and waited for. */
import { spawn } from 'node:child_process'
import process from 'node:process'

export interface CommandOptions {
  readonly environment: Readonly<Record<string, string>>
  /** The working directory. */
  readonly directory: string
  /** Its standard input, which is empty otherwise. */
  readonly input?: string | undefined
  readonly signal: AbortSignal
  /** After so long it is ended as by the signal. */
  readonly maxMs: number
}

export interface CommandResult {
  /** Undefined when it was ended by a signal that was not ours. */
  readonly exitCode: number | undefined
  /** That signal. */
  readonly signalName?: NodeJS.Signals | undefined
  readonly stdout: string
  readonly stderr: string
}

/**
 * Runs a program to its end. Rejects with a {@link CommandFault}, or with the reason of the signal; both only
 * after the program has ended, so that what comes next finds its work done or undone.
 */
export type RunCommand = (
  file: string,
  args: readonly string[],
  options: CommandOptions,
) => Promise<CommandResult>

/** A program that gave no answer of its own. */
export class CommandFault extends Error {
  override readonly name = 'CommandFault'
  readonly kind: 'cannot-start' | 'too-slow'

  constructor(kind: CommandFault['kind'], message: string, cause?: unknown) {
    super(message, { cause })
    this.kind = kind
  }
}

const hasGroups = process.platform !== 'win32'

/** The state of a large release, with its manifest and its pods, is far below; what is above is dropped. */
const maxOutputBytes = 64 * 1024 * 1024

/** How long a program may take to end when it is asked to, and its pipes to close when it has. */
interface Patience {
  readonly endMs: number
  readonly pipesMs: number
}

/** Helm ends 0.15 s after SIGINT; a runner waits for ten seconds in all. */
export const systemCommand = createCommandRunner({ endMs: 4_000, pipesMs: 1_000 })

/** Runs the real programs of this machine. */
export function createCommandRunner(patience: Patience): RunCommand {
  return (file, args, options) =>
    new Promise((resolve, reject) => {
      const { environment, directory, input = '', signal, maxMs } = options
      signal.throwIfAborted()
      const child = spawn(file, [...args], {
        cwd: directory,
        env: { ...environment },
        stdio: 'pipe',
        windowsHide: true,
        // A group of its own, so that a signal reaches the program behind a wrapper, too. Windows has none.
        detached: hasGroups,
      })
      const kill = (name: NodeJS.Signals) => {
        try {
          if (hasGroups && child.pid !== undefined) process.kill(-child.pid, name)
          else child.kill(name)
        } catch {
          // it has ended meanwhile
        }
      }
      let ending: Error | undefined
      let killTimer: NodeJS.Timeout | undefined
      const end = (reason: Error) => {
        if (ending) return
        ending = reason
        kill('SIGINT')
        killTimer = setTimeout(() => {
          kill('SIGKILL')
        }, patience.endMs)
      }
      const onAbort = () => {
        end(signal.reason as Error)
      }
      signal.addEventListener('abort', onAbort, { once: true })
      const slowTimer = setTimeout(() => {
        end(new CommandFault('too-slow', `no answer within ${Math.round(maxMs / 1000)} s`))
      }, maxMs)
      // What it started itself may outlive it and keep its pipes open.
      let lingerTimer: NodeJS.Timeout | undefined
      child.on('exit', () => {
        lingerTimer = setTimeout(() => {
          child.stdout.destroy()
          child.stderr.destroy()
        }, patience.pipesMs)
      })
      const settle = () => {
        clearTimeout(lingerTimer)
        clearTimeout(slowTimer)
        clearTimeout(killTimer)
        signal.removeEventListener('abort', onAbort)
      }

      const stdout = collect(child.stdout)
      const stderr = collect(child.stderr)
      // It may exit before it has read everything: its exit code tells more than EPIPE.
      child.stdin.on('error', () => undefined)
      child.stdin.end(input)
      child.on('error', (error) => {
        if (child.pid !== undefined) return // a signal that could not be sent
        settle()
        reject(new CommandFault('cannot-start', codeOf(error), error))
      })
      child.on('close', (code, signalName) => {
        settle()
        if (ending) reject(ending)
        const how = { exitCode: code ?? undefined, signalName: signalName ?? undefined }
        resolve({ ...how, stdout: stdout(), stderr: stderr() })
      })
    })
}

/** Keeps what a stream says, up to the limit, and goes on reading so that the program is not held up. */
function collect(stream: NodeJS.ReadableStream): () => string {
  const chunks: Buffer[] = []
  let sizeBytes = 0
  stream.on('data', (chunk: Buffer) => {
    sizeBytes += chunk.length
    if (sizeBytes <= maxOutputBytes) chunks.push(chunk)
  })
  return () => Buffer.concat(chunks).toString('utf8')
}

function codeOf(error: NodeJS.ErrnoException): string {
  return error.code ?? error.message
}
