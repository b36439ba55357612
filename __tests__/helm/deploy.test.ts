/** Golden transcripts of whole deployments: what a user sees, and what Helm is told. Read them when they change. */
import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { troubles } from '../support/fake-helm.ts'
import {
  type Deployment,
  type WholeDeployment,
  chartPassword,
  clusterToken,
  kubeconfig,
  wholeDeployment,
} from './whole-deployment.ts'

const minute = 60_000
const never = Infinity

const signed = (date: string, seconds: number) =>
  `https://storage.test/former.tar.gz?X-Amz-Date=${date}&X-Amz-Expires=${seconds}&X-Amz-Signature=${'f'.repeat(64)}`
/** Of three days ago, for a day. */
const expiredLink = signed('20261117T120000Z', 86_400)
const formerLink = signed('20261120T110000Z', 86_400)

const settings = {
  TITLE: 'Documentation',
  LANGUAGE: 'en',
  TIME_ZONE: 'Etc/UTC',
  THEME: 'auto',
  ACCENT: '#2f6f4f',
  CONTACT: 'docs@example.com',
  SEARCH: 'true',
  API_VERSION: '1.10',
}
const formerValues = {
  replicaCount: 3,
  settings,
  staticExport: { enabled: true, bundleUrl: formerLink, version: '2026.10' },
}
const chart = (version: string) => ({ name: 'docs', version })

const withChart = (workspace: string) => {
  fs.mkdirSync(path.join(workspace, 'chart'))
  fs.writeFileSync(
    path.join(workspace, 'chart/Chart.yaml'),
    'apiVersion: v2\nname: docs\nversion: 0.7.0\n',
  )
}

