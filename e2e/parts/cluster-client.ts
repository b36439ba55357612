/** A client for the API of a cluster, for what tests must see or change without Helm and without kubectl. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { text } from 'node:stream/consumers'
import { load } from 'js-yaml'

/** What every object of Kubernetes has; a test says what else it expects. */
export interface KubernetesObject {
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly labels?: Readonly<Record<string, string>>
  }
}

/** Paths are those of the API, such as `/apis/apps/v1/namespaces/default/deployments/docs`. */
export interface ClusterClient {
  get<T = KubernetesObject>(path: string): Promise<T>
  /** The items of a list. */
  list<T = KubernetesObject>(path: string): Promise<readonly T[]>
  create<T = KubernetesObject>(path: string, body: object): Promise<T>
  /** A merge patch unless another type is given. A path that ends in `/status` patches the status. */
  patch<T = KubernetesObject>(path: string, body: object, contentType?: string): Promise<T>
  delete(path: string): Promise<void>
}

/** An answer of the API that is not a success. */
export class ClusterError extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

interface Kubeconfig {
  readonly clusters: readonly [
    {
      readonly cluster: { readonly server: string; readonly 'certificate-authority-data': string }
    },
  ]
  readonly users: readonly [
    {
      readonly user: {
        readonly 'client-certificate-data': string
        readonly 'client-key-data': string
      }
    },
  ]
}

const requestTimeoutMs = 10_000

/** A client for the cluster of a kubeconfig that `startCluster` wrote. */
export function connect(kubeconfigFile: string): ClusterClient {
  const kubeconfig = load(readFileSync(kubeconfigFile, 'utf8')) as Kubeconfig
  const [{ cluster }] = kubeconfig.clusters
  const [{ user }] = kubeconfig.users
  const agent = new Agent({
    ca: Buffer.from(cluster['certificate-authority-data'], 'base64'),
    cert: Buffer.from(user['client-certificate-data'], 'base64'),
    key: Buffer.from(user['client-key-data'], 'base64'),
  })

  async function send(
    method: string,
    path: string,
    body?: object,
    contentType = 'application/json',
  ): Promise<unknown> {
    const outgoing = request(new URL(path, cluster.server), {
      method,
      agent,
      headers: { 'content-type': contentType },
      signal: AbortSignal.timeout(requestTimeoutMs),
    })
    outgoing.end(body && JSON.stringify(body))
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
    const answer = await text(response)
    const { statusCode: status = 0 } = response
    if (status < 200 || status > 299) {
      throw new ClusterError(status, `${method} ${path}: ${status} ${answer}`)
    }
    return JSON.parse(answer) as unknown
  }

  return {
    get: async <T>(path: string) => (await send('GET', path)) as T,
    list: async <T>(path: string) => ((await send('GET', path)) as { items: T[] }).items,
    create: async <T>(path: string, body: object) => (await send('POST', path, body)) as T,
    patch: async <T>(path: string, body: object, contentType = 'application/merge-patch+json') =>
      (await send('PATCH', path, body, contentType)) as T,
    delete: async (path) => {
      await send('DELETE', path)
    },
  }
}
