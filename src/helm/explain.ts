/** What Helm's errors mean for the user: recognised by their words, told in ours. */
import { Failure, type FailureCode } from '../errors.ts'
import { HelmError, slowMark } from './helm.ts'

interface Cause {
  readonly pattern: RegExp
  readonly code: FailureCode
  readonly what: string
  readonly advice: string
}

const unreachable =
  /cluster unreachable|connection refused|no such host|i\/o timeout|handshake timeout|connection reset|network is unreachable|proxyconnect|EOF\s*$/i
const untrusted = /x509:|tls: failed to verify|server gave HTTP response to HTTPS client/i
const isSlow = new RegExp(`^${slowMark}$`)

/** In order: an unreachable cluster is a wrapper of several others. */
const clusterCauses: readonly Cause[] = [
  {
    // Its certificate and its address are not those of the kubeconfig.
    pattern: /failed calling webhook|admission webhook/i,
    code: 'deploy-failed',
    what: 'An admission webhook of the cluster refused it, or could not be asked',
    advice: 'Look at what the webhook demands, or at the service behind it.',
  },
  {
    pattern: untrusted,
    code: 'tls',
    what: 'The connection to the Kubernetes API was not trusted',
    advice: 'Check `certificate-authority-data` and the address in the kubeconfig.',
  },
  {
    pattern: /getting credentials: exec: executable .* not found|exec plugin: .*not found/i,
    code: 'config',
    what: 'The program that the kubeconfig names to log in with (an exec plugin) is not on this runner',
    advice: 'Install it in an earlier step of this job, or use a kubeconfig with a token.',
  },
  {
    pattern: /getting credentials: /i,
    code: 'auth',
    what: 'The program that the kubeconfig names to log in with (an exec plugin) gave no credentials',
    advice: 'Run it by hand in a step before this one: is it logged in on this runner?',
  },
  {
    pattern: /\bUnauthorized\b|asked for the client to provide credentials/i,
    code: 'auth',
    what: 'The cluster did not accept the credentials of the kubeconfig',
    advice: 'They may have expired, or belong to another cluster.',
  },
  {
    pattern: /client rate limiter|exceeds limiter's burst/i,
    code: 'config',
    what: 'The limits of requests that are set on this machine let nothing through',
    advice: 'Check the variables HELM_BURST_LIMIT and HELM_QPS.',
  },
  {
    pattern: /field is immutable/,
    code: 'deploy-failed',
    what: 'A field has changed that Kubernetes does not let change',
    advice:
      'Most often it is the pod template of a Job: make the Job a hook, or put the revision into its name. Else remove the object, and run again.',
  },
  {
    pattern: /cannot watch resource/i,
    code: 'deploy-failed',
    what: 'The account may not watch what it deploys, which Helm 4 does while it waits',
    advice: 'Grant `watch` beside `get` and `list`; docs/helm.md lists the least Role.',
  },
  {
    pattern: /\bis forbidden: User\b|\bcannot [a-z]+ resource\b/i,
    code: 'forbidden',
    what: 'The cluster refused the account of the kubeconfig',
    advice: 'Grant what the message names; docs/helm.md lists the least Role.',
  },
  {
    pattern: /namespaces? ".*" not found/i,
    code: 'config',
    what: 'The namespace does not exist',
    advice: 'Check `namespace`, create it, or set `create-namespace: true`.',
  },
  {
    pattern: /context ".*" does not exist|invalid configuration|error loading config file/i,
    code: 'config',
    what: 'The kubeconfig cannot be used',
    advice: 'Check `kubeconfig` and `kube-context`.',
  },
  {
    pattern: isSlow,
    code: 'network',
    what: 'The cluster gave no answer in time',
    advice:
      'Check the address in the kubeconfig and whether this runner may reach it (firewall, private endpoint, proxy). An exec plugin that waits for a login looks the same.',
  },
  {
    pattern: unreachable,
    code: 'network',
    what: 'The cluster cannot be reached',
    advice:
      'Check the address in the kubeconfig, whether the cluster is up, and whether this runner may reach it (firewall, private endpoint, proxy).',
  },
]

/** Found by Helm before it does anything else with a chart. */
export const missingDependencies = /missing in charts\/ directory/

