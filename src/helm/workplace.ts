/** Where Helm works: a private directory with what it may read, an environment without our inputs, a login. */
import path from 'node:path'
import { type Disk, removeQuietly, writePrivateFile } from '../disk.ts'
import type { Log } from '../log.ts'
import type { Environment } from '../runner.ts'
import { clean, shortestSecretLength } from '../text.ts'
import { count } from '../units.ts'
import {
  type ChartCredentials,
  type ChartReference,
  loginCommand,
  privateHelmEnvironment,
} from './chart.ts'
import { explainChart } from './explain.ts'
import { type Helm, createHelm } from './helm.ts'
import type { Redactor } from './redactor.ts'
import type { HelmInputs } from './inputs.ts'
import { type FindHelmDependencies, type InstalledHelm, findHelm } from './installation.ts'
import { ambientCluster } from './kubeconfig.ts'
import type { RunCommand } from './process.ts'

export interface WorkplaceDependencies extends Omit<
  FindHelmDependencies,
  'environment' | 'timeoutMs'
> {
  readonly environment: Environment
  readonly homeDirectory: string
  /** Where relative paths begin. */
  readonly workspace: string
  readonly disk: Disk
  readonly log: Log
  readonly runCommand: RunCommand
  readonly redactor: Redactor
  /** Makes the runner hide a value from now on. */
  readonly mask: (secret: string) => void
}

export interface Workplace {
  readonly helm: Helm
  readonly installed: InstalledHelm
  /** The chart as Helm knows it after a login. */
  readonly chart: ChartReference
  /** The context of the kubeconfig that is used, fit for a log; undefined when there is no kubeconfig. */
  readonly contextName: string | undefined
  /** The caller's, absolute, in order. */
  readonly valuesFiles: readonly string[]
  /** Only its owner can enter it; removed by `close`, and at the end of the process. */
  readonly directory: string
  close(): void
}

/** What Helm itself reads of the environment and may quote. */
const secretVariables = ['HELM_KUBETOKEN', 'HELM_DRIVER_SQL_CONNECTION_STRING']

const loginMs = 45_000

/**
 * Prepares everything that Helm needs, so that what is wrong with it is told before anything is asked of the
 * service or the cluster.
 *
 * @throws Failure, see errors.ts
 */
export async function prepareWorkplace(
  inputs: HelmInputs,
  dependencies: WorkplaceDependencies,
): Promise<Workplace> {
  const { disk, log, redactor, signal } = dependencies
  const directory = disk.makePrivateDirectory(dependencies.temporaryDirectory)
  const close = () => {
    removeQuietly(directory, disk, log) // the end of the process tries once more
  }
  try {
    hide(secretVariables.map((name) => dependencies.environment[name] ?? ''))
    const { contextName, variables } = await cluster()
    const environment = { ...environmentOfHelm(dependencies.environment), ...variables }
    const installed = await findHelm(inputs.helmVersion, {
      ...dependencies,
      environment,
      timeoutMs: inputs.timeoutMs,
    })
    log.info(`Helm ${installed.version}`)

    const { chart, chartCredentials } = inputs
    const login = chartCredentials && loginCommand(chart, chartCredentials, installed.major)
    const files = login ? privateHelmEnvironment(makeDirectory('registry'), disk) : {}
    const helm = createHelm({
      run: dependencies.runCommand,
      file: installed.file,
      major: installed.major,
      environment: { ...environment, ...files },
      directory: makeDirectory('empty'),
      release: inputs.release,
      namespace: inputs.namespace,
      kubeContext: inputs.kubeContext,
      redactor,
    })
    if (chartCredentials) hide(secretsOf(chartCredentials))
    if (login) await helm.login(login, { signal, maxMs: loginMs }).catch(explainChart)
    return {
      helm,
      installed,
      chart: login?.chart ?? chart,
      contextName,
      valuesFiles: [...inputs.callerValues.files, ...valuesOfText()],
      directory,
      close,
    }
  } catch (error) {
    close()
    throw error
  }

  /** The variables that lead to the cluster, and the context that they lead to. */
  async function cluster(): Promise<{
    readonly contextName: string | undefined
    readonly variables: Record<string, string>
  }> {
    if (inputs.kubeconfig) {
      const { text, context, secrets } = inputs.kubeconfig
      hide(secrets)
      const contextName = tellContext(context, 'the kubeconfig input')
      tellUnused(Object.keys(dependencies.environment).filter(leadsToCluster))
      return { contextName, variables: { KUBECONFIG: write('kubeconfig', text) } }
    }
    const { environment, homeDirectory: home, workspace } = dependencies
    const found = await ambientCluster(environment, inputs.kubeContext, { disk, workspace, home })
    switch (found.kind) {
      case 'pod':
        log.info("Cluster: the runner's own")
        return { contextName: undefined, variables: {} }
      case 'variables':
        log.info('Cluster: by the HELM_KUBE variables of this machine')
        return { contextName: undefined, variables: {} }
      case 'files': {
        hide(found.secrets)
        const files = count(found.files.length, 'file')
        const contextName = tellContext(found.context, `the kubeconfig of this machine (${files})`)
        // Absolute, since Helm works in a directory of its own.
        return { contextName, variables: { KUBECONFIG: found.files.join(path.delimiter) } }
      }
    }
  }

  /** A deployment to the wrong cluster goes well: its name must be in sight. Returns it as it was told. */
  function tellContext(context: string, where: string): string {
    const name = redactor.toLine(context, 200)
    log.info(`Cluster: context "${name}" of ${where}`)
    return name
  }

  function tellUnused(variables: readonly string[]): void {
    if (variables.length === 0) return
    log.info(`Not used, since \`kubeconfig\` is given: ${clean(variables.join(', '), 300)}`)
  }

  /**
   * Everything but the inputs of this step, among them the key; no debugging, which prints values; and nothing that
   * leads past a given kubeconfig.
   */
  function environmentOfHelm(environment: Environment): Record<string, string> {
    const kept = Object.entries(environment).flatMap(([name, value]) => {
      const isDropped =
        /^INPUT_/i.test(name) || (inputs.kubeconfig !== undefined && leadsToCluster(name))
      return value === undefined || isDropped ? [] : [[name, value] as const]
    })
    return { ...Object.fromEntries(kept), HELM_DEBUG: 'false' }
  }

  function hide(secrets: readonly string[]): void {
    for (const secret of secrets.filter(({ length }) => length >= shortestSecretLength)) {
      dependencies.mask(secret)
      redactor.add(secret)
    }
  }

  function valuesOfText(): string[] {
    const { text } = inputs.callerValues
    return text === undefined ? [] : [write('values.yaml', text)]
  }

  function write(name: string, text: string): string {
    const target = path.join(directory, name)
    writePrivateFile(target, text, disk)
    return target
  }

  function makeDirectory(name: string): string {
    const target = path.join(directory, name)
    disk.makeDirectory(target)
    return target
  }
}

/** `HELM_KUBEAPISERVER` and its kin win over a kubeconfig. */
function leadsToCluster(variable: string): boolean {
  return /^HELM_KUBE/i.test(variable)
}

/** The password, also as Helm sends it and keeps it (RFC 7617). */
function secretsOf({ username, password }: ChartCredentials): string[] {
  return [password, Buffer.from(`${username}:${password}`).toString('base64')]
}
