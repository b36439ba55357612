/** The values that the caller adds: checked before any request, as strictly as Helm and not much more. */
import {
  type Document,
  LineCounter,
  type ParsedNode,
  type YAMLParseError,
  isCollection,
  isMap,
  isScalar,
  parseAllDocuments,
  visit,
} from 'yaml'
import type { Disk } from '../disk.ts'
import { Problem, parsePath } from '../input-reader.ts'
import { clean } from '../text.ts'
import { type ChartPlaces, kindOf } from './chart.ts'

/** What the caller gives in `values-files` and `values`, checked. */
export interface CallerValues {
  /** Absolute, in the order given. */
  readonly files: readonly string[]
  /** The YAML in `values`, as written. */
  readonly text: string | undefined
  /** Whether any of them sets a version where the values of the export belong. */
  readonly setsVersion: boolean
}

/** Values as JavaScript has them; undefined for a document without content, which Helm takes for no values. */
export type Values = Readonly<Record<string, unknown>> | undefined

/** A release with its values must fit into a Secret of 1 MiB, compressed. */
const maxValuesBytes = 5 * 1024 * 1024
/** Helm itself gives up on documents that are mostly repetitions of others. */
const maxAliases = 10_000

/** A file of `values-files`, checked. */
export interface ValuesFile {
  /** Absolute. */
  readonly file: string
  readonly values: Values
  /** How a message names it. */
  readonly shown: string
}

/**
 * Reads a line of `values-files`.
 *
 * @throws Problem without anything of the file's content
 */
export async function readValuesFile(line: string, places: ChartPlaces): Promise<ValuesFile> {
  const { disk, workspace } = places
  // A second reader of standard input would leave nothing of ours to read.
  if (line === '-') {
    throw new Problem(
      '`values-files` names standard input (-), where the link goes; put the values into a file or into `values`.',
    )
  }
  if (/^[a-z][a-z0-9+.-]+:\/\//i.test(line)) {
    throw new Problem(
      '`values-files` holds an address; fetch the file in an earlier step and name it here.',
    )
  }
  const shown = `\`values-files\` ("${clean(line, 200)}")`
  const file = parsePath(line, 'values-files', workspace)
  if (/%(?![0-9a-f]{2})/i.test(file)) {
    throw new Problem(
      `${shown} has a % in its path, which Helm takes for the escape of an address; name a copy without.`,
    )
  }
  const kind = kindOf(file, 'values-files', disk)
  if (kind === 'nothing') {
    throw new Problem(`${shown} does not exist. Is there a checkout before this step?`)
  }
  if (kind !== 'file') {
    const what = kind === 'directory' ? 'a directory' : 'no regular file'
    throw new Problem(`${shown} is ${what}; name the files themselves, one a line.`)
  }
  const bytes = await readWhole(file, maxValuesBytes, disk, shown)
  return { file, values: parseValues(decodeUtf8(bytes, shown), shown), shown }
}

function decodeUtf8(bytes: Uint8Array, shown: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new Problem(`${shown} is not a text in UTF-8.`)
  }
}

/** @throws Problem when it is too long, or cannot be read */
export async function readWhole(
  file: string,
  maxBytes: number,
  disk: Disk,
  shown: string,
): Promise<Buffer> {
  const chunks: Buffer[] = []
  let sizeBytes = 0
  try {
    for await (const chunk of disk.read(file) as AsyncIterable<Buffer>) {
      sizeBytes += chunk.length
      if (sizeBytes > maxBytes) throw tooLarge(shown, maxBytes)
      chunks.push(chunk)
    }
  } catch (error) {
    if (error instanceof Problem) throw error
    const code = Error.isError(error) && 'code' in error ? String(error.code) : ''
    const reason = /^E(?:ACCES|PERM)$/.test(code) ? 'permission denied' : code
    throw new Problem(`${shown} cannot be read${reason && `: ${clean(reason, 40)}`}.`)
  }
  return Buffer.concat(chunks)
}

function tooDeep(shown: string): Problem {
  return new Problem(`${shown} is nested too deeply.`)
}

function tooLarge(shown: string, maxBytes: number): Problem {
  return new Problem(`${shown} is larger than ${maxBytes / 1024 ** 2} MiB.`)
}

