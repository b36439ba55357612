/**
 * Who stops what. A part is started inside a scope, which holds everything that the part consists of; closing the
 * part, or a failure while it starts, undoes all of it, last first. What outlives a process is also noted with the
 * keeper, for the case that this process ends without closing.
 */
import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { carryOut, note, type Undo } from './keeper.ts'
import { startProgram, type Program } from './program.ts'

/** Whatever is started here: `await using part = await startX()`, or `close()` in an after hook. */
export interface Part extends AsyncDisposable {
  /** Stops it and removes what it wrote. A second call does nothing more. */
  close(): Promise<void>
}

/** Starts a part. What `start` has put into the scope is undone when it throws. */
export async function startPart<T extends object>(
  start: (scope: Scope) => Promise<T>,
): Promise<T & Part> {
  const scope = new Scope()
  const close = () => scope.close()
  try {
    return { ...(await start(scope)), close, [Symbol.asyncDispose]: close }
  } catch (error) {
    await close()
    throw error
  }
}

type Closer = () => Promise<void> | void

/** What a part consists of. */
export class Scope {
  readonly #closers: Closer[] = []
  #closing: Promise<void> | undefined

  /** Has something undone at the end, also when this process does not live to see it. */
  defer(undo: Undo): void {
    const release = note(undo)
    this.#closers.push(() => {
      carryOut(undo)
      release()
    })
  }

  /** Makes an empty folder. */
  folder(name: string): string {
    const folder = mkdtempSync(path.join(tmpdir(), `e2e-${name}-`))
    this.defer({ remove: folder })
    return folder
  }

  /** Starts a program that runs until the end. */
  program(command: string, args: readonly string[], environment?: NodeJS.ProcessEnv): Program {
    const program = startProgram(command, args, environment)
    this.#closers.push(() => program.stop())
    return program
  }

  /** Serves HTTP on a free port of the loopback interface. Resolves with the address, `127.0.0.1:port`. */
  async serve(listener: RequestListener): Promise<string> {
    const server = createServer(listener).listen(0, '127.0.0.1')
    await once(server, 'listening')
    this.#closers.push(async () => {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    })
    return `127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  close(): Promise<void> {
    return (this.#closing ??= closeAll(this.#closers.reverse()))
  }
}

/** Calls all of them, also after a failure, and throws the first one. */
async function closeAll(closers: readonly Closer[]): Promise<void> {
  const failures: unknown[] = []
  for (const closer of closers) {
    try {
      await closer()
    } catch (error) {
      failures.push(error)
    }
  }
  if (failures.length > 0) throw failures[0]
}
