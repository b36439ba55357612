/** A real Kubernetes API on this machine, with a node and pods that kwok imitates. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { dump, load } from 'js-yaml'
import { tools } from '../tools/tools.ts'
import { connect, type ClusterClient, type KubernetesObject } from './cluster-client.ts'
import { startPart, type Part } from './lifetime.ts'
import { lastLines, run } from './program.ts'
import { freePorts, waitFor } from './ready.ts'

export interface Cluster extends Part {
  /** A file with the certificates inside, as people put it into a secret. */
  readonly kubeconfig: string
  readonly client: ClusterClient
}

interface Node extends KubernetesObject {
  readonly status: { readonly conditions: readonly { readonly type: string; status: string }[] }
}

/** Starts a cluster with one node, on free ports, apart from every other cluster of this machine. */
export function startCluster(): Promise<Cluster> {
  return startPart(async (scope) => {
    const folder = scope.folder('cluster')
    const kubeconfig = path.join(folder, 'kubeconfig')
    const configFile = path.join(folder, 'kwokctl.yaml')
    const environment = { HOME: folder, KWOK_WORKDIR: path.join(folder, 'kwok') }
    const kwokctl = (...args: readonly string[]) =>
      run(tools.kwokctl, ['--config', configFile, ...args], { environment })

    writeFileSync(configFile, dump(await configuration()))
    // The programs of the control plane stay when kwokctl has ended.
    scope.defer({
      run: [tools.kwokctl, 'delete', 'cluster', '--kubeconfig', kubeconfig],
      environment,
    })
    try {
      await kwokctl('create', 'cluster', '--kubeconfig', kubeconfig, '--wait', '30s')
      await kwokctl('scale', 'node', '--replicas', '1')
      embedCertificates(kubeconfig)
      const client = connect(kubeconfig)
      await waitForNode(client)
      return { kubeconfig, client }
    } catch (error) {
      const logs = path.join(environment.KWOK_WORKDIR, 'clusters/kwok/logs')
      throw new Error(`The cluster does not start.\n${endsOfLogs(logs)}`, { cause: error })
    }
  })
}

async function waitForNode(client: ClusterClient): Promise<void> {
  await waitFor({
    what: 'ready: a node, and the account that pods need',
    ask: async () => {
      await client.get('/api/v1/namespaces/default/serviceaccounts/default')
      const nodes = await client.list<Node>('/api/v1/nodes')
      const conditions = nodes.flatMap(({ status }) => status.conditions)
      return conditions.find(({ type, status }) => type === 'Ready' && status === 'True')
    },
  })
}

function endsOfLogs(folder: string): string {
  if (!existsSync(folder)) return ''
  return readdirSync(folder)
    .map((name) => `${name}:\n${lastLines(readFileSync(path.join(folder, name), 'utf8'), 5)}`)
    .join('\n')
}

async function configuration(): Promise<object> {
  return {
    apiVersion: 'config.kwok.x-k8s.io/v1alpha1',
    kind: 'KwokctlConfiguration',
    options: {
      runtime: 'binary',
      // Not on every interface: its store asks nobody for a password.
      bindAddress: '127.0.0.1',
      etcdBinary: tools.etcd,
      kubeApiserverBinary: tools.kubeApiserver,
      kubeControllerManagerBinary: tools.kubeControllerManager,
      kubeSchedulerBinary: tools.kubeScheduler,
      kwokControllerBinary: tools.kwok,
      // Its own choice is the same in every run, which fails when two start at once.
      ...(await freePorts(
        'etcdPort',
        'etcdPeerPort',
        'kubeApiserverPort',
        'kubeControllerManagerPort',
        'kubeSchedulerPort',
        'kwokControllerPort',
      )),
    },
    // A disk that is busy for seconds, as with a build beside the tests, must not end the cluster: its store need
    // not survive a power cut, and nobody else could take the lead when it answers late.
    componentsPatches: [
      withArgument('etcd', 'unsafe-no-fsync', 'true'),
      withArgument('kube-controller-manager', 'leader-elect', 'false'),
      withArgument('kube-scheduler', 'leader-elect', 'false'),
    ],
  }
}

function withArgument(component: string, key: string, value: string): object {
  return { name: component, extraArgs: [{ key, value }] }
}

type Entry = Record<string, string>

/** kwokctl writes paths of files, which a kubeconfig on another machine could not have. */
function embedCertificates(kubeconfigFile: string): void {
  const kubeconfig = load(readFileSync(kubeconfigFile, 'utf8')) as {
    readonly clusters: readonly { readonly cluster: Entry }[]
    readonly users: readonly { readonly user: Entry }[]
  }
  const entries = [
    ...kubeconfig.clusters.map(({ cluster }) => cluster),
    ...kubeconfig.users.map(({ user }) => user),
  ]
  for (const entry of entries) {
    for (const name of ['certificate-authority', 'client-certificate', 'client-key']) {
      const file = entry[name]
      if (file === undefined) continue
      entry[`${name}-data`] = readFileSync(file, 'base64')
      Reflect.deleteProperty(entry, name)
    }
  }
  writeFileSync(kubeconfigFile, dump(kubeconfig))
}
