/** The process of an action: the real dependencies, the signals of the runner, and an exit code that cannot lie. */
import { homedir, tmpdir } from 'node:os'
import process from 'node:process'
import type { Action, ActionDependencies } from './action.ts'
import { systemClock } from './clock.ts'
import { systemDisk } from './disk.ts'
import { Failure } from './errors.ts'
import { systemNetwork, systemStorage } from './network.ts'
import { connectRunner } from './runner.ts'

/** What is left when an action has ended closes within milliseconds, or not at all. */
const longestLingerMs = 1_000

/**
 * Runs an action as this process.
 *
 * @param longestGoodbyeMs how long a cancelled run may take to end. The runner sends SIGINT, after 7.5 s
 *   SIGTERM, and kills 2.5 s later (actions/runner, ProcessInvoker.cs)
 */
export async function enter(
  create: (dependencies: ActionDependencies) => Action,
  longestGoodbyeMs: number,
): Promise<void> {
  // A dependency of the proxy support warns of itself, in the middle of the log.
  process.noDeprecation = true

  // Until the last output is written this run is a failure, also when Node finds nothing left to do.
  process.exitCode = 1

  const cancelling = new AbortController()
  const action = create({
    runner: connectRunner(process.env),
    environment: process.env,
    network: systemNetwork,
    storage: systemStorage,
    disk: systemDisk,
    machine: {
      platform: process.platform,
      workingDirectory: process.cwd(),
      homeDirectory: homedir(),
      temporaryDirectory: tmpdir(),
    },
    clock: systemClock,
    random: Math.random,
    signal: cancelling.signal,
  })

  let goodbye: NodeJS.Timeout | undefined
  function onCancel(signalName: string): void {
    if (cancelling.signal.aborted) return // what has begun to end has its time
    const failure = new Failure('cancelled', `Cancelled by ${signalName}.`)
    cancelling.abort(failure)
    goodbye = setTimeout(() => {
      action.fail(failure)
      process.exit(1)
    }, longestGoodbyeMs)
  }
  process.on('SIGINT', onCancel)
  process.on('SIGTERM', onCancel)
  process.on('SIGHUP', onCancel) // the terminal of a runner by hand is closed
  process.on('SIGBREAK', onCancel)

  // A raw stack trace would be read by the runner as commands.
  function onLostError(error: unknown): void {
    action.fail(error)
    process.exit(1)
  }
  process.on('uncaughtException', onLostError)
  process.on('unhandledRejection', onLostError)
  // The reader of the log is gone; the outputs and the summary are not.
  process.stdout.on('error', () => {
    onLostError(new Failure('environment', 'The log of this step was closed.'))
  })

  process.exitCode = await action.run()
  clearTimeout(goodbye)
  // Left to end by itself: `process.exit` can wait for ever for a thread of V8 that waits for this one
  // (nodejs/node#54918). Only a connection that hangs is not waited for.
  setTimeout(() => process.exit(), longestLingerMs).unref()
}
