/** Golden transcripts: what a user sees of a run, and what the service sees of it. Read them when they change. */
import { describe, expect, test } from '@jest/globals'
import type { Emulator } from '../emulator/index.ts'
import { sampleSite } from '../emulator/options.ts'
import { type Scenario, type WholeRun, wholeRun } from './support/whole-run.ts'

const firstJob = async (emulator: Emulator): Promise<string> => {
  const reply = await fetch(`${emulator.apiUrl}/v1/static-export/jobs`, {
    method: 'POST',
    headers: { authorization: `Bearer ${emulator.keys.good}`, 'content-type': 'application/json' },
    body: JSON.stringify({ domain: 'docs.example.com' }),
  })
  return ((await reply.json()) as { jobId: string }).jobId
}

const agent = (id: string, wait = 'false') => ({
  'agent-project-id': 'docs-project',
  'agent-job-id': id,
  'wait-for-agent': wait,
})

const succeeding: Record<string, Scenario> = {
  'a version and some paths': {
    inputs: { version: '2026.11', paths: '/guides/start\n\n /guides/install \n/guides/start' },
  },
  'half an hour': {
    emulator: {
      siteDirectory: sampleSite,
      jobSeconds: 1800,
      queueSeconds: 90,
      curve: 'slow-end',
    },
    inputs: { 'timeout-minutes': '45' },
  },
  'a long stall': { emulator: { jobSeconds: 1200, curve: 'stall' } },
  'a status that nobody knows': { emulator: { jobSeconds: 30, report: 'unknown-status' } },
  'a service that tells no numbers': { emulator: { jobSeconds: 150, report: 'bare' } },
  'attached to a finished job': {
    prepare: async (emulator) => {
      const jobId = await firstJob(emulator)
      emulator.advanceClock(600)
      return { 'job-id': jobId, domain: '' }
    },
  },
  'an unsteady service': {
    emulator: {
      faults: [
        { operation: 'start', kind: 'reply', status: 429, body: 'error', retryAfter: 7 },
        { operation: 'status', kind: 'reply', status: 503, body: 'html', times: 2 },
        { operation: 'status', kind: 'fin', afterBytes: 20, skip: 3 },
        { operation: 'bundle', kind: 'reset', processed: true },
      ],
    },
  },
  'a start whose answer was lost': {
    emulator: { faults: [{ operation: 'start', kind: 'reset', processed: true }] },
  },
  'an agent job with a pull request': {
    inputs: agent('agent-completed'),
    pullRequest: { title: 'Fix the *links* | <img>', state: 'merged' },
  },
  'an agent job to wait for': {
    inputs: agent('agent-finishing', 'true'),
    emulator: { agentSeconds: 50, jobSeconds: 5 },
  },
  'an agent job that is still active': { inputs: agent('agent-active') },
  'an agent job that does not exist': { inputs: agent('agent-nowhere', 'true') },
  'all three targets on the disk': {
    inputs: {
      'bundle-file': 'out/site.tar.gz',
      'site-directory': 'out/site',
      'values-file': 'out/values.yaml',
      version: '1.10',
    },
  },
  'a download that is cut, and a link that is refused once': {
    emulator: {
      faults: [
        { operation: 'download', kind: 'reset', afterBytes: 900 },
        { operation: 'download', kind: 'reply', status: 403, body: 'xml' },
      ],
    },
    inputs: { 'bundle-file': 'site.tar.gz' },
  },
  'values for a mirrored archive': {
    inputs: {
      'values-file': 'values.yaml',
      'values-key': 'docs.staticExport',
      'values-bundle-url': 'https://mirror.acme.test/{sha256}.tar.gz',
    },
  },
  'a masked link': { inputs: { 'mask-bundle-url': 'true' } },
}

