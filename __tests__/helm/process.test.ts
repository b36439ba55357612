/** Real programs: small scripts for the Node that runs the tests. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import process from 'node:process'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { CommandFault, createCommandRunner, type CommandOptions } from '../../src/helm/process.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), 'process-'))
})
afterEach(() => {
  rmSync(directory, { recursive: true })
})

const generousMs = 30_000
const runCommand = createCommandRunner({ endMs: 500, pipesMs: 100 })

function run(script: string, options: Partial<CommandOptions> = {}) {
  return runCommand(process.execPath, ['-e', script], {
    environment: {},
    directory,
    signal: new AbortController().signal,
    maxMs: generousMs,
    ...options,
  })
}

test('gives the exit code and both outputs', async () => {
  const script = 'console.log("out"); console.error("err"); process.exitCode = 3'
  expect(await run(script)).toEqual({ exitCode: 3, stdout: 'out\n', stderr: 'err\n' })
})

test('passes what is to be read, the directory, and nothing of our own environment', async () => {
  const script =
    'process.stdin.pipe(process.stdout); console.error(process.cwd(), Object.keys(process.env).join())'
  const result = await run(script, { input: 'values', environment: { ONLY: '1' } })
  expect(result.stdout).toBe('values')
  expect(result.stderr).toContain(path.basename(directory))
  expect(result.stderr).toMatch(/ ONLY\n$/)
})

test('survives a program that does not read what it is given', async () => {
  const result = await run('process.exitCode = 1', { input: 'x'.repeat(5_000_000) })
  expect(result.exitCode).toBe(1)
})

test('says why a program cannot be started', async () => {
  const missing = runCommand(path.join(directory, 'nothing'), [], {
    environment: {},
    directory,
    signal: new AbortController().signal,
    maxMs: generousMs,
  })
  await expect(missing).rejects.toEqual(new CommandFault('cannot-start', 'ENOENT'))
})

describe('an end from outside', () => {
  /** Says that it is there, and leaves a mark when it was asked to end and did so in its own time. */
  const polite = `
    process.on('SIGINT', () => setTimeout(() => {
      require('node:fs').writeFileSync('ended', '')
      process.exit(1)
    }, 100))
    require('node:fs').writeFileSync('began', '')
    setInterval(() => {}, 1000)`

  const began = async () => {
    while (!existsSync(path.join(directory, 'began'))) await new Promise(setImmediate)
  }

  test('asks with SIGINT, waits for the end, and rejects with the reason', async () => {
    const cancelling = new AbortController()
    const running = run(polite, { signal: cancelling.signal })
    await began()
    cancelling.abort(new Error('cancelled'))
    await expect(running).rejects.toThrow('cancelled')
    expect(existsSync(path.join(directory, 'ended'))).toBe(true)
  })

  // A script around Helm need not pass it on.
  test('reaches what a wrapper has started', async () => {
    const wrapper = `require('node:child_process').spawnSync(process.execPath, ['-e', ${JSON.stringify(polite)}])`
    const cancelling = new AbortController()
    const running = run(wrapper, { signal: cancelling.signal })
    await began()
    cancelling.abort(new Error('cancelled'))
    await expect(running).rejects.toThrow('cancelled')
    while (!existsSync(path.join(directory, 'ended'))) await new Promise(setImmediate)
  })

  test('comes also when the time is over', async () => {
    const slow = run('setInterval(() => {}, 1000)', { maxMs: 300 })
    await expect(slow).rejects.toEqual(new CommandFault('too-slow', 'no answer within 0 s'))
  })

  test('kills what does not end, and does not wait for what that has started', async () => {
    const stubborn = `
      process.on('SIGINT', () => {})
      const { pid } = require('node:child_process').spawn(process.execPath,
        ['-e', 'setTimeout(() => {}, 20_000)'], { stdio: 'inherit' })
      require('node:fs').writeFileSync('began', String(pid))
      setInterval(() => {}, 1000)`
    const cancelling = new AbortController()
    const running = run(stubborn, { signal: cancelling.signal })
    await began()
    cancelling.abort(new Error('cancelled'))
    await expect(running).rejects.toThrow('cancelled')
  })

  test('before the beginning starts nothing', async () => {
    const signal = AbortSignal.abort(new Error('cancelled'))
    await expect(run(polite, { signal })).rejects.toThrow('cancelled')
    expect(existsSync(path.join(directory, 'began'))).toBe(false)
  })
})
