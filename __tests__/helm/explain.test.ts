/** Helm's errors in our words. The texts are those of Helm 3.21.4 and 4.2.4, provoked for real unless said otherwise. */
import { describe, expect, test } from '@jest/globals'
import { Failure } from '../../src/errors.ts'
import { clusterCause, explainChart, explainCluster, upgradeCause } from '../../src/helm/explain.ts'
import { HelmError, slowMark } from '../../src/helm/helm.ts'

/** As Helm writes it, with the end of the line. */
const helmError = (text: string, command = 'helm status') =>
  new HelmError(command, text === slowMark ? text : `Error: ${text}\n`, text)

function failureOf(explain: (error: unknown) => never, error: unknown): Failure {
  try {
    explain(error)
  } catch (caught) {
    if (caught instanceof Failure) return caught
  }
  throw new Error('no failure came of it')
}

const forbidden = (who: string, verb: string, what: string) =>
  `${what} is forbidden: User "${who}" cannot ${verb} resource "${what}" in API group "" in the namespace "default"`

describe('the cluster', () => {
  const get = 'Get "https://127.0.0.1:6443/version"'

  test.each([
    [
      'is down',
      'network',
      `Kubernetes cluster unreachable: ${get}: dial tcp 127.0.0.1:6443: connect: connection refused`,
    ],
    [
      'is down',
      'network',
      `kubernetes cluster unreachable: ${get}: dial tcp 127.0.0.1:6443: connect: connection refused`,
    ],
    [
      'has a name that nobody knows',
      'network',
      `kubernetes cluster unreachable: Get "https://nowhere.invalid:6443/version": dial tcp: lookup nowhere.invalid on 10.0.0.53:53: no such host`,
    ],
    [
      'is silent',
      'network',
      `kubernetes cluster unreachable: ${get}: net/http: TLS handshake timeout`,
    ],
    ['is silent for longer than we wait', 'network', slowMark],
    [
      'speaks TLS where the address says http',
      'network',
      'kubernetes cluster unreachable: the server rejected our request for an unknown reason',
    ],
    [
      'went away in the middle of an answer',
      'network',
      'query: failed to query with labels: Get "https://127.0.0.1:6443/api/v1/namespaces/default/secrets": EOF',
    ],
    [
      'has a certificate of somebody else',
      'tls',
      `Kubernetes cluster unreachable: ${get}: tls: failed to verify certificate: x509: certificate signed by unknown authority`,
    ],
    [
      'has a certificate of somebody else',
      'tls',
      `kubernetes cluster unreachable: ${get}: tls: failed to verify certificate: x509: certificate signed by unknown authority`,
    ],
    [
      'does not speak TLS',
      'tls',
      `kubernetes cluster unreachable: ${get}: http: server gave HTTP response to HTTPS client`,
    ],
    [
      'does not know the token',
      'auth',
      'Kubernetes cluster unreachable: the server has asked for the client to provide credentials',
    ],
    [
      'does not know the token',
      'auth',
      'kubernetes cluster unreachable: the server has asked for the client to provide credentials',
    ],
    [
      'is reached by a plugin that is not there',
      'config',
      `kubernetes cluster unreachable: ${get}: getting credentials: exec: executable aws not found\n\nIt looks like you are trying to use a client-go credential plugin that is not installed.`,
    ],
    [
      'is reached by a plugin that is not logged in',
      'auth',
      `kubernetes cluster unreachable: ${get}: getting credentials: exec: executable aws failed with exit code 255`,
    ],
    [
      'is reached by a plugin that answers with something else',
      'auth',
      `kubernetes cluster unreachable: ${get}: getting credentials: decoding stdout: couldn't get version/kind; json parse error`,
    ],
    [
      'is never asked, since a variable forbids it',
      'config',
      "kubernetes cluster unreachable: client rate limiter Wait returned an error: rate: Wait(n=1) exceeds limiter's burst -1",
    ],
    [
      'refuses the account',
      'forbidden',
      `query: failed to query with labels: ${forbidden('system:anonymous', 'list', 'secrets')}`,
    ],
    [
      'refuses the account in the middle',
      'forbidden',
      `unable to continue with install: could not get information about the resource Deployment "docs" in namespace "default": ${forbidden('ci', 'get', 'deployments.apps')}`,
    ],
    ['lets the account do all but watch', 'deploy-failed', forbidden('ci', 'watch', 'configmaps')],
    ['has no such namespace', 'config', 'create: failed to create: namespaces "web" not found'],
    [
      'is not in the kubeconfig',
      'config',
      'kubernetes cluster unreachable: context "nobody" does not exist',
    ],
    [
      'stands in a kubeconfig that is none',
      'config',
      'kubernetes cluster unreachable: error loading config file "/tmp/kubeconfig": yaml: line 1: did not find expected node content',
    ],
  ])('%s: %s', (_what, code, text) => {
    const failure = failureOf(explainCluster, helmError(text))
    expect(failure.code).toBe(code)
    expect(failure.message).toContain(`\`helm status\` said: "${text}"`)
  })

  test('says something that nobody has seen before', () => {
    const failure = failureOf(explainCluster, helmError('release name is invalid: -x'))
    expect(failure.code).toBe('deploy-failed')
    expect(failure.message).toBe('Helm failed. `helm status` said: "release name is invalid: -x"')
  })

  test('makes an advice of its own for what the user has to change', () => {
    const adviceOn = (text: string) => failureOf(explainCluster, helmError(text)).advice
    expect(adviceOn('create: failed to create: namespaces "web" not found')).toContain(
      '`create-namespace: true`',
    )
    expect(adviceOn(forbidden('ci', 'watch', 'pods'))).toContain('Grant `watch`')
    expect(adviceOn(slowMark)).toContain('exec plugin')
    expect(adviceOn('kubernetes cluster unreachable: context "nobody" does not exist')).toContain(
      '`kube-context`',
    )
  })
})

