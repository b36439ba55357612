/** YAML as Helm reads it: what Helm accepts is accepted, and no problem repeats anything of the text. */
import { CORE_SCHEMA, type LoadOptions, type State, Type, YAMLException, loadAll } from 'js-yaml'
import { Problem } from '../input-reader.ts'

/** Collections within each other. Helm allows more, which no one writes. */
const maxDepth = 1_000
/** Keys that `<<` copies, all in all. */
const maxMergedKeys = 1_000_000

/** The common types, merge keys, and whatever stands behind a tag that nobody knows (`!vault x`). */
const schema = CORE_SCHEMA.extend({
  implicit: [
    new Type('tag:yaml.org,2002:merge', {
      kind: 'scalar',
      resolve: (text: unknown) => text === '<<',
    }),
  ],
  explicit: [
    new Type('tag:yaml.org,2002:null', {
      kind: 'scalar',
      resolve: (text: string | null) => /^(?:|~|null|Null|NULL)$/.test(text ?? ''),
      construct: () => null,
    }),
    // Every tag begins with nothing.
    ...(['scalar', 'sequence', 'mapping'] as const).map(
      (kind) => new Type('', { kind, multi: true }),
    ),
  ],
})

/**
 * Reads all documents of a text; one without content is null.
 *
 * @param shown how a problem names the text
 * @param options whether a key may stand twice in one mapping: then the last one counts
 * @throws Problem with the line, and nothing of the content, which may be secret
 */
export function parseYaml(
  text: string,
  shown: string,
  { duplicates = false }: { readonly duplicates?: boolean } = {},
): readonly unknown[] {
  // The published types lack the limits.
  const options: LoadOptions & { maxDepth: number; maxTotalMergeKeys: number } = {
    schema,
    json: duplicates,
    maxDepth,
    maxTotalMergeKeys: maxMergedKeys,
    listener(event, state) {
      if (event === 'close' && hasCollectionAsKey(state)) {
        throw new Problem(
          `${shown} has a list or a mapping as a key (line ${state.line + 1}); is it a {{ template }} that was not filled in, or needs quotes?`,
        )
      }
    },
  }
  try {
    const documents = loadAll(text, null, options)
    if (documents.some(repeatsTooMuch)) throw new Problem(`${shown} ${aliasText}`)
    return documents
  } catch (error) {
    if (error instanceof RangeError) throw new Problem(`${shown} is nested too deeply.`)
    throw error instanceof YAMLException ? new Problem(`${shown} ${describe(error)}`) : error
  }
}

const aliasText =
  'has an alias (*name) that leads nowhere, or to what cannot stand in its place, or too many of them.'

/** In our words: those of the library quote the text. */
function describe({ reason, mark }: YAMLException): string {
  if (/^nesting exceeded/.test(reason)) return 'is nested too deeply.'
  if (/alias|merge/.test(reason)) return aliasText
  const line = mark.line + 1
  if (reason === 'duplicated mapping key') {
    return `has the same key twice in one mapping (line ${line}).`
  }
  const isFirst = mark.buffer.slice(mark.position - mark.column, mark.position).trim() === ''
  const what = /^tab /.test(reason)
    ? ': a tab where spaces belong'
    : /unexpected end|missed comma/.test(reason)
      ? ': a quote or a bracket is missing, or what it holds is not indented'
      : isFirst && /indentation/.test(reason)
        ? ': the indentation does not fit'
        : ''
  return `is not valid YAML (line ${line}, column ${mark.column + 1}${what}).`
}

/**
 * Whether what was just read is a collection in the place of a key, or a mapping that holds one. The library would
 * make a text of it, such as `[object Object]`; Helm refuses it.
 */
function hasCollectionAsKey({ input, position, result }: State): boolean {
  if (!isCollection(result)) return false
  colon.lastIndex = position
  return colon.test(input) || Object.hasOwn(result, '[object Object]')
}

/** Behind a collection there is a colon only when it is a key; `:b` is the beginning of the next key. */
const colon = /(?<=[\]}])[ \t]*:|\s*:(?=[\s\0])/y

/**
 * Whether a document consists of repetitions of its own parts, or contains itself: a few lines that fill a memory.
 * Counted and decided as Helm does (go-yaml, `allowedAliasRatio`).
 */
function repeatsTooMuch(document: unknown): boolean {
  /** What each collection holds with all repetitions in it; undefined while that is being found out. */
  const sizes = new Map<object, number | undefined>()
  let written = 0
  const whole = sizeOf(document)
  if (whole === Infinity) return true
  const repeated = whole - written
  const allowed = 0.99 - 0.89 * Math.min(1, Math.max(0, (whole - 400_000) / 3_600_000))
  return repeated > 1_000 && repeated > allowed * whole

  function sizeOf(value: unknown): number {
    if (!isCollection(value)) return 1
    if (sizes.has(value)) {
      written++
      return 1 + (sizes.get(value) ?? Infinity)
    }
    sizes.set(value, undefined)
    const items: unknown[] = Array.isArray(value) ? value : Object.values(value)
    const names = Array.isArray(value) ? 0 : items.length
    let size = 1 + names
    written += size
    for (const item of items) {
      if (!isCollection(item)) written++
      size += sizeOf(item)
    }
    sizes.set(value, size)
    return size
  }
}

function isCollection(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
