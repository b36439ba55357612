/** The committed `dist`, spawned as the runner does it: Node 24, `INPUT_*`, files for outputs and summary. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { type RequestListener, createServer } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type Emulator, type EmulatorOptions, startEmulator } from '../emulator/index.ts'
import {
  parseCommand,
  runStep,
  type StepOptions,
  type StepResult,
} from '../scripts/local-runner.ts'

const action = path.resolve(import.meta.dirname, '..')
const siteDirectory = path.join(import.meta.dirname, 'support/site')
let scratch: string

beforeAll(() => {
  scratch = mkdtempSync(path.join(tmpdir(), 'spawned-'))
})

afterAll(() => {
  rmSync(scratch, { recursive: true })
})

/** An export that is over before the first look at it, unless the options say otherwise. */
function startQuickEmulator(options: EmulatorOptions = {}): Promise<Emulator> {
  return startEmulator({ siteDirectory, queueSeconds: 0, jobSeconds: 0, ...options })
}

function runOn(
  emulator: Emulator,
  { inputs, ...options }: Partial<StepOptions> = {},
): Promise<StepResult> {
  return runStep({
    action,
    inputs: {
      'api-key': emulator.keys.good,
      'base-url': emulator.apiUrl,
      domain: 'docs.example.com',
      ...inputs,
    },
    ...options,
  })
}

function commandsIn({ lines }: StepResult): string[] {
  return lines.flatMap((line) => parseCommand(line)?.name ?? [])
}

/** Everything that was printed or put into the summary, without the lines by which the runner learns a secret. */
function visible({ lines, summary }: StepResult): string {
  return [...lines.filter((line) => parseCommand(line)?.name !== 'add-mask'), summary].join('\n')
}