/**
 * Reads YAML as values: one document that is a mapping without duplicate keys (helm.md, rule 6). What else Helm
 * accepts is accepted, such as an empty document, and empty ones behind it.
 *
 * @param shown how a problem names the text
 * @throws Problem with the line, and nothing of the content, which may be secret
 */
export function parseValues(text: string, shown: string): Values {
  if (Buffer.byteLength(text) > maxValuesBytes) throw tooLarge(shown, maxValuesBytes)
  const lines = new LineCounter()
  const documents = parseAllDocuments(text, {
    strict: false, // Helm reads a closing bracket at the beginning of a line, too
    uniqueKeys: false, // the library compares each with each
    merge: true,
    lineCounter: lines,
    logLevel: 'silent', // its warnings quote the text
  })
  if ('empty' in documents) return undefined
  const error = documents.flatMap(({ errors }) => errors)[0]
  if (error?.code === 'RESOURCE_EXHAUSTION') throw tooDeep(shown)
  if (error) throw new Problem(`${shown} is not valid YAML${describeError(error)}.`)
  const filled = documents.filter(({ contents }) => !isNothing(contents))
  const [document] = filled
  if (!document) return undefined
  if (filled.length > 1 || document !== documents[0]) {
    throw new Problem(
      `${shown} holds several YAML documents, of which Helm 3 reads the first and Helm 4 all; make them one.`,
    )
  }
  if (!isMap(document.contents)) {
    throw new Problem(`${shown} is YAML, but not a mapping of names to values, which Helm needs.`)
  }
  try {
    const problem = keyProblem(document, lines)
    if (problem !== undefined) throw new Problem(`${shown} ${problem}`)
    return document.toJS({ maxAliasCount: maxAliases }) as Values
  } catch (error) {
    if (error instanceof Problem) throw error
    if (error instanceof RangeError) throw tooDeep(shown)
    // The texts of the library quote the name.
    throw new Problem(
      `${shown} has an alias (*name) that leads nowhere, or to what cannot stand in its place, or too many of them.`,
    )
  }
}

/** The first key that Helm refuses or drops in silence. */
function keyProblem(document: Document.Parsed, lines: LineCounter): string | undefined {
  let problem: string | undefined
  visit(document, {
    Map(_position, { items }) {
      const seen = new Set<string>()
      for (const { key } of items as { key: ParsedNode | null }[]) {
        const at = ` (line ${lines.linePos(key?.range[0] ?? 0).line})`
        if (isCollection(key)) {
          problem = `has a list or a mapping as a key${at}; is it a {{ template }} that was not filled in, or needs quotes?`
        } else if (isScalar(key) && typeof key.value !== 'symbol') {
          const name = String(key.value)
          if (seen.has(name)) problem = `has the same key twice in one mapping${at}.`
          seen.add(name)
        }
        if (problem !== undefined) return visit.BREAK
      }
      return undefined
    },
  })
  return problem
}

function isNothing(contents: ParsedNode | null): boolean {
  return contents === null || (isScalar(contents) && contents.value === null)
}

/** Where, and what in our words; those of the library quote the line. */
function describeError({ code, linePos }: Pick<YAMLParseError, 'code' | 'linePos'>): string {
  const [start] = linePos ?? []
  const where = start && `line ${start.line}, column ${start.col}`
  const facts = [where, errorTexts[code]].filter((fact) => fact !== undefined)
  return facts.length === 0 ? '' : ` (${facts.join(': ')})`
}

const errorTexts: Partial<Record<YAMLParseError['code'], string>> = {
  BAD_INDENT: 'the indentation does not fit',
  MISSING_CHAR: 'a quote or a bracket is missing, or what it holds is not indented',
  TAB_AS_INDENT: 'a tab where spaces belong',
}

/** The mapping at a place in the values (`docs.staticExport`); undefined when there is none. */
export function valuesAt(values: Values, key: string): Values {
  return key.split('.').reduce<Values>((outer, part) => {
    const inner = outer && Object.hasOwn(outer, part) ? outer[part] : undefined
    return typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? (inner as Values)
      : undefined
  }, values)
}
