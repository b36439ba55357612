import { statSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { reports } from './api.ts'
import { curves } from './export-jobs.ts'
import { FaultSyntaxError, kebabCase, kinds, operations, parseFault } from './faults.ts'
import { defaults, type EmulatorOptions } from './options.ts'
import { maxLifetimeSeconds } from './signature.ts'

/** A command line that cannot be followed; each line of the message is one thing wrong with it. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'UsageError'
  }
}

type Flag = {
  /** Where its value goes. */
  option: keyof EmulatorOptions
  meaning: string
  /** Name of the value in --help and what it must be; a flag without one switches something on. */
  value?: string
  read?: (text: string) => unknown
  /** May be repeated. */
  list?: true
  /** In --help, when it is not that of the option. */
  default?: string
}

const curveNames = Object.keys(curves)

/** Ports that a person can remember; a program lets the system choose. */
const ports = { port: 4010, storagePort: 4011 }

/** Every flag but --help, once: parser and help are made from this, the README is checked by it. */
export const flags: Record<string, Flag> = {
  port: {
    option: 'port',
    value: 'PORT',
    read: portNumber,
    default: String(ports.port),
    meaning: 'port of the Admin API; 0 takes any free one',
  },
  'storage-port': {
    option: 'storagePort',
    value: 'PORT',
    read: portNumber,
    default: String(ports.storagePort),
    meaning: 'port of the object storage; 0 takes any free one',
  },
  host: { option: 'host', value: 'HOST', read: String, meaning: 'address to listen on' },
  'public-url': {
    option: 'publicUrl',
    value: 'URL',
    read: origin,
    meaning: 'where clients reach the API, when that is elsewhere',
  },
  'storage-public-url': {
    option: 'storagePublicUrl',
    value: 'URL',
    read: origin,
    meaning: 'where clients reach the storage, when that is elsewhere: links are signed for it',
  },
  site: {
    option: 'siteDirectory',
    value: 'DIR',
    read: directory,
    default: 'the sample site',
    meaning: 'folder of Markdown to export',
  },
  domain: {
    option: 'domains',
    value: 'NAME',
    read: hostName,
    list: true,
    meaning: 'host name of a site that may be exported; repeatable',
  },
  'queue-seconds': {
    option: 'queueSeconds',
    value: 'N',
    read: seconds,
    meaning: 'how long a job is queued',
  },
  'job-seconds': {
    option: 'jobSeconds',
    value: 'N',
    read: seconds,
    meaning: 'how long it runs after that',
  },
  curve: {
    option: 'curve',
    value: 'NAME',
    read: oneOf(curveNames),
    meaning: `how the work goes on meanwhile: ${curveNames.join(', ')}`,
  },
  report: {
    option: 'report',
    value: 'NAME',
    read: oneOf(reports),
    meaning: `how the status tells it: ${reports.join(', ')}`,
  },
  'link-seconds': {
    option: 'linkSeconds',
    value: 'N',
    read: lifetime,
    meaning: 'how long a download link is good',
  },
  'starts-per-hour': {
    option: 'startsPerHour',
    value: 'N',
    read: count,
    default: 'no limit',
    meaning: 'answer 429 to starts beyond so many',
  },
  'retry-after': { option: 'retryAfter', meaning: 'say in that 429 when to try again' },
  'one-export-per-site': {
    option: 'oneExportPerSite',
    meaning: 'answer 409 to a start while that domain is being exported',
  },
  'agent-seconds': {
    option: 'agentSeconds',
    value: 'N',
    read: seconds,
    meaning: 'when the agent job "agent-finishing" completes',
  },
  fault: {
    option: 'faults',
    value: 'FAULT',
    read: parseFault,
    list: true,
    meaning: 'something that goes wrong, see below; repeatable',
  },
  seed: {
    option: 'seed',
    value: 'TEXT',
    read: String,
    default: 'random',
    meaning: 'makes job ids the same in each run',
  },
}

/**
 * The options that a command line asks for, or `help` when it asks for that.
 * Throws a UsageError that names everything that is wrong with it.
 */
