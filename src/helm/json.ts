/** Values whose shape nobody has promised, from JSON or YAML: looked at without a cast. */

export type JsonRecord = Readonly<Record<string, unknown>>

/** Whether it is a mapping of names to values; a list is none. */
export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The mapping, or an empty one for anything else. */
export function recordOf(value: unknown): JsonRecord {
  return isRecord(value) ? value : {}
}

/** The mappings of a list; none for anything else. */
export function recordsIn(value: unknown): JsonRecord[] {
  return Array.isArray(value) ? value.filter(isRecord) : []
}

/** The text, or an empty one for anything else. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
