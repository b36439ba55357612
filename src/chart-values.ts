/** The chart values that a self-hosted deployment reads (admin-api.md, section 4.5), as a values file for Helm. */

export interface ChartValues {
  /** Where in the values they belong; dots nest. */
  readonly key: string
  /** Printable ASCII. */
  readonly bundleUrl: string
  /**
   * Printable ASCII. Without it no version is written, since a chart may look it up; null takes away one that
   * the release has kept.
   */
  readonly version: string | null | undefined
}

/**
 * Writes the values as YAML in block style. Every string is double-quoted, so that YAML 1.1 and 1.2 read
 * `1.10`, `true` or `2026-11` alike, as strings: for printable ASCII the escapes of JSON are those of YAML.
 */
export function toChartValues({ key, bundleUrl, version }: ChartValues): string {
  const parts = key.split('.')
  const indent = '  '.repeat(parts.length)
  const lines = [
    ...parts.map((part, depth) => `${'  '.repeat(depth)}${toKey(part)}:`),
    `${indent}enabled: true`,
    `${indent}bundleUrl: ${JSON.stringify(bundleUrl)}`,
    ...(version === undefined ? [] : [`${indent}version: ${JSON.stringify(version)}`]),
  ]
  return `${lines.join('\n')}\n`
}

/** What may stand in `values-key` between its dots: the names that Helm charts use. */
export const keyPattern = /^[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z_][A-Za-z0-9_-]*)*$/

/** A key is plain, unless YAML 1.1 would take it for a boolean or null. */
function toKey(part: string): string {
  return /^(?:y|n|yes|no|on|off|true|false|null)$/i.test(part) ? JSON.stringify(part) : part
}