describe('a rollout that was too slow is not the fault of the network', () => {
  test.each([
    ['UPGRADE FAILED: context deadline exceeded'],
    [
      'UPGRADE FAILED: resource Deployment/default/docs not ready. status: InProgress, message: Updated: 1/2\ncontext deadline exceeded',
    ],
    ['context deadline exceeded'],
    [
      'UPGRADE FAILED: pre-upgrade hooks failed: 1 error occurred:\n\t* timed out waiting for the condition',
    ],
    [
      "UPGRADE FAILED: values don't meet the specifications of the schema(s) in the following chart(s):\ndocs:\n- at '/replicaCount': got string, want integer",
    ],
    ['UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress'],
  ])('%s', (text) => {
    expect(clusterCause(helmError(text, 'helm upgrade'))).toBeUndefined()
  })
})

describe('a chart', () => {
  const repository =
    'looks like "https://c.test" is not a valid chart repository or cannot be reached:'
  const fetching = 'failed to perform "FetchReference" on source:'

  test.each([
    [
      'of another version',
      'config',
      'chart "docs" version "9.9.9" not found in https://c.test repository',
    ],
    [
      'of another version',
      'config',
      `chart "docs" matching 9.9.9 not found in acme index. (try 'helm repo update'): no chart version found for docs-9.9.9`,
    ],
    ['of another version', 'config', `${fetching} r.test/charts/docs:9.9.9: not found`],
    [
      'of no version in the range',
      'config',
      'could not locate a version matching provided version string ^9',
    ],
    [
      'of another name',
      'config',
      `chart "none" matching 1.0.0 not found in acme index. (try 'helm repo update'): no chart name found`,
    ],
    [
      'of another name',
      'config',
      'GET "https://r.test/v2/charts/none/tags/list": response status code 404: name unknown: Unknown name',
    ],
    ['of a repository that no step has added', 'config', 'repo acme not found'],
    [
      'of a web page',
      'config',
      `${repository} error unmarshaling JSON: while decoding JSON: json: cannot unmarshal string into Go value of type repo.IndexFile`,
    ],
    ['of a folder that is none', 'config', 'validation: chart.metadata.version is required'],
    [
      'of a file that is none',
      'config',
      `file '/x/docs.tgz' does not appear to be a gzipped archive; got 'application/octet-stream'`,
    ],
    [
      'behind a password',
      'auth',
      `${repository} failed to fetch https://c.test/index.yaml : 401 Unauthorized`,
    ],
    [
      'behind a password that is wrong',
      'auth',
      'authenticating to "r.test": GET "https://r.test/v2/": response status code 401: unauthorized',
    ],
    [
      'behind a password that nobody gave',
      'auth',
      `${fetching} GET "https://r.test/v2/charts/docs/manifests/1.0.0": basic credential not found`,
    ],
    [
      'of a registry that is down',
      'network',
      `${fetching} Get "https://127.0.0.1:9/v2/docs/manifests/1.0.0": dial tcp 127.0.0.1:9: connect: connection refused`,
    ],
    [
      'of a repository that is down',
      'network',
      `${repository} Get "https://127.0.0.1:9/index.yaml": dial tcp 127.0.0.1:9: connect: connection refused`,
    ],
    [
      'of a repository that nobody knows',
      'network',
      `${repository} Get "https://c.test/index.yaml": dial tcp: lookup c.test on 10.0.0.53:53: no such host`,
    ],
    ['of a repository that is silent', 'network', slowMark],
    [
      'of a repository that does not speak TLS',
      'tls',
      `${repository} Get "https://c.test/index.yaml": http: server gave HTTP response to HTTPS client`,
    ],
    [
      'of a repository with its own authority',
      'tls',
      `${repository} Get "https://c.test/index.yaml": tls: failed to verify certificate: x509: certificate signed by unknown authority`,
    ],
  ])('%s: %s', (_what, code, text) => {
    const failure = failureOf(explainChart, helmError(text, 'helm show chart'))
    expect(failure.code).toBe(code)
    expect(failure.message).toContain(`\`helm show chart\` said: "${text}"`)
  })

  test.each([
    [
      'repository',
      `${repository} failed to fetch https://c.test/index.yaml : 503 Service Unavailable`,
    ],
    [
      'repository',
      `${repository} failed to fetch https://c.test/index.yaml : 429 Too Many Requests`,
    ],
    ['file of a repository', 'failed to fetch https://c.test/docs-1.0.0.tgz : 502 Bad Gateway'],
    [
      'registry',
      `${fetching} GET "https://r.test/v2/charts/docs/manifests/1.0.0": response status code 503: Service Unavailable`,
    ],
  ])('of a %s in trouble is there all the same: %s', (_what, text) => {
    const failure = failureOf(explainChart, helmError(text, 'helm show chart'))
    expect(failure.code).toBe('network')
    expect(failure.message).toContain('The chart repository has trouble of its own.')
    expect(failure.advice).toBe('Run this step again later, or ask those who run the repository.')
  })

  test('whose version holds the number of an error is only missing', () => {
    const text = 'chart "docs" version "1.403.0" not found in https://c.test repository'
    expect(failureOf(explainChart, helmError(text)).code).toBe('config')
  })
})

