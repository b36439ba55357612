/** What the tests of deployments share: a cluster, and in it a place for each test. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { dump } from 'js-yaml'
import { type Emulator, type EmulatorOptions, startEmulator } from '../../emulator/index.ts'
import { sampleProcesses, type Sampling } from '../act/processes.ts'
import { runWorkflow, type WorkflowOptions, type WorkflowResult } from '../act/run-workflow.ts'
import { startCluster, type Cluster } from '../parts/cluster.ts'
import { run, startProgram, type Program } from '../parts/program.ts'
import { waitFor } from '../parts/ready.ts'
import { requireTools, tools } from '../tools/tools.ts'
import { expectNoSecrets, secretsOf } from './secrets.ts'

export interface HelmProgram {
  readonly major: 3 | 4
  readonly program: string
}

/** Declares a test; its name gets the Helm at its end. */
type Declare = (name: string, run: () => Promise<void>) => void

/** Declares tests for both Helms. Their names end in `(Helm 3)` and `(Helm 4)`, which `main.ts` reads. */
export function forEachHelm(
  declare: (helm: HelmProgram, suffix: string, scenario: Declare) => void,
): void {
  for (const [major, program] of [
    [3, tools.helm3],
    [4, tools.helm4],
  ] as const) {
    const suffix = `(Helm ${major})`
    declare({ major, program }, suffix, (name, run) => void test(`${name} ${suffix}`, run))
  }
}

/** The chart of the caller. */
export const chart = path.join(import.meta.dirname, '../chart')

/** Values with which no pod is ever scheduled, since no node has this label. */
export const nowhere = { nodeSelector: { pool: 'none' } } as const

/** A workflow of the caller with one step, `Deploy`, for an export that is there: `inputs` are those of the action. */
export const oneStep = 'one-step.yml'

export type Values = Readonly<Record<string, unknown>>

/** What all tests of a file share. */
export interface Stage {
  readonly cluster: Cluster
  /** As people put it into a secret. */
  readonly kubeconfig: string
  /** Makes a place for one test, with an Admin API of its own. */
  scene(helm: HelmProgram, options?: EmulatorOptions): Promise<Scene>
  close(): Promise<void>
}

/** Starts a cluster, and a watch over all processes. */
export async function startStage(): Promise<Stage> {
  requireTools()
  const cluster = await startCluster()
  const kubeconfig = readFileSync(cluster.kubeconfig, 'utf8')
  const sampling = sampleProcesses(secretsOf(kubeconfig), 25)
  let count = 0
  return {
    cluster,
    kubeconfig,
    async scene(helm, options) {
      const emulator = await startEmulator({ queueSeconds: 0, jobSeconds: 0, ...options })
      const namespace = `test-${(count += 1)}`
      await cluster.client.create('/api/v1/namespaces', { metadata: { name: namespace } })
      return new Scene({ emulator, namespace, cluster, kubeconfig, helm, sampling })
    },
    async close() {
      sampling.stop()
      await cluster.close()
    },
  }
}

interface Properties {
  readonly emulator: Emulator
  readonly namespace: string
  readonly cluster: Cluster
  readonly kubeconfig: string
  readonly helm: HelmProgram
  readonly sampling: Sampling
}

export interface DeployOptions extends Partial<WorkflowOptions> {
  /** Secrets of a test, beyond those that every run has. */
  readonly hidden?: readonly string[]
}

interface Deployment {
  readonly metadata: { readonly generation: number }
  readonly spec: {
    readonly replicas: number
    readonly template: {
      readonly metadata: { readonly annotations: Readonly<Record<string, string>> }
      readonly spec: {
        readonly nodeSelector?: object
        readonly initContainers?: readonly { readonly env: readonly Variable[] }[]
      }
    }
  }
  readonly status: {
    readonly observedGeneration?: number
    readonly replicas?: number
    readonly updatedReplicas?: number
    readonly readyReplicas?: number
  }
}

interface Variable {
  readonly name: string
  readonly valueFrom?: { readonly secretKeyRef: { readonly name: string; readonly key: string } }
}

export interface Former {
  readonly jobId: string
  readonly values: Values
}

/** A namespace in which one Helm deploys the release `docs`. */
export class Scene implements AsyncDisposable {
  readonly emulator: Emulator
  readonly namespace: string
  readonly cluster: Cluster
  readonly kubeconfig: string
  readonly program: string
  readonly #sampling: Sampling
  readonly #environment: NodeJS.ProcessEnv