describe('an export', () => {
  test('ends with all outputs, the summary, and nothing secret in sight', async () => {
    await using emulator = await startQuickEmulator()
    const step = await runOn(emulator, { inputs: { 'github-token': 'ghs_token_0123456789' } })

    expect(step.exitCode).toBe(0)
    expect(Object.fromEntries(step.outputs)).toEqual({
      bundleUrl: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/.*&X-Amz-Signature=/),
      expiresAt: expect.stringMatching(/^\d{4}-\d{2}-\d{2}T/),
      jobId: expect.stringMatching(/^se_/),
      status: 'completed',
      pageCount: '10',
      sizeBytes: expect.stringMatching(/^\d+$/),
      bundleFile: '',
      bundleSha256: '',
      siteDirectory: '',
      valuesFile: '',
      agentStatus: '',
      prLink: '',
      failureCode: '',
    })
    const archive = await fetch(step.outputs.get('bundleUrl') ?? '')
    expect((await archive.arrayBuffer()).byteLength).toBe(Number(step.outputs.get('sizeBytes')))

    expect(step.lines[0]).toBe(`::add-mask::${emulator.keys.good}`)
    expect(commandsIn(step)).toEqual(['add-mask', 'add-mask', 'group', 'endgroup'])
    expect(step.summary).toContain('docs.example.com')
    expect(visible(step)).not.toContain('0123456789')
    expect(visible(step)).not.toContain('X-Amz-')
  })

  test('registers the parts of the link as secrets when asked to', async () => {
    await using emulator = await startQuickEmulator()
    const step = await runOn(emulator, { inputs: { 'mask-bundle-url': 'true' } })
    const masks = step.lines.map(parseCommand).filter((command) => command?.name === 'add-mask')
    const url = new URL(step.outputs.get('bundleUrl') ?? '')
    expect(masks.map((command) => command?.data)).toEqual([
      emulator.keys.good,
      url.search.slice(1),
      'EMULATORACCESSKEY%2F' +
        (url.search.split('%2F')[1] ?? '') +
        '%2Fus-east-1%2Fs3%2Faws4_request',
      url.searchParams.get('X-Amz-Credential'),
      url.searchParams.get('X-Amz-Signature'),
    ])
  })

  test('lets no text of the service act as a command of the runner', async () => {
    await using emulator = await startQuickEmulator()
    emulator.failNextJob({
      error: 'a\r\n::add-mask::completed\n##[add-path]/tmp\u001b[0m #\u200b#[set-env name=A]b',
      afterPages: 3,
    })
    const step = await runOn(emulator)
    expect(step.outputs.get('failureCode')).toBe('job-failed')
    expect(commandsIn(step)).toEqual(['add-mask', 'group', 'endgroup', 'error'])
  })

  test('fails, and ends, when the answers are cut in the middle', async () => {
    await using emulator = await startQuickEmulator({
      queueSeconds: 60,
      faults: [{ operation: 'status', kind: 'fin', afterBytes: 30, times: 'always' }],
    })
    const step = await runOn(emulator, {
      inputs: { 'timeout-minutes': '0.03', 'poll-interval-seconds': '0.1' },
    })
    expect(step.exitCode).toBe(1)
    expect(step.outputs.get('failureCode')).toBe('network')
    expect(step.outputs.get('jobId')).toMatch(/^se_/)
  })

  test('shows title and state of the pull request, and gives the token to nobody else', async () => {
    await using emulator = await startQuickEmulator()
    const tokens: (string | undefined)[] = []
    await using github = await serve((request, response) => {
      tokens.push(request.headers.authorization)
      response.setHeader('content-type', 'application/json')
      response.end(
        request.url === '/repos/acme/docs/pulls/101'
          ? JSON.stringify({ title: 'Fix links', state: 'closed', merged: true })
          : '{}',
      )
    })
    const step = await runOn(emulator, {
      inputs: {
        'agent-project-id': emulator.agentProject,
        'agent-job-id': 'agent-completed',
        'github-token': 'ghs_token_0123456789',
      },
      environment: { GITHUB_API_URL: github.url },
    })
    expect(step.exitCode).toBe(0)
    expect(step.outputs.get('prLink')).toBe('https://github.com/acme/docs/pull/101')
    expect(step.summary).toContain('>Fix links</a> (merged)')
    expect(tokens).toEqual(['token ghs_token_0123456789'])
  })

  test('links the pull request plainly when GitHub does not answer for it', async () => {
    await using emulator = await startQuickEmulator()
    await using github = await serve((_request, response) => {
      response.statusCode = 403
      response.end('{"message":"Resource not accessible by integration"}')
    })
    const step = await runOn(emulator, {
      inputs: {
        'agent-project-id': emulator.agentProject,
        'agent-job-id': 'agent-completed',
        'github-token': 'ghs_token_0123456789',
      },
      environment: { GITHUB_API_URL: github.url },
    })
    expect(step.exitCode).toBe(0)
    expect(commandsIn(step)).not.toContain('warning')
    expect(step.summary).toMatch(/href="https&#58;\/\/github\.com\/acme\/docs\/pull\/101"/)
  })
})

test('a GitHub that never answers costs the title, not the export', async () => {
  await using emulator = await startQuickEmulator()
  await using github = await serve(() => undefined)
  const step = await runOn(emulator, {
    inputs: {
      'agent-project-id': emulator.agentProject,
      'agent-job-id': 'agent-completed',
      'github-token': 'ghs_token_0123456789',
      'timeout-minutes': '0.05',
    },
    environment: { GITHUB_API_URL: github.url },
  })
  expect(step.exitCode).toBe(0)
  expect(step.outputs.get('prLink')).toBe('https://github.com/acme/docs/pull/101')
})

