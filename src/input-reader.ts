/** Reading inputs: each by its own parser, all problems together, and the parsers that the actions share. */
import path from 'node:path'
import { keyPattern } from './chart-values.ts'
import { Failure } from './errors.ts'
import { idPattern } from './export-job.ts'
import { isLoopback } from './link.ts'
import { clean, shortestSecretLength } from './text.ts'

/** Thrown when inputs are wrong: one failure for all of them. */
export class InvalidInputs extends Failure {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    const [only = ''] = problems
    const all = problems.map((problem) => `- ${problem}`).join('\n')
    super(
      'config',
      problems.length === 1 ? only : `${problems.length} inputs need to be corrected:\n${all}`,
    )
    this.problems = problems
  }
}

export interface InputReader<Name extends string> {
  /** Whether anything but white space is given: an expression without a value arrives as an empty string. */
  readonly isGiven: (name: Name) => boolean
  /** The value of an input by a parser that throws its {@link Problem}; the fallback for an empty one. */
  readonly take: <T>(name: Name, parse: (text: string, name: string) => T, fallback: T) => T
  /** Adds a problem to those that are told together. */
  readonly reject: (problem: string) => void
  readonly problems: readonly string[]
}

/** @param read gives the text of an input, or an empty string */
export function createInputReader<Name extends string>(
  read: (name: Name | 'api-key') => string,
): InputReader<Name> {
  const problems: string[] = []
  const pastedKey = read('api-key').trim()
  const holdsKey = (text: string) =>
    pastedKey.length >= shortestSecretLength && text.includes(pastedKey)

  return {
    problems,
    isGiven: (name) => read(name).trim() !== '',
    reject(problem) {
      problems.push(problem)
    },
    take(name, parse, fallback) {
      const text = read(name).trim()
      if (text === '') return fallback
      // What is pasted into the wrong place must be neither used nor repeated.
      if (name !== 'api-key' && holdsKey(text)) {
        problems.push(`\`${name}\` holds the API key, which belongs into \`api-key\` alone.`)
        return fallback
      }
      try {
        return parse(text, name)
      } catch (error) {
        if (!(error instanceof Problem)) throw error
        problems.push(error.message)
        return fallback
      }
    },
  }
}

/** What is wrong with one input: thrown by its parser, caught by the reader. */
export class Problem extends Error {}

/**
 * Reads how the Admin API is reached.
 *
 * @param warn is told what is allowed, but probably a mistake
 */
export function takeAccess(
  reader: InputReader<'api-key' | 'base-url'>,
  warn: (message: string) => void,
): { readonly apiKey: string; readonly baseUrl: URL | undefined } {
  const apiKey = reader.take('api-key', parseApiKey, '')
  if (!reader.isGiven('api-key')) {
    reader.reject(
      '`api-key` is empty. Is the secret defined, and available to this event? (Pull requests from forks get none.)',
    )
  } else if (apiKey !== '') {
    if (apiKey.length < 16) warn('`api-key` is shorter than any admin key; is it whole?')
    else if (!/^[A-Za-z]+_/.test(apiKey)) {
      warn('`api-key` does not begin with a name and an underscore, as admin keys do.')
    }
  }

  const baseUrl = reader.take('base-url', parseBaseUrl, undefined)
  if (!reader.isGiven('base-url')) {
    reader.reject(
      '`base-url` is missing: the root address of the Admin API, such as https://api.example.com.',
    )
  } else if (baseUrl && /\/v[12]$/.test(baseUrl.pathname)) {
    warn(
      '`base-url` ends in a version. It should be the root of the Admin API, without /v1 or /v2.',
    )
  }
  return { apiKey, baseUrl }
}

/** The key is never repeated in a problem. */
function parseApiKey(text: string): string {
  if (/^bearer\s/i.test(text)) {
    throw new Problem('`api-key` begins with the word Bearer. Store the key alone in the secret.')
  }
  if (!/^[\x21-\x7e]+$/.test(text)) {
    throw new Problem(
      '`api-key` holds a character that no key has (a pasted newline, space or ellipsis?). Copy the key again, whole and alone.',
    )
  }
  return text
}

function parseBaseUrl(text: string): URL {
  if (/\s/.test(text)) throw new Problem('`base-url` holds white space; it is one address.')
  const url = URL.parse(text)
  const isWeb = url?.protocol === 'https:' || url?.protocol === 'http:'
  if (isWeb ? url.username !== '' || url.password !== '' : text.includes('@')) {
    throw new Problem('`base-url` holds a user name or password; the key goes into `api-key`.')
  }
  const seen = clean(text.replace(/[?#].*/, ''), 200)
  if (!isWeb) {
    const bare = seen.replace(/^\/+/, '')
    const isHost = !bare.includes('://') && URL.parse(`https://${bare}`)?.hostname.includes('.')
    const suggestion = isHost ? `: did you mean https://${bare}?` : '.'
    throw new Problem(`\`base-url\` is not an https address ("${seen}")${suggestion}`)
  }
  if (url.search !== '' || url.hash !== '') {
    throw new Problem(`\`base-url\` has a query or a fragment behind ${seen}; leave it out.`)
  }
  if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
    throw new Problem(
      `\`base-url\` must be https, so that the key cannot be read on the way ("${seen}").`,
    )
  }
  url.pathname = url.pathname.replace(/\/+$/, '')
  url.search = url.hash = '' // takes an empty one away
  return url
}

export function parseId(text: string, name: string): string {
  if (idPattern.test(text)) return text
  throw new Problem(
    `\`${name}\` is not an id: letters, digits, - and _, at most 128 ("${clean(text, 80)}").`,
  )
}

export function parseVersion(text: string): string {
  if (/^[\x20-\x7e]{1,128}$/.test(text)) return text
  throw new Problem('`version` must be 1 to 128 printable ASCII characters on one line.')
}

export function parsePath(text: string, name: string, workspace: string): string {
  // eslint-disable-next-line no-control-regex
  if (/[\u0000-\u001f\u007f]/.test(text)) {
    throw new Problem(`\`${name}\` holds a control character ("${clean(text, 200)}").`)
  }
  if (/^~(?:\/|$)/.test(text)) {
    throw new Problem(`\`${name}\` begins with ~, which only a shell understands; write it out.`)
  }
  return path.resolve(workspace, text)
}

export function parseValuesKey(text: string): string {
  if (keyPattern.test(text) && text.length <= 200) return text
  throw new Problem(
    `\`values-key\` is a name, or names with dots between them, such as docs.staticExport ("${clean(text, 80)}").`,
  )
}

export function decimal(min: number, max: number, unit: string) {
  return (text: string, name: string): number => {
    const value = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : NaN
    if (value > 0 && value >= min && value <= max) return value
    const range = min === 0 ? `above 0 and at most ${max}` : `from ${min} to ${max}`
    throw new Problem(
      `\`${name}\` is a number of ${unit} ${range}, without a unit ("${clean(text, 40)}").`,
    )
  }
}

/** The booleans of YAML 1.2's core schema, as `core.getBooleanInput` reads them. */
export function parseBoolean(text: string, name: string): boolean {
  if (/^(?:true|True|TRUE)$/.test(text)) return true
  if (/^(?:false|False|FALSE)$/.test(text)) return false
  throw new Problem(`\`${name}\` is true or false ("${clean(text, 40)}").`)
}