describe('an upgrade', () => {
  const repository =
    'looks like "http://127.0.0.1:9" is not a valid chart repository or cannot be reached:'
  const registry = 'http://127.0.0.1:9/v2/charts/docs'
  const refused = 'dial tcp 127.0.0.1:9: connect: connection refused'

  test.each([
    // Both Helms, on a port that is closed, and on one that answers with a status.
    ['network', `${repository} Get "http://127.0.0.1:9/index.yaml": ${refused}`],
    [
      'network',
      `${repository} failed to fetch http://127.0.0.1:9/index.yaml : 503 Service Unavailable`,
    ],
    ['auth', `${repository} failed to fetch http://127.0.0.1:9/index.yaml : 401 Unauthorized`],
    // The index of a repository is at hand, its chart is not.
    ['network', `Get "http://127.0.0.1:9/docs-1.0.0.tgz": ${refused}`],
    ['network', 'Get "http://127.0.0.1:9/docs-1.0.0.tgz": EOF'],
    ['network', 'failed to fetch http://127.0.0.1:9/docs-1.0.0.tgz : 503 Service Unavailable'],
    ['auth', 'failed to fetch http://127.0.0.1:9/docs-1.0.0.tgz : 401 Unauthorized'],
    ['config', 'failed to fetch http://127.0.0.1:9/docs-1.0.0.tgz : 404 Not Found'],
    [
      'network',
      `failed to perform "FetchReference" on source: Get "${registry}/manifests/1.0.0": ${refused}`,
    ],
    ['network', `failed to perform "Fetch" on source: Get "${registry}/blobs/sha256:00": EOF`],
    [
      'network',
      `failed to perform "FetchReference" on source: GET "${registry}/manifests/1.0.0": response status code 503: Service Unavailable`,
    ],
    [
      'auth',
      `failed to perform "FetchReference" on source: GET "${registry}/manifests/1.0.0": basic credential not found`,
    ],
    [
      'auth',
      `failed to perform "FetchReference" on source: GET "${registry}/manifests/1.0.0": GET "http://127.0.0.1:9/token?service=x": response status code 401: Unauthorized`,
    ],
    [
      'tls',
      `failed to perform "FetchReference" on source: Get "https://127.0.0.1:9/v2/charts/docs/manifests/1.0.0": http: server gave HTTP response to HTTPS client`,
    ],
    [
      'config',
      'failed to perform "FetchReference" on source: 127.0.0.1:9/charts/docs:1.0.0: not found',
    ],
    // Helm 3.14.4, which has another client for registries.
    ['network', `failed to do request: Head "${registry}/manifests/1.0.0": ${refused}`],
    [
      'network',
      `unexpected status from HEAD request to ${registry}/manifests/1.0.0: 503 Service Unavailable`,
    ],
    [
      'network',
      `failed to copy: httpReadSeeker: failed open: unexpected status code ${registry}/blobs/sha256:00: 503 Service Unavailable`,
    ],
    [
      'auth',
      'pull access denied, repository does not exist or may require authorization: authorization failed: no basic auth credentials',
    ],
    [
      'auth',
      'failed to authorize: failed to fetch anonymous token: unexpected status from GET request to http://127.0.0.1:9/token?service=x: 401 Unauthorized',
    ],
    ['config', 'chart "docs" version "9.9.9" not found in http://127.0.0.1:9 repository'],
    [
      'config',
      `chart "docs" matching 9.0.0 not found in acme index. (try 'helm repo update'): no chart version found for docs-9.0.0`,
    ],
  ])('that lost its chart is not the fault of the cluster (%s): %s', (code, text) => {
    const cause = upgradeCause(helmError(text, 'helm upgrade'))
    expect(cause?.code).toBe(code)
    expect(cause?.what).toMatch(/chart/)
    expect(cause?.advice).not.toMatch(/kubeconfig|cluster/)
  })

  test.each([
    ['network', `kubernetes cluster unreachable: Get "https://127.0.0.1:9/version": ${refused}`],
    // Behind a path that looks like a registry.
    [
      'network',
      `query: failed to query with labels: Get "https://k.test/v2/api/v1/secrets": ${refused}`,
    ],
    [
      'deploy-failed',
      'UPGRADE FAILED: admission webhook "images.test" denied the request: failed to fetch https://r.test/v2/docs : 401 Unauthorized',
    ],
    ['config', 'create: failed to create: namespaces "web" not found'],
    [undefined, 'UPGRADE FAILED: chart "docs" version "2" not found, says a template'],
    [undefined, 'UPGRADE FAILED: context deadline exceeded'],
  ])('that the cluster refused is not the fault of the chart (%s): %s', (code, text) => {
    const error = helmError(text, 'helm upgrade')
    expect(upgradeCause(error)?.code).toBe(code)
    expect(upgradeCause(error)).toBe(clusterCause(error))
  })
})

test('what Helm did not say is nobody’s to explain', () => {
  const cancelled = new Failure('cancelled', 'Cancelled by SIGINT.')
  expect(failureOf(explainCluster, cancelled)).toBe(cancelled)
  expect(failureOf(explainChart, cancelled)).toBe(cancelled)
  expect(() => explainCluster(new TypeError('a mistake of ours'))).toThrow(TypeError)
})