const succeeding: Record<string, Deployment> = {
  'a first install': { inputs: { 'chart-version': '1.3.0', version: '2026.11' } },
  'an upgrade that keeps chart and values, and drops a label that is old': {
    prepare: (fake) => fake.add({ values: formerValues }),
    check({ fake }) {
      const { staticExport, ...others } = fake.revisions()[1]?.values ?? {}
      expect(others).toEqual({ replicaCount: 3, settings })
      expect(staticExport).not.toHaveProperty('version')
    },
  },
  'values of the caller, a chart in the workspace and an export that still runs': {
    inputs: {
      chart: './chart',
      'chart-repository': '',
      'values-files': 'values/base.yaml\nvalues/eu, west.yaml',
      values: 'settings:\n  THEME: dark\nstaticExport:\n  bundleUrl: https://elsewhere.test/\n',
      'values-key': 'docs.staticExport',
    },
    emulator: { queueSeconds: 20, jobSeconds: 90 },
    furnish(workspace) {
      withChart(workspace)
      fs.mkdirSync(path.join(workspace, 'values'))
      fs.writeFileSync(path.join(workspace, 'values/base.yaml'), 'replicaCount: 2\n')
      fs.writeFileSync(path.join(workspace, 'values/eu, west.yaml'), 'replicaCount: 4\n')
    },
    prepare: (fake) => fake.add({ values: formerValues }),
  },
  'kept values under those of the caller, who labels the export himself': {
    inputs: {
      'existing-values': 'keep',
      values: 'replicaCount: 5\nstaticExport:\n  version: mine\n',
    },
    prepare: (fake) => fake.add({ values: formerValues }),
    check({ fake }) {
      expect(fake.revisions()[1]?.values).toMatchObject({
        replicaCount: 5,
        settings,
        staticExport: { version: 'mine' },
      })
    },
  },
  'a rollout that takes its time, a newer chart, and Helm 3': {
    major: 3,
    inputs: { 'chart-version': '^1' },
    prepare(fake) {
      fake.add({ chart: chart('1.0.0'), values: formerValues })
      fake.plan({ readyAfterMs: 3 * minute, formerPodsStay: false, trouble: troubles.imagePull })
    },
  },
  'a chart behind a password': {
    inputs: {
      'chart-repository': 'https://private.test',
      'chart-username': 'reader',
      'chart-password': chartPassword,
      'chart-version': '1.0.0',
    },
    check({ calls, runner }) {
      const login = calls.find(({ command }) => command === 'repo add')
      expect(login?.input).toBe(chartPassword)
      expect(runner.masks).toContain(chartPassword)
      for (const { command, environment } of calls.filter(({ command }) => command !== 'version')) {
        const files = ['HELM_REPOSITORY_CONFIG', 'HELM_REGISTRY_CONFIG', 'HELM_REPOSITORY_CACHE']
        for (const file of files) {
          expect([command, environment[file]]).toEqual([
            command,
            expect.stringMatching(/\/temporary\/static-export-\w+\/registry\//),
          ])
        }
      }
    },
  },
  'the warning that no template reads the link': {
    inputs: { 'chart-version': '1.3.0', 'values-key': 'docs.staticExport' },
    prepare: (fake) => {
      fake.plan({ linkIn: 'nothing' })
    },
    check: ({ runner }) => {
      expect(runner.lines).toContainEqual(
        expect.stringMatching(/^Warning: .*does it read docs\.staticExport\.bundleUrl\?/),
      )
    },
  },
  'a link that only a hook reads': {
    inputs: { 'chart-version': '1.3.0' },
    prepare: (fake) => {
      fake.plan({ linkIn: 'hooks' })
    },
    check: ({ runner }) => {
      expect(runner.lines.join('\n')).not.toMatch(/Warning/)
    },
  },
  'the warning that the link before has expired': {
    prepare: (fake) =>
      fake.add({ values: { staticExport: { enabled: true, bundleUrl: expiredLink } } }),
  },
}

/** Nothing was done, so that nothing of it took any time. */
function tookNoRollback({ fake, runner }: WholeDeployment): void {
  expect(fake.changes).toHaveLength(1)
  expect(runner.markdown).not.toMatch(/rollback \d/)
}

const failing: Record<string, [code: string, Deployment]> = {
  'a rollout that does not become ready': [
    'deploy-failed',
    {
      prepare(fake) {
        fake.add({ values: { staticExport: { enabled: true, bundleUrl: expiredLink } } })
        fake.plan({
          readyAfterMs: never,
          formerPodsStay: false,
          trouble: troubles.fetchRefused,
        })
        fake.planSetback({ afterMs: 4_000 })
        fake.events.push({
          type: 'Warning',
          kind: 'ReplicaSet',
          name: 'docs-new2',
          reason: 'FailedCreate',
          message: 'exceeded quota: pods',
          last: '2026-11-20T12:00:30Z',
        })
      },
    },
  ],
  'a first install that does not become ready': [
    'deploy-failed',
    {
      inputs: { 'chart-version': '1.0.0', 'helm-timeout-minutes': '1.5' },
      prepare(fake) {
        fake.plan({ readyAfterMs: never, trouble: troubles.imagePull })
      },
    },
  ],
  'a rollout that only Helm 3 believes in': [
    'deploy-failed',
    {
      major: 3,
      inputs: { 'helm-timeout-minutes': '1' },
      prepare(fake) {
        fake.add({ values: formerValues })
        fake.plan({
          replicas: 1,
          formerPodsStay: false,
          contentAfterMs: 2_300,
          readyAfterMs: never,
        })
      },
    },
  ],
  'a locked release': [
    'release-locked',
    {
      check({ runner, requests }) {
        expect(requests).toEqual([]) // nothing is minted for a release that cannot be deployed
        expect(runner.outputs.get('releaseRevision')).toBe('1')
        expect(runner.markdown).toContain('**revision 1, chart docs 1.0.0**')
      },
      prepare(fake) {
        fake.add({ values: formerValues })
        fake.add({ status: 'pending-upgrade' })
      },
    },
  ],
  'a link that is too short for the deployment': [
    'expired',
    {
      emulator: { linkSeconds: 660 },
      prepare: (fake) => fake.add({ values: formerValues }),
      check({ fake, requests }) {
        expect(fake.changes).toEqual([])
        expect(requests.filter(({ path }) => path.endsWith('/bundle'))).toHaveLength(2)
      },
    },
  ],
  'an export that failed': [
    'job-failed',
    {
      check({ fake, runner }) {
        expect(fake.changes).toEqual([])
        expect(runner.outputs.get('releaseRevision')).toBe('1')
      },
      prepare(fake, emulator) {
        fake.add({ values: formerValues })
        emulator.failNextJob({ error: 'guides/faq.md: broken link', afterPages: 4 })
      },
    },
  ],
  'a run that is cancelled in the middle': [
    'cancelled',
    {
      cancelAt: '0 of 2 ready',
      prepare(fake) {
        fake.add({ values: formerValues })
        fake.plan({ readyAfterMs: never, formerPodsStay: false })
      },
    },
  ],
  'another run that deploys right behind this one': [
    'deploy-failed',
    {
      prepare(fake) {
        fake.add({ values: formerValues })
        fake.onCall = ({ command }) => {
          const isAfterwards = fake.changes.length > 0 && command === 'history'
          if (!isAfterwards) return
          fake.onCall = undefined
          fake.add({ chart: chart('2.0.0') })
        }
      },
      check({ fake, runner }) {
        expect(fake.changes).toHaveLength(1)
        expect(runner.outputs.get('releaseRevision')).toBe('3')
        expect(runner.markdown).not.toContain('put back')
      },
    },
  ],
  'a run that is cancelled while the export runs': [
    'cancelled',
    {
      cancelAt: 'running · 50 %',
      prepare: (fake) => fake.add({ values: formerValues }),
      check({ fake, runner }) {
        expect(fake.changes).toEqual([])
        expect(runner.outputs.get('releaseRevision')).toBe('1')
      },
    },
  ],
  'a release of another chart': [
    'config',
    {
      prepare: (fake) => fake.add({ chart: { name: 'shop', version: '4.0.0' } }),
      check({ requests }) {
        expect(requests).toEqual([])
      },
    },
  ],
  'a cluster that is down': [
    'network',
    {
      check({ requests, runner }) {
        expect(requests).toEqual([])
        // Nobody knows what is live there.
        expect(runner.markdown).not.toMatch(/Live now\*\* \| nothing/)
      },
      prepare(fake) {
        fake.clusterError =
          'kubernetes cluster unreachable: Get "https://k8s.test/version": dial tcp 10.0.0.1:443: connect: connection refused'
      },
    },
  ],
  'a namespace that is missing': [
    'config',
    {
      inputs: { namespace: 'web', 'chart-version': '1.0.0' },
      check({ fake, requests }) {
        expect(fake.changes).toEqual([])
        expect(requests).toEqual([]) // it is said before the export is waited for
      },
    },
  ],
  'a chart that rejects the link': [
    'deploy-failed',
    {
      check: tookNoRollback,
      prepare(fake) {
        fake.add({ values: formerValues })
        fake.onCall = ({ command, input }) => {
          if (command !== 'upgrade') return
          const link = /bundleUrl: "([^"]*)"/.exec(input ?? '')?.[1] ?? ''
          fake.failNext(
            'upgrade',
            `Error: UPGRADE FAILED: values don't meet the specifications of the schema(s) in the following chart(s):\ndocs:\n- at '/staticExport/bundleUrl': '${link}' does not match pattern '^ftp://'\n`,
          )
        }
      },
    },
  ],
  'a site that does not show the new page': [
    'verify-failed',
    {
      inputs: { 'verify-url': 'http://127.0.0.1:9/', 'helm-timeout-minutes': '2' },
      prepare: (fake) => fake.add({ values: formerValues }),
    },
  ],
  'a first install without a version of the chart': ['config', {}],
  'wrong inputs': [
    'config',
    {
      inputs: {
        'job-id': '',
        release: 'Docs_',
        chart: './none',
        'chart-repository': '',
        kubeconfig: 'apiVersion: v1',
        'helm-timeout-minutes': '61',
        'values-files': '-',
        values: '- a list',
        'existing-values': 'drop',
        'mirror-prefix': 'docs',
      },
    },
  ],
}