export function readCommandLine(args: string[]): EmulatorOptions | 'help' {
  const { tokens } = parseArgs({
    args,
    // Its own checks stop at the first problem.
    strict: false,
    tokens: true,
    options: Object.fromEntries(
      Object.entries(flags).map(([name, flag]) => [
        name,
        { type: flag.read === undefined ? 'boolean' : 'string' },
      ]),
    ),
  })
  const options: Record<string, unknown> = { ...ports }
  const problems: string[] = []
  for (const token of tokens) {
    if (token.kind === 'option-terminator') continue
    if (token.kind === 'positional') {
      problems.push(`unexpected argument "${token.value}"`)
      continue
    }
    if (token.name === 'help') return 'help'
    const flag = Object.hasOwn(flags, token.name) ? flags[token.name] : undefined
    try {
      if (flag === undefined) throw new UsageError('there is no such flag')
      const value = valueOf(flag, token.value)
      const previous = options[flag.option]
      options[flag.option] = flag.list
        ? [...(Array.isArray(previous) ? (previous as unknown[]) : []), value]
        : value
    } catch (error) {
      if (!(error instanceof UsageError || error instanceof FaultSyntaxError)) throw error
      problems.push([token.rawName, token.value].filter(Boolean).join(' ') + `: ${error.message}`)
    }
  }
  if (problems.length > 0) throw new UsageError(problems.join('\n'))
  return options
}

function valueOf(flag: Flag, text: string | undefined): unknown {
  if (flag.read === undefined) {
    if (text !== undefined) throw new UsageError('takes no value')
    return true
  }
  if (text === undefined) throw new UsageError(`needs a value (${flag.value ?? ''})`)
  return flag.read(text)
}

export function helpText(): string {
  const flagLines = Object.entries(flags).map(([name, flag]) => {
    const initial = flag.default ?? defaultOf(flag.option)
    return line(
      `--${name}${flag.value === undefined ? '' : ` ${flag.value}`}`,
      flag.meaning + (initial === undefined ? '' : ` (${initial})`),
    )
  })
  const kindLines = Object.entries(kinds).map(([kind, { meaning, needs, takes }]) => {
    const options = [
      ...needs.map((field) => `${kebabCase(field)}=…`),
      ...takes.map((field) => `[${kebabCase(field)}]`),
    ]
    return `  ${[kind, ...options].join(' ')}\n      ${meaning}`
  })
  return `Usage: npm run emulator -- [flags]

A local Admin API with object storage, for trying out and testing its clients.

Flags (default):
${flagLines.join('\n')}
${line('--help', 'show this')}

FAULT is OPERATION:KIND[:NAME=VALUE]…
  OPERATION  ${operations.join(', ')} or any
  skip=N     let so many of these requests pass first (0)
  times=N    then meet so many, or "always" (1)
  text= and location= come last, since they take all that follows.
  A status alone, as in "status:503", is the kind reply.

Kinds of faults:
${kindLines.join('\n')}

Examples:
  --fault status:503:times=2:retry-after=1    two polls are answered 503, then all is well
  --fault start:reset:processed               the job starts, but nobody is told
  --fault bundle:200:body=html                a page where JSON should be
  --fault download:fin:after-bytes=1000       the archive breaks off
  --fault any:silence:skip=5                  the sixth request is never answered
`
}

const column = 28

function line(term: string, meaning: string): string {
  return `  ${term.padEnd(column)}${meaning}`
}

function defaultOf(option: keyof EmulatorOptions): string | undefined {
  const value: unknown = (defaults as EmulatorOptions)[option]
  if (typeof value === 'string' || typeof value === 'number') return String(value)
  return Array.isArray(value) && value.length > 0 ? value.join(', ') : undefined
}

function portNumber(text: string): number {
  if (/^\d+$/.test(text) && Number(text) <= 65535) return Number(text)
  throw new UsageError('must be a port, 0 to 65535')
}

function seconds(text: string): number {
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text)
  throw new UsageError('must be a number of seconds')
}

function lifetime(text: string): number {
  const lifetimeSeconds = count(text)
  if (lifetimeSeconds <= maxLifetimeSeconds) return lifetimeSeconds
  throw new UsageError(`must be at most ${maxLifetimeSeconds}, a week: no link can be good longer`)
}

function count(text: string): number {
  if (/^[1-9]\d*$/.test(text)) return Number(text)
  throw new UsageError('must be a whole number, 1 or more')
}

function origin(text: string): string {
  const url = URL.parse(text)
  if (url !== null && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`) {
    return url.origin
  }
  throw new UsageError('must be an origin such as http://host.example:4010, without a path')
}

function directory(text: string): string {
  if (statSync(text, { throwIfNoEntry: false })?.isDirectory()) return text
  throw new UsageError('is not a folder')
}

function hostName(text: string): string {
  if (/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(text)) return text
  throw new UsageError('must be a host name, without scheme, port or path')
}

function oneOf(names: readonly string[]): (text: string) => string {
  return (text) => {
    if (names.includes(text)) return text
    throw new UsageError(`must be one of ${names.join(', ')}`)
  }
}