const failing: Record<string, [code: string, Scenario]> = {
  'wrong inputs': [
    'config',
    {
      inputs: {
        'api-key': 'Bearer mint_secret_0123456789',
        'base-url': 'http://api.acme.dev/v1?key=1',
        domain: 'https://docs.acme.dev/guides',
        'job-id': '../etc',
        paths: '/guides/start',
        'timeout-minutes': '10m',
        summary: 'yes',
        'agent-job-id': 'job_1',
      },
    },
  ],
  'a key that is not known': ['auth', { inputs: { 'api-key': 'mint_unknown_0123456789' } }],
  'a wrong key for a job that nobody has seen': [
    'auth',
    { inputs: { 'api-key': 'mint_unknown_0123456789', 'job-id': 'se_1' } },
  ],
  'a key without the scope': [
    'forbidden',
    { prepare: ({ keys }) => ({ 'api-key': keys.readOnly }) },
  ],
  'a domain that is not served': ['bad-request', { inputs: { domain: 'docs.acme.dev' } }],
  'a job that does not exist': ['not-found', { inputs: { 'job-id': 'se_unknown' } }],
  'an export that fails': [
    'job-failed',
    {
      prepare(emulator) {
        emulator.failNextJob({
          error: 'guides/faq.md: <b>broken</b>\n::error::link',
          afterPages: 4,
        })
        return undefined
      },
    },
  ],
  'a wait that is too short': [
    'timeout',
    { emulator: { jobSeconds: 600 }, inputs: { 'timeout-minutes': '3' } },
  ],
  'another export that runs': [
    'conflict',
    {
      emulator: { oneExportPerSite: true, jobSeconds: 600 },
      prepare: async (emulator) => {
        await firstJob(emulator)
        return {}
      },
    },
  ],
  'a start whose answer was lost where only one may run': [
    'conflict',
    {
      emulator: {
        oneExportPerSite: true,
        faults: [{ operation: 'start', kind: 'reset', processed: true }],
      },
    },
  ],
  'too many starts': [
    'rate-limited',
    {
      emulator: { startsPerHour: 1 },
      prepare: async (emulator) => {
        await firstJob(emulator)
        return {}
      },
    },
  ],
  'a service that is down for good': [
    'server',
    {
      emulator: {
        faults: [
          { operation: 'status', kind: 'reply', status: 502, body: 'html', times: 'always' },
        ],
      },
    },
  ],
  'nobody there': ['network', { inputs: { 'base-url': 'http://127.0.0.1:9' } }],
  'a login page for an answer': [
    'protocol',
    {
      emulator: {
        faults: [{ operation: 'start', kind: 'reply', status: 200, body: 'html', times: 'always' }],
      },
    },
  ],
  'a redirect to elsewhere': [
    'protocol',
    {
      emulator: {
        faults: [{ operation: 'bundle', kind: 'redirect', location: 'https://elsewhere.test/?a' }],
      },
    },
  ],
  'a link that is dead on arrival': [
    'expired',
    {
      emulator: {
        faults: [
          {
            operation: 'bundle',
            kind: 'reply',
            status: 200,
            contentType: 'application/json',
            text: '{"bundleUrl":"http://127.0.0.1:9/a?X-Amz-Signature=s","expiresAt":"2026-11-20T11:59:59Z"}',
            times: 'always',
          },
        ],
      },
    },
  ],
  'an archive that is an HTML page': [
    'integrity',
    {
      emulator: {
        faults: [
          { operation: 'download', kind: 'reply', status: 200, body: 'html', times: 'always' },
        ],
      },
      inputs: { 'bundle-file': 'site.tar.gz' },
    },
  ],
  'an archive with a broken byte': [
    'integrity',
    {
      emulator: { faults: [{ operation: 'download', kind: 'corrupt' }] },
      inputs: { 'bundle-file': 'site.tar.gz' },
    },
  ],
  'a link that storage refuses for good': [
    'forbidden',
    {
      emulator: {
        faults: [
          { operation: 'download', kind: 'reply', status: 403, body: 'xml', times: 'always' },
        ],
      },
      inputs: { 'site-directory': 'site' },
    },
  ],
  'targets that cannot be': [
    'config',
    {
      inputs: {
        'bundle-file': 'out/site/a.tar.gz',
        'site-directory': 'out/site',
        'values-file': '.',
        'values-key': 'a..b',
        'values-bundle-url': 'mirror/{sha256}',
      },
    },
  ],
  'a run that is cancelled': ['cancelled', { cancelAt: 'running · 20 %' }],
  'an outputs file that is full': ['environment', { unwritableOutput: 'expiresAt' }],
}

describe('succeeds with', () => {
  test.each(Object.entries(succeeding))('%s', async (_name, scenario) => {
    const run = await wholeRun(scenario)
    expect(run.transcript).toMatchSnapshot()
    expect(run.exitCode).toBe(0)
    const { outputs } = run.runner
    expect(outputs.get('bundleUrl')).toContain('X-Amz-Signature=')
    expect(outputs.get('expiresAt')).not.toBe('')
    expect(outputs.get('failureCode')).toBe('')
    expect(seen(run)).not.toContain('X-Amz-')
  })
})

describe('fails for', () => {
  test.each(Object.entries(failing))('%s', async (_name, [code, scenario]) => {
    const run = await wholeRun(scenario)
    expect(run.transcript).toMatchSnapshot()
    expect(run.exitCode).toBe(1)
    expect(run.runner.outputs.get('failureCode')).toBe(code)
    expect(run.runner.lines.filter((line) => line.startsWith('Error: '))).toHaveLength(1)
    expect(seen(run)).not.toContain('X-Amz-')
    expect(seen(run)).not.toContain('0123456789')
  })
})

/** What everybody who may see the run can read: neither outputs nor masks. */
function seen({ runner }: WholeRun): string {
  return [...runner.lines, runner.markdown].join('\n')
}