function expectNoSecrets({ seen, calls, runner, leftovers }: WholeDeployment): void {
  const secrets = ['Signature=', 'mint_emulator', clusterToken, chartPassword, 'f'.repeat(64)]
  for (const secret of secrets) {
    expect(seen).not.toContain(secret)
    expect(calls.flatMap(({ args }) => args).join(' ')).not.toContain(secret)
  }
  expect([...runner.outputs.values()].join(' ')).not.toContain('http')
  for (const { environment, entries, command } of calls) {
    expect(Object.keys(environment).filter((name) => name.startsWith('INPUT_'))).toEqual([])
    expect(environment['HELM_DEBUG']).toBe('false')
    // Helm prefers a folder of the workspace to a chart of the same name in a repository.
    if (command !== 'version') expect(entries).toEqual([])
  }
  expect(leftovers).toEqual([])
}

describe('succeeds with', () => {
  test.each(Object.entries(succeeding))('%s', async (_name, scenario) => {
    const run = await wholeDeployment(scenario)
    scenario.check?.(run)
    expect(run.transcript).toMatchSnapshot()
    expect(run.exitCode).toBe(0)
    expect(run.runner.outputs.get('failureCode')).toBe('')
    const [deployed, ...others] = run.fake.revisions().filter(({ status }) => status === 'deployed')
    expect(others).toEqual([])
    expect(run.runner.outputs.get('releaseRevision')).toBe(String(deployed?.revision))
    expect(JSON.stringify(deployed?.values)).toMatch(/"bundleUrl":"http[^"]*X-Amz-Signature=/)
    expectNoSecrets(run)
  })
})

