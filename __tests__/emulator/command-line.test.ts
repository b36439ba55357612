import { execFile, spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { describe, expect, it } from '@jest/globals'
import { flags, helpText, readCommandLine } from '../../emulator/command-line.ts'
import { kinds } from '../../emulator/faults.ts'
import { startEmulator } from '../../emulator/index.ts'

const main = new URL('../../emulator/main.ts', import.meta.url).pathname

type Ended = { exitCode: number | null; stdout: string; stderr: string }

/** Runs the emulator; `onOutput` sees what it has printed so far and may stop it. */
function run(
  args: string[],
  onOutput?: (stdout: string, stop: (signal: NodeJS.Signals) => void) => void,
) {
  const child = spawn(process.execPath, [main, ...args])
  const ended: Ended = { exitCode: null, stdout: '', stderr: '' }
  child.stdout.on('data', (chunk: Buffer) => {
    ended.stdout += chunk.toString()
    onOutput?.(ended.stdout, (signal) => child.kill(signal))
  })
  child.stderr.on('data', (chunk: Buffer) => (ended.stderr += chunk.toString()))
  return new Promise<Ended>((resolve) => {
    child.on('close', (exitCode) => {
      resolve({ ...ended, exitCode })
    })
  })
}

describe('the command', () => {
  it.each<NodeJS.Signals>(['SIGINT', 'SIGTERM'])(
    'prints a line to paste, which works, and stops on %s',
    async (signal) => {
      let pasted: Promise<{ stdout: string }> | undefined
      const ended = await run(
        ['--port', '0', '--storage-port', '0', '--seed', 'x'],
        (stdout, stop) => {
          const line = /^curl .*$/m.exec(stdout)?.[0]
          if (line === undefined || pasted !== undefined) return
          pasted = promisify(execFile)('sh', ['-c', line])
          void pasted.finally(() => {
            stop(signal)
          })
        },
      )
      expect(JSON.parse((await pasted)?.stdout ?? '')).toMatchObject({ status: 'queued' })
      expect(ended).toMatchObject({ exitCode: 0, stderr: '' })
      expect(ended.stdout).toMatch(/^Admin API +http:\/\/127\.0\.0\.1:\d+\nObject storage +http:/)
      expect(ended.stdout).toMatch(/^POST \/v1\/static-export\/jobs 202$/m)
    },
  )

  it('stops although a client hangs', async () => {
    const ended = await run(
      ['--port', '0', '--storage-port', '0', '--fault', 'any:silence'],
      (stdout, stop) => {
        const url = /http:\/\/\S+/.exec(stdout)?.[0] ?? ''
        if (stdout.includes('GET /x no answer (fault: silence)')) stop('SIGTERM')
        else if (stdout.includes('curl')) void fetch(`${url}/x`).catch(() => undefined)
      },
    )
    expect(ended).toMatchObject({ exitCode: 0, stderr: '' })
  })

  it('shows how it is used', async () => {
    expect(await run(['--help'])).toEqual({ exitCode: 0, stdout: helpText(), stderr: '' })
  })

  it('names everything that is wrong', async () => {
    const ended = await run(['--prot', '--port', 'x', '--retry-after=1', '--fault', 'a:b', 'c'])
    expect(ended).toMatchObject({ exitCode: 2, stdout: '' })
    expect(ended.stderr.split('\n')).toEqual([
      '--prot: there is no such flag',
      '--port x: must be a port, 0 to 65535',
      '--retry-after 1: takes no value',
      expect.stringMatching(/^--fault a:b: unknown operation "a"; there are/),
      'unexpected argument "c"',
      'See npm run emulator -- --help.',
      '',
    ])
  })

  it.each([
    [['--port'], ['--storage-port', '0']],
    [['--storage-port'], ['--port', '0']],
  ])('says so when the port of %s is taken', async (flag, others) => {
    await using other = await startEmulator()
    const { port } = new URL(other.apiUrl)
    const ended = await run([...flag, port, ...others])
    expect(ended).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: `Port ${port} is taken: choose others with --port and --storage-port (0 takes any).\n`,
    })
  })
})

describe('the flags', () => {
  it('become options', () => {
    expect(readCommandLine([])).toEqual({ port: 4010, storagePort: 4011 })
    const args =
      '--port 0 --storage-port 1 --host 0.0.0.0 --public-url http://api:1/ --storage-public-url https://s3 ' +
      '--site emulator/site --domain a.example --domain b.example --queue-seconds 0 --job-seconds 1.5 ' +
      '--curve stall --report bare --link-seconds 60 --starts-per-hour 10 --retry-after ' +
      '--one-export-per-site --agent-seconds 3 --fault status:503 --fault start:reset --seed x'
    expect(readCommandLine(args.split(' '))).toEqual({
      port: 0,
      storagePort: 1,
      host: '0.0.0.0',
      publicUrl: 'http://api:1',
      storagePublicUrl: 'https://s3',
      siteDirectory: 'emulator/site',
      domains: ['a.example', 'b.example'],
      queueSeconds: 0,
      jobSeconds: 1.5,
      curve: 'stall',
      report: 'bare',
      linkSeconds: 60,
      startsPerHour: 10,
      retryAfter: true,
      oneExportPerSite: true,
      agentSeconds: 3,
      faults: [
        { operation: 'status', kind: 'reply', status: 503 },
        { operation: 'start', kind: 'reset' },
      ],
      seed: 'x',
    })
  })

  it.each([
    ['--port=70000', /must be a port/],
    ['--port', /needs a value \(PORT\)/],
    ['--job-seconds=-1', /must be a number of seconds/],
    ['--link-seconds=0', /must be a whole number, 1 or more/],
    ['--link-seconds=700000', /at most 604800/],
    ['--starts-per-hour=0', /1 or more/],
    ['--curve=round', /must be one of linear, slow-start, slow-end, stall/],
    ['--report=loud', /must be one of full, bare, backwards, unknown-status/],
    ['--public-url=http://x/path', /must be an origin/],
    ['--public-url=x', /must be an origin/],
    ['--site=no/such/folder', /is not a folder/],
    ['--domain=https://x', /must be a host name/],
    ['--constructor', /there is no such flag/],
  ])('%s is refused', (flag, message) => {
    expect(() => readCommandLine([flag])).toThrow(message)
  })
})

it('the README names every flag and kind of fault, and its examples are understood', async () => {
  const readme = await readFile(new URL('../../emulator/README.md', import.meta.url), 'utf8')
  for (const name of Object.keys(flags)) expect(readme).toContain(`\`--${name}`)
  for (const kind of Object.keys(kinds)) expect(readme).toContain(`\`${kind}\``)
  for (const flag of readme.matchAll(/--fault ([a-z]+:[^\s`']+)/g)) {
    expect(() => readCommandLine(['--fault', flag[1] ?? ''])).not.toThrow()
  }
})
