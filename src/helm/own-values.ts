/** The values that are ours in a release: what a revision holds of them. */
import { signedExpiryMs } from '../link.ts'
import { formatUtc } from '../units.ts'
import { valuesAt } from './caller-values.ts'

/** What a run like this one has given to a revision. */
export interface OwnValues {
  readonly link: URL | undefined
  /** Null, which took a label away, is none. */
  readonly hasLabel: boolean
  /** `expired at …` when the link is presigned and has done so; undefined otherwise. */
  expiry(nowMs: number): string | undefined
}

/** @param values those of a revision, as Helm has them */
export function ownValuesOf(values: unknown, key: string): OwnValues {
  const { bundleUrl, version = null } = valuesAt(values, key) ?? {}
  const link = (typeof bundleUrl === 'string' ? URL.parse(bundleUrl) : undefined) ?? undefined
  const expiresAtMs = link && signedExpiryMs(link)
  return {
    link,
    hasLabel: version !== null,
    expiry(nowMs) {
      if (expiresAtMs === undefined || expiresAtMs > nowMs) return undefined
      return `expired at ${formatUtc(expiresAtMs)}`
    },
  }
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