describe('fails for', () => {
  test.each(Object.entries(failing))('%s', async (_name, [code, scenario]) => {
    const run = await wholeDeployment(scenario)
    scenario.check?.(run)
    expect(run.transcript).toMatchSnapshot()
    expect(run.exitCode).toBe(1)
    expect(run.runner.outputs.get('failureCode')).toBe(code)
    expect(run.runner.lines.filter((line) => line.startsWith('Error: '))).toHaveLength(1)
    expectNoSecrets(run)
  })
})

test('a cancelled run that comes to no end says where to look', async () => {
  const { runner } = await wholeDeployment({
    prepare: (fake) => fake.add({ values: formerValues }),
    isOverAt: 'Helm upgrade: revision 2',
  })
  const error = runner.lines.find((line) => line.startsWith('Error: ')) ?? ''
  expect(error).toContain(
    'Cancelled by SIGINT. What it left is not known. Look at `helm history docs -n default`; `helm rollback docs 1 -n default --wait` goes back.',
  )
  expect(runner.outputs.get('releaseRevision')).toBe('')
  expect(runner.markdown).toContain('| **Live now** | not known |')
})

test('variables that would win over a given kubeconfig are left out, and named', async () => {
  const environment = {
    HELM_KUBEAPISERVER: 'https://other.test',
    HELM_KUBETOKEN: 'token-0123456789',
  }
  const { runner, calls, seen } = await wholeDeployment({
    environment,
    prepare: (fake) => fake.add({ values: formerValues }),
  })
  expect(runner.lines).toContain(
    'Not used, since `kubeconfig` is given: HELM_KUBEAPISERVER, HELM_KUBETOKEN',
  )
  expect(seen).not.toContain('token-0123456789')
  expect(runner.masks).toContain('token-0123456789')
  const names = calls.flatMap((call) => Object.keys(call.environment))
  expect(names.filter((name) => name.startsWith('HELM_KUBE'))).toEqual([])
})

test.each([
  ['of the kubeconfig input', 'eks', {}, {}],
  ['that is asked for', 'other', { 'kube-context': 'other' }, {}],
  ['of a file of the machine', 'eks', { kubeconfig: '' }, { KUBECONFIG: 'logged-in' }],
  [
    'that a variable asks for',
    'other',
    { kubeconfig: '' },
    { KUBECONFIG: 'logged-in', HELM_KUBECONTEXT: 'other' },
  ],
])('the log names the context %s', async (_which, context, inputs, environment) => {
  const more = kubeconfig.replace('users:', '  - name: other\n    context: {cluster: eks}\nusers:')
  const { runner, exitCode } = await wholeDeployment({
    inputs: { kubeconfig: more, ...inputs },
    environment,
    furnish: (workspace) => {
      fs.writeFileSync(path.join(workspace, 'logged-in'), more)
    },
    prepare: (fake) => fake.add({ values: formerValues }),
  })
  const where =
    'KUBECONFIG' in environment ? 'kubeconfig of this machine (1 file)' : 'kubeconfig input'
  expect(runner.lines).toContain(`Cluster: context "${context}" of the ${where}`)
  expect(exitCode).toBe(0)
})

test('the link of the revision before, which may still work, is hidden as well', async () => {
  const message = `curl: (22) ${formerLink}: 500`
  const { seen } = await wholeDeployment({
    inputs: { 'helm-timeout-minutes': '1' },
    prepare(fake) {
      fake.add({ values: formerValues })
      fake.plan({
        readyAfterMs: never,
        formerPodsStay: false,
        trouble: {
          containerStatuses: [
            { name: 'web', ready: false, state: { waiting: { reason: 'Error', message } } },
          ],
        },
      })
    },
  })
  expect(seen).toContain('curl: (22)')
  expect(seen).not.toContain('f'.repeat(64))
})