describe('a signal', () => {
  test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    '%s ends the wait with the way to resume',
    async (signal) => {
      await using emulator = await startQuickEmulator({ queueSeconds: 600 })
      const step = await runOn(emulator, {
        onLine(line, child) {
          if (line.includes('queued')) child.kill(signal)
        },
      })
      expect(step.exitCode).toBe(1)
      expect(step.outputs.get('failureCode')).toBe('cancelled')
      expect(step.outputs.get('jobId')).toMatch(/^se_/)
      expect(step.summary).toContain(`job-id: ${step.outputs.get('jobId') ?? ''}`)
      expect(commandsIn(step).filter((name) => name === 'error')).toHaveLength(1)
    },
  )

  test('that comes twice in a download leaves nothing behind', async () => {
    let child: ChildProcess | undefined
    await using emulator = await startQuickEmulator({
      faults: [{ operation: 'download', kind: 'drip-body', bytesPerSecond: 1 }],
    })
    const directory = path.join(scratch, 'twice')
    const step = await runOn(emulator, {
      inputs: { 'bundle-file': path.join(directory, 'site.tar.gz') },
      onLine(line, spawned) {
        child = spawned
        if (!line.startsWith('Bundle')) return
        child.kill('SIGTERM')
        child.kill('SIGINT')
      },
    })
    expect(step.exitCode).toBe(1)
    expect(existsSync(directory) ? readdirSync(directory) : []).toEqual([])
    expect(step.outputs.get('failureCode')).toBe('cancelled')
  })

  test('ends a request that is never answered', async () => {
    let child: ChildProcess | undefined
    await using emulator = await startQuickEmulator({
      faults: [{ operation: 'start', kind: 'silence' }],
      onRequest: () => child?.kill('SIGINT'),
    })
    const step = await runOn(emulator, {
      onLine(_line, spawned) {
        child = spawned
      },
    })
    expect(step.exitCode).toBe(1)
    expect(step.outputs.get('failureCode')).toBe('cancelled')
  })
})

describe('the files of the runner', () => {
  test.each([
    ['is not set', () => undefined],
    ['does not exist', () => path.join(scratch, 'nowhere')],
    ['is a directory', () => scratch],
  ])('outputs: one that %s is told before any request', async (_what, file) => {
    await using emulator = await startQuickEmulator()
    const step = await runOn(emulator, { environment: { GITHUB_OUTPUT: file() } })
    expect(step.exitCode).toBe(1)
    expect(emulator.requests).toEqual([])
    expect(commandsIn(step)).toEqual(['add-mask', 'error'])
    expect(step.lines.at(-1)).toContain('GITHUB_OUTPUT')
  })

  test('summary: one that cannot be written is a warning', async () => {
    await using emulator = await startQuickEmulator()
    const directory = path.join(scratch, 'summary')
    mkdirSync(directory)
    const step = await runOn(emulator, { environment: { GITHUB_STEP_SUMMARY: directory } })
    expect(step.exitCode).toBe(0)
    expect(commandsIn(step)).toContain('warning')
  })

  test('summary: one that is nearly full is left alone', async () => {
    await using emulator = await startQuickEmulator()
    const file = path.join(scratch, 'full.md')
    writeFileSync(file, 'x'.repeat(1_000_000))
    const step = await runOn(emulator, { environment: { GITHUB_STEP_SUMMARY: file } })
    expect(step.exitCode).toBe(0)
    expect(commandsIn(step)).toContain('warning')
  })
})

test('a proxy that keeps silent cannot keep the process', async () => {
  const connections = new Set<{ destroy(): void }>()
  const proxy = createTcpServer((socket) => connections.add(socket)).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const { port } = proxy.address() as AddressInfo
  try {
    const step = await runStep({
      action,
      inputs: {
        'api-key': 'mint_key_0123456789',
        'base-url': 'https://api.acme.test',
        domain: 'docs.example.com',
        'timeout-minutes': '0.01',
      },
      environment: { HTTPS_PROXY: `http://user:secret@127.0.0.1:${port}` },
    })
    expect(step.exitCode).toBe(1)
    expect(step.outputs.get('failureCode')).toBe('timeout')
    expect(visible(step)).toContain(`Proxy: 127.0.0.1:${port}`)
    expect(visible(step)).not.toContain('secret@')
  } finally {
    for (const connection of connections) connection.destroy()
    proxy.close()
  }
})

async function serve(
  listener: RequestListener,
): Promise<AsyncDisposable & { readonly url: string }> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}