  constructor({ emulator, namespace, cluster, kubeconfig, helm, sampling }: Properties) {
    this.emulator = emulator
    this.namespace = namespace
    this.cluster = cluster
    this.kubeconfig = kubeconfig
    this.program = helm.program
    this.#sampling = sampling
    // Beside the kubeconfig, and so removed with it.
    this.#environment = {
      HOME: path.dirname(cluster.kubeconfig),
      KUBECONFIG: cluster.kubeconfig,
      HELM_NAMESPACE: namespace,
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.emulator.close()
  }

  /**
   * Runs the reusable workflow, or another one; what it needs is there, and inputs, secrets and variables are added
   * to that. Rejects when a secret was shown or left behind. The log is what was printed, without masks.
   */
  async deploy(options: DeployOptions = {}): Promise<WorkflowResult> {
    const { hidden = [], ...others } = options
    const isOneStep = options.workflow === oneStep
    const inputs = {
      namespace: this.namespace,
      'helm-timeout-minutes': '0.2',
      ...options.inputs,
    }
    const result = await runWorkflow({
      workflow: 'deploy.yml',
      unmasked: true,
      helm: this.program,
      ...others,
      inputs: isOneStep ? {} : inputs,
      files: { ...(isOneStep ? oneStepWorkflow(inputs) : {}), ...options.files },
      variables: { ADMIN_API_URL: this.emulator.apiUrl, ...options.variables },
      secrets: {
        ADMIN_API_KEY: this.emulator.keys.good,
        KUBECONFIG: this.kubeconfig,
        ...options.secrets,
      },
    })
    expectNoSecrets(result, [...secretsOf(this.kubeconfig), ...hidden])
    const exposed = 'A process had a secret as an argument.'
    assert.deepEqual(this.#sampling.exposures, [], exposed)
    return result
  }

  /** Runs Helm by hand. */
  helm(...args: readonly string[]): Promise<string> {
    return run(this.program, args, { environment: this.#environment })
  }

  /** Runs it by hand, without waiting for its end. */
  startHelm(...args: readonly string[]): Program {
    return startProgram(this.program, args, this.#environment)
  }

  /** Installs or upgrades the release by hand, with the chart of the caller. */
  async install(values: Values, ...more: readonly string[]): Promise<void> {
    await this.helm(...this.installArguments(values), ...more)
  }

  installArguments(values: Values): string[] {
    const given = Object.entries(values).map(([name, value]) => `${name}=${JSON.stringify(value)}`)
    return [
      ...['upgrade', '--install', 'docs', chart, '--wait', '--timeout', '60s'],
      ...given.flatMap((one) => ['--set-json', one]),
    ]
  }

  /** Does what the error of a locked release says, word for word. */
  async followAdvice(errors: readonly string[]): Promise<void> {
    const [error = '', ...more] = errors
    assert.deepEqual(more, [])
    assert.match(error, /only if no other run is deploying/i)
    const [, command = ''] = /`helm ([^`]+)`/.exec(error) ?? []
    await this.helm(...command.split(' '))
  }

  /** All revisions of the release, the oldest first, as `1 deployed`; none when it is not installed. */
  async history(): Promise<readonly string[]> {
    // Unlike "helm history" this asks no Helm, and so takes no time.
    const labels = 'owner%3Dhelm%2Cname%3Ddocs'
    const path = `${this.at('secrets')}?labelSelector=${labels}`
    const secrets = await this.cluster.client.list(path)
    return secrets
      .map(({ metadata: { labels } }) => `${labels?.['version'] ?? ''} ${labels?.['status'] ?? ''}`)
      .sort((a, b) => parseInt(a) - parseInt(b))
  }

  /** What the newest revision was given as values, or another one. */
  async values(revision = 0): Promise<Values> {
    const args = ['get', 'values', 'docs', '--revision', String(revision), '--output', 'json']
    return JSON.parse(await this.helm(...args)) as Values
  }

  /** The path of an object of the namespace: `at('secrets/docs-bundle')`, `at('deployments/docs', 'apps/v1')`. */
  at(object: string, group?: string): string {
    const root = group === undefined ? '/api/v1' : `/apis/${group}`
    return `${root}/namespaces/${this.namespace}/${object}`
  }

  deployment(): Promise<Deployment> {
    return this.cluster.client.get(this.at('deployments/docs', 'apps/v1'))
  }

  /** Waits until every pod is ready and as the Deployment wants it now. */
  ready(): Promise<Deployment> {
    return waitFor({
      what: `ready: the Deployment in ${this.namespace}`,
      ask: async () => {
        const deployment = await this.deployment()
        const { metadata, spec, status } = deployment
        const { replicas, updatedReplicas, readyReplicas } = status
        const isCurrent = status.observedGeneration === metadata.generation
        const all = [replicas, updatedReplicas, readyReplicas]
        return isCurrent && all.every((count) => count === spec.replicas) ? deployment : undefined
      },
    })
  }

  /** The link that new pods get: from the Secret which their container names. */
  async link(): Promise<string> {
    const { initContainers = [] } = (await this.deployment()).spec.template.spec
    const variables = initContainers.flatMap(({ env }) => env)
    const secret = variables.find(({ name }) => name === 'BUNDLE_URL')?.valueFrom?.secretKeyRef
    assert.ok(secret, 'The pods get no link.')
    const path = this.at(`secrets/${secret.name}`)
    const { data } = await this.cluster.client.get<{ data: Record<string, string> }>(path)
    return Buffer.from(data[secret.key] ?? '', 'base64').toString()
  }

  /** Downloads what the link of ready pods leads to, and compares it with the export, byte for byte. */
  async expectServed(jobId: string): Promise<void> {
    await this.ready()
    const link = await this.link()
    assert.ok(new URL(link).pathname.includes(jobId), 'The link is that of another export.')
    const served = await download(link)
    assert.ok(served.equals(await this.archiveOf(jobId)), 'The link leads to another archive.')
  }

  /** Starts an export, and gives its id. */
  async startExport(): Promise<string> {
    const body = { domain: this.emulator.domains[0] }
    return (await this.#ask<{ jobId: string }>('jobs', body)).jobId
  }

  /** The archive of an export, by a link of its own. */
  async archiveOf(jobId: string): Promise<Buffer> {
    return download(await this.#mintLink(jobId))
  }

  async #mintLink(jobId: string): Promise<string> {
    return (await this.#ask<{ bundleUrl: string }>(`jobs/${jobId}/bundle`, {})).bundleUrl
  }

  /** Installs the release by hand with an export of its own: what is deployed before the run that a test is about. */
  async installFormer(): Promise<Former> {
    const jobId = await this.startExport()
    const bundleUrl = await this.#mintLink(jobId)
    const values = { staticExport: { enabled: true, bundleUrl }, settings: { TITLE: 'Former' } }
    // A link is no argument; the folder is removed with the cluster.
    const file = path.join(path.dirname(this.cluster.kubeconfig), `${this.namespace}.json`)
    writeFileSync(file, JSON.stringify(values), { mode: 0o600 })
    await this.install({}, '--values', file)
    return { jobId, values }
  }

  /** The release is as it was installed before, its pods run, and its link leads to its export. */
  async expectFormer({ jobId, values }: Former): Promise<void> {
    assert.deepEqual(await this.values(), values)
    assert.equal((await this.ready()).spec.template.spec.nodeSelector, undefined)
    await this.expectServed(jobId)
  }

  /** How often the Admin API was asked for something. */
  count(operation: 'start' | 'status' | 'bundle'): number {
    return this.emulator.requests.filter((request) => request.operation === operation).length
  }

  async #ask<Answer>(endpoint: string, body: object): Promise<Answer> {
    const response = await fetch(`${this.emulator.apiUrl}/v1/static-export/${endpoint}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${this.emulator.keys.good}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify(body),
    })
    assert.ok(response.ok, `HTTP ${response.status}`)
    return (await response.json()) as Answer
  }
}

async function download(link: string): Promise<Buffer> {
  const response = await fetch(link)
  assert.equal(response.status, 200)
  return Buffer.from(await response.arrayBuffer())
}

function oneStepWorkflow(inputs: Readonly<Record<string, string>>): Record<string, string> {
  const checkout = 'actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1'
  const given = {
    'api-key': '${{ secrets.ADMIN_API_KEY }}',
    'base-url': '${{ vars.ADMIN_API_URL }}',
    kubeconfig: '${{ secrets.KUBECONFIG }}',
    release: 'docs',
    chart: './chart',
    ...inputs,
  }
  const steps = [
    { uses: checkout },
    { name: 'Deploy', uses: 'OWNER/static-export-action/helm@v1', with: given },
  ]
  const jobs = { docs: { 'runs-on': 'ubuntu-24.04', steps } }
  return { [`.github/workflows/${oneStep}`]: dump({ on: 'workflow_dispatch', jobs }) }
}
