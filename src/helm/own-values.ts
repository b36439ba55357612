/** The values that are ours in a release: what a revision holds of them. */
import { signedExpiryMs } from '../link.ts'
import { formatUtc } from '../units.ts'
import { valuesAt } from './caller-values.ts'
import { formsOf } from './hide.ts'

/** The version label that a revision was given; null, which took one away, is none. */
export function labelOf(values: unknown, key: string): unknown {
  return valuesAt(values, key)?.['version'] ?? undefined
}

/** The link that a revision was given. */
export function linkOf(values: unknown, key: string): URL | undefined {
  const link = valuesAt(values, key)?.['bundleUrl']
  return (typeof link === 'string' ? URL.parse(link) : undefined) ?? undefined
}

/** `expired at …` when the presigned link that a revision was given has done so; undefined otherwise. */
export function expiredLinkOf(values: unknown, key: string, nowMs: number): string | undefined {
  const url = linkOf(values, key)
  const expiresAtMs = url ? signedExpiryMs(url) : undefined
  if (expiresAtMs === undefined || expiresAtMs > nowMs) return undefined
  return `expired at ${formatUtc(expiresAtMs)}`
}

/**
 * Whether something that a chart has rendered holds the link, in plain or in base64, as the data of a Secret are. Its
 * path alone will do, since a chart may take the link apart.
 */
export function holdsLink(rendered: string, link: string): boolean {
  const { pathname } = new URL(link)
  const forms = [...formsOf(pathname), ...formsOf(decodeURI(pathname))]
  const holds = (text: string) => forms.some((form) => text.includes(form))
  const encoded = rendered.match(/[A-Za-z0-9+/]{16,}={0,2}/g) ?? []
  return holds(rendered) || encoded.some((data) => holds(Buffer.from(data, 'base64').toString()))
}

/** What is wrong with the values of the revision that this run has made; undefined when they are ours. */
export function valuesProblem(
  values: unknown,
  key: string,
  link: string,
  version: string | undefined,
): string | undefined {
  const own = valuesAt(values, key)
  if (own?.['bundleUrl'] !== link) return `does not hold the link of this run at ${key}.bundleUrl`
  if (own['enabled'] !== true) return `does not hold true at ${key}.enabled`
  if (version !== undefined && own['version'] !== version) {
    return `does not hold the version of this run at ${key}.version`
  }
  return undefined
}