const chartCauses: readonly Cause[] = [
  {
    pattern: missingDependencies,
    code: 'config',
    what: 'The chart lacks charts that it depends on',
    advice: 'Run `helm dependency build` for it in an earlier step of this job.',
  },
  {
    pattern: untrusted,
    code: 'tls',
    what: 'The connection to the chart repository was not trusted',
    advice: 'Check its address; a private certificate authority has to be known to this runner.',
  },
  {
    pattern: new RegExp(`${isSlow.source}|${unreachable.source}`, 'i'),
    code: 'network',
    what: 'The chart repository cannot be reached',
    advice: 'Check its address, and whether this runner may reach it (firewall, proxy).',
  },
  {
    pattern: /(?:status code|:) (?:5\d\d|408|429)\b/,
    code: 'network',
    what: 'The chart repository has trouble of its own',
    advice: 'Run this step again later, or ask those who run the repository.',
  },
  {
    pattern: /(?:status code|:) 40[13]\b|unauthorized|forbidden|denied|credential not found/i,
    code: 'auth',
    what: 'The chart repository wants other credentials',
    advice: 'Check `chart-username` and `chart-password`.',
  },
  {
    pattern: /repo .+ not found/i,
    code: 'config',
    what: 'Helm on this machine knows no such repository, and no such path exists',
    advice:
      'If `chart` is a path: is there a checkout before this step? Else name its repository in `chart-repository`, or add it with `helm repo add` in an earlier step.',
  },
  {
    pattern:
      /not found|\b404\b|no chart version found|no chart name found|improper constraint|is not a valid chart repository|invalid reference|Chart\.yaml|validation:/i,
    code: 'config',
    what: 'There is no such chart',
    advice: 'Check `chart`, `chart-version` and `chart-repository`.',
  },
]

/** The cause of an error of the cluster by Helm's own words; undefined when they say nothing that we know. */
export function clusterCause(error: HelmError): Cause | undefined {
  return clusterCauses.find(({ pattern }) => pattern.test(error.raw))
}

/**
 * How an error begins that Helm met on its way to the chart, when the cluster has not seen anything yet. Only at the
 * beginning: what the cluster and the chart themselves say stands behind other words of Helm, and may hold anything.
 */
const chartSource = new RegExp(
  `^Error: (?:${[
    'looks like "[^"]*" is not a valid chart repository',
    'failed to perform "[^"]*" on source',
    'failed to fetch https?://',
    '(?:get|head) "https?://[^"]*(?:/v2/|/index\\.yaml|\\.tgz|\\.tar\\.gz)',
    'chart "[^"]*" (?:version|matching) .*not found',
    'could not locate a version matching',
    'authenticating to "',
    'repo \\S+ not found',
    // Of older Helms (3.14.4), which have another client for registries:
    'failed to do request: ',
    'failed to copy: ',
    'failed to authorize: ',
    'pull access denied',
    'unexpected status from [A-Z]+ request to ',
  ].join('|')})`,
  'im',
)

/** The cause of an error of `helm upgrade`, which fetches the chart first; undefined as for {@link clusterCause}. */
export function upgradeCause(error: HelmError): Cause | undefined {
  if (!chartSource.test(error.raw)) return clusterCause(error)
  return chartCauses.find(({ pattern }) => pattern.test(error.raw))
}

/** An error of Helm while it only asked the cluster, as a failure; anything else is thrown on. */
export function explainCluster(error: unknown): never {
  throw explained(error, clusterCauses, { code: 'deploy-failed', what: 'Helm failed' })
}

/** An error of Helm while it fetched a chart, as a failure; anything else is thrown on. */
export function explainChart(error: unknown): never {
  throw explained(error, chartCauses, { code: 'config', what: 'The chart cannot be read' })
}

function explained(
  error: unknown,
  causes: readonly Cause[],
  unknown: { readonly code: FailureCode; readonly what: string },
): unknown {
  if (!(error instanceof HelmError)) return error
  const cause = causes.find(({ pattern }) => pattern.test(error.raw))
  const { code, what } = cause ?? unknown
  const said = `${what}. \`${error.command}\` said: "${error.said}"`
  return new Failure(code, said, { advice: cause?.advice, cause: error })
}
