/** The values that the caller adds: checked before any request, as strictly as Helm and not much more. */
import type { Disk } from '../disk.ts'
import { Problem, parsePath } from '../input-reader.ts'
import { clean } from '../text.ts'
import { type ChartPlaces, kindOf } from './chart.ts'
import { type JsonRecord, isRecord } from './json.ts'
import { parseYaml } from './yaml.ts'

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
export type Values = JsonRecord | undefined

/** A release with its values must fit into a Secret of 1 MiB, compressed. */
const maxValuesBytes = 5 * 1024 * 1024

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
  const documents = parseYaml(text, shown)
  const filled = documents.filter((document) => document !== null)
  const [values] = filled
  if (values === undefined) return undefined
  if (filled.length > 1 || values !== documents[0]) {
    throw new Problem(
      `${shown} holds several YAML documents, of which Helm 3 reads the first and Helm 4 all; make them one.`,
    )
  }
  if (!isRecord(values)) {
    throw new Problem(`${shown} is YAML, but not a mapping of names to values, which Helm needs.`)
  }
  return values
}

/** The mapping at a place in the values (`docs.staticExport`); undefined when there is none. */
export function valuesAt(values: unknown, key: string): Values {
  const found = key.split('.').reduce((outer, part) => {
    return isRecord(outer) && Object.hasOwn(outer, part) ? outer[part] : undefined
  }, values)
  return isRecord(found) ? found : undefined
}
