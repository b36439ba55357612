/** How the Admin API is reached, for the log. */
import type { Log } from './log.ts'
import { routeTo } from './network.ts'
import type { Environment } from './runner.ts'
import { clean } from './text.ts'

/** Lines that say where the Admin API is and through which proxy; a proxy that cannot be used is warned about. */
export function routeLines(baseUrl: URL, environment: Environment, log: Log): string[] {
  const route = routeTo(baseUrl, environment)
  if (route.via === 'unusable-proxy') {
    log.warning(
      'The proxy variable of the environment (HTTPS_PROXY or HTTP_PROXY) is not an http address: requests may pass it by, or fail.',
    )
  }
  return [
    `Admin API: ${baseUrl.host}${baseUrl.pathname === '/' ? '' : clean(baseUrl.pathname)}`,
    route.via === 'proxy' ? `Proxy: ${route.proxyHost}` : 'Proxy: none',
  ]
}
