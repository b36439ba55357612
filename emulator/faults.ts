import { gzipSync } from 'node:zlib'
import { jsonReply, type Delivery, type Reply, type Request } from './message.ts'
import { isRecord } from './record.ts'
import { s3ErrorReply } from './s3-error.ts'

/** The four endpoints, by the operation ids of openapi.yaml, and reading from storage. */
export const operations = ['start', 'status', 'bundle', 'agent', 'download'] as const
export type Operation = (typeof operations)[number]

const bodyNames = ['error', 'xml', 'html', 'empty', 'null', 'array', 'huge'] as const
type BodyName = (typeof bodyNames)[number]

/** Which requests a fault meets: of one operation, after `skip` of them, `times` (1) in a row. */
type Aim = { operation: Operation | 'any'; skip?: number; times?: number | 'always' }

/** With `processed` the service does what was asked, and only the answer is lost. */
type Processed = { processed?: boolean }

/** Something that goes wrong between the service and its client, as data. */
export type Fault = Aim &
  (
    | ({
        kind: 'reply'
        status: number
        body?: BodyName
        text?: string
        contentType?: string
        retryAfter?: string | number
      } & Processed)
    | { kind: 'redirect'; location: string; status?: number }
    | ({ kind: 'reset' | 'fin'; afterBytes?: number } & Processed)
    | ({ kind: 'silence' } & Processed)
    | { kind: 'drip-headers' | 'drip-body'; bytesPerSecond?: number }
    | { kind: 'content-length'; difference: number }
    | { kind: 'no-content-length' | 'gzip' | 'ignore-range' | 'changed-etag' | 'corrupt' }
  )

type Kind = Fault['kind']

/** A fault that cannot be: the message says what there is instead. */
export class FaultSyntaxError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'FaultSyntaxError'
  }
}

const fields = {
  skip: isCount,
  times: (value: unknown) => value === 'always' || (isCount(value) && value > 0),
  status: (value: unknown) => isCount(value) && value >= 200 && value <= 999,
  body: (value: unknown) => bodyNames.some((name) => name === value),
  text: isText,
  contentType: isText,
  retryAfter: (value: unknown) => isText(value) || isCount(value),
  processed: (value: unknown) => typeof value === 'boolean',
  location: isText,
  afterBytes: isCount,
  bytesPerSecond: (value: unknown) => isCount(value) && value > 0,
  difference: Number.isInteger,
} satisfies Record<string, (value: unknown) => boolean>

type Field = keyof typeof fields

/** What each kind means, and the fields that it needs or takes besides `skip` and `times`. */
export const kinds: Record<
  Kind,
  { meaning: string; needs: readonly Field[]; takes: readonly Field[] }
> = {
  reply: {
    meaning: `answer with this status instead; body: ${bodyNames.join(', ')}, or any text`,
    needs: ['status'],
    takes: ['body', 'contentType', 'retryAfter', 'processed', 'text'],
  },
  redirect: {
    meaning: 'answer with a redirect (307)',
    needs: ['location'],
    takes: ['status'],
  },
  reset: {
    meaning: 'reset the connection: before the reply, or after so many bytes of its body',
    needs: [],
    takes: ['afterBytes', 'processed'],
  },
  fin: {
    meaning: 'the same, but close it properly',
    needs: [],
    takes: ['afterBytes', 'processed'],
  },
  silence: {
    meaning: 'accept the request and never answer',
    needs: [],
    takes: ['processed'],
  },
  'drip-headers': {
    meaning: 'send the reply slowly (10)',
    needs: [],
    takes: ['bytesPerSecond'],
  },
  'drip-body': {
    meaning: 'send the headers, then the body slowly (10)',
    needs: [],
    takes: ['bytesPerSecond'],
  },
  'content-length': {
    meaning: 'claim a body that is longer (or shorter, below 0) than the one sent',
    needs: ['difference'],
    takes: [],
  },
  'no-content-length': {
    meaning: 'send no length: the body ends with the connection',
    needs: [],
    takes: [],
  },
  gzip: {
    meaning: 'compress the body, with content-encoding, though nobody asked',
    needs: [],
    takes: [],
  },
  'ignore-range': { meaning: 'answer a range with the whole', needs: [], takes: [] },
  'changed-etag': { meaning: 'behave as if the object had been replaced', needs: [], takes: [] },
  corrupt: { meaning: 'flip the bits of the byte in the middle of the body', needs: [], takes: [] },
}

/**
 * Reads `OPERATION:KIND[:NAME=VALUE]…`, where a status stands for the kind `reply`, as in
 * `status:503:times=2:retry-after=1`. `text=` and `location=` take all that follows.
 * Throws a FaultSyntaxError.
 */
export function parseFault(flag: string): Fault {
  const [, short = '', rest] = /^(.*?)(?::((?:text|location)=.*))?$/s.exec(flag) ?? []
  const [operation, kind = '', ...options] = short.split(':')
  const fault: Record<string, unknown> = /^\d+$/.test(kind)
    ? { operation, kind: 'reply', status: Number(kind) }
    : { operation, kind }
  for (const option of options) {
    const [, name = '', text] = /^([^=]*)(?:=(.*))?$/s.exec(option) ?? []
    const value = text !== undefined && /^-?\d+$/.test(text) ? Number(text) : text
    fault[camelCase(name)] = value ?? true
  }
  if (rest !== undefined) {
    const [name = '', ...text] = rest.split('=')
    fault[name] = text.join('=')
  }
  return checkFault(fault)
}

/** Makes sure that a value from outside is a Fault. Throws a FaultSyntaxError. */
export function checkFault(value: unknown): Fault {
  if (!isRecord(value)) throw new FaultSyntaxError('a fault is an object')
  const { operation, kind, ...rest } = value
  if (operation !== 'any' && !operations.some((one) => one === operation)) {
    throw new FaultSyntaxError(
      `unknown operation "${String(operation)}"; there are ${operations.join(', ')} and any`,
    )
  }
  if (typeof kind !== 'string' || !Object.hasOwn(kinds, kind)) {
    throw new FaultSyntaxError(
      `unknown kind "${String(kind)}"; there are ${Object.keys(kinds).join(', ')}, or a status`,
    )
  }
  const { needs, takes } = kinds[kind as Kind]
  const known: readonly string[] = ['skip', 'times', ...needs, ...takes]
  for (const [name, given] of Object.entries(rest)) {
    if (!known.includes(name)) {
      const names = known.map(kebabCase).join(', ')
      throw new FaultSyntaxError(`${kind} does not take "${kebabCase(name)}"; it takes ${names}`)
    }
    if (!fields[name as Field](given)) {
      throw new FaultSyntaxError(`${kebabCase(name)} cannot be ${JSON.stringify(given)}`)
    }
  }
  for (const name of needs) {
    if (!Object.hasOwn(rest, name)) throw new FaultSyntaxError(`${kind} needs ${kebabCase(name)}`)
  }
  return value as Fault
}

/** Faults that are waiting for their requests. */
export class Faults {
  #waiting: { fault: Fault; skip: number; times: number }[] = []

  add(fault: Fault): void {
    const { skip = 0, times = 1 } = fault
    this.#waiting.push({ fault, skip, times: times === 'always' ? Infinity : times })
  }

  clear(): void {
    this.#waiting = []
  }

  /** Those that have not met all their requests yet, in the order they were added. */
  list(): Fault[] {
    return this.#waiting.map(({ fault, skip, times }) => ({
      ...fault,
      skip,
      times: times === Infinity ? 'always' : times,
    }))
  }

  /** The fault that this request meets: the first that fits. Those before it count it as skipped. */
  next(operation: Operation | undefined): Fault | undefined {
    for (const waiting of this.#waiting) {
      const { fault } = waiting
      if (fault.operation !== 'any' && fault.operation !== operation) continue
      if (waiting.skip > 0) {
        waiting.skip -= 1
        continue
      }
      waiting.times -= 1
      this.#waiting = this.#waiting.filter(({ times }) => times > 0)
      return fault
    }
    return undefined
  }
}

/** What becomes of a request that meets a fault. `process` is the service, working as it should. */
export async function applyFault(
  fault: Fault,
  request: Request,
  operation: Operation | undefined,
  process: (request: Request) => Promise<Reply>,
): Promise<Delivery> {
  switch (fault.kind) {
    case 'reply': {
      if (fault.processed) await process(request)
      const { status, contentType, retryAfter } = fault
      const reply = cannedReply(status, fault.body, operation)
      if (fault.text !== undefined) reply.body = Buffer.from(fault.text)
      if (contentType !== undefined) reply.headers['content-type'] = contentType
      if (retryAfter !== undefined) reply.headers['retry-after'] = String(retryAfter)
      return { reply, ending: 'complete' }
    }
    case 'redirect': {
      const headers = { location: fault.location }
      const reply = { status: fault.status ?? 307, headers, body: Buffer.alloc(0) }
      return { reply, ending: 'complete' }
    }
    case 'reset':
    case 'fin': {
      const { kind: ending, afterBytes, processed } = fault
      if (afterBytes !== undefined) {
        return { reply: await process(request), bodyBytes: afterBytes, ending }
      }
      if (processed) await process(request)
      return { ending }
    }
    case 'silence':
      if (fault.processed) await process(request)
      return { ending: 'hold' }
    case 'drip-headers':
    case 'drip-body': {
      const from = fault.kind === 'drip-headers' ? 'headers' : 'body'
      const drip = { from, bytesPerSecond: fault.bytesPerSecond ?? 10 } as const
      return { reply: await process(request), drip, ending: 'fin' }
    }
    case 'content-length': {
      const reply = await process(request)
      const length = Math.max(0, reply.body.length + fault.difference)
      return { reply: withHeaders(reply, { 'content-length': String(length) }), ending: 'fin' }
    }
    case 'no-content-length':
      return { reply: withHeaders(await process(request), { 'content-length': '' }), ending: 'fin' }
    case 'gzip': {
      const reply = withHeaders(await process(request), { 'content-encoding': 'gzip' })
      return { reply: { ...reply, body: gzipSync(reply.body) }, ending: 'complete' }
    }
    case 'ignore-range': {
      const headers = { ...request.headers }
      delete headers.range
      return { reply: await process({ ...request, headers }), ending: 'complete' }
    }
    case 'changed-etag': {
      const etag = '"00000000000000000000000000000000"'
      const { 'if-match': ifMatch, 'if-range': ifRange, ...rest } = request.headers
      const headers = {
        ...rest,
        ...(ifMatch === undefined ? {} : { 'if-match': etag }),
        ...(ifRange === undefined ? {} : { 'if-range': etag }),
      }
      const reply = await process({ ...request, headers })
      return {
        reply: reply.status < 300 ? withHeaders(reply, { etag }) : reply,
        ending: 'complete',
      }
    }
    case 'corrupt': {
      const reply = await process(request)
      const middle = Math.floor(reply.body.length / 2)
      const body = reply.body.map((byte, at) => (at === middle ? byte ^ 0xff : byte))
      return { reply: { ...reply, body: Buffer.from(body) }, ending: 'complete' }
    }
  }
}

function withHeaders(reply: Reply, headers: Record<string, string>): Reply {
  return { ...reply, headers: { ...reply.headers, ...headers } }
}

/** The size of a reply that is meant to be too much for any sane reader of JSON. */
const hugeBytes = 3_000_000

function cannedReply(
  status: number,
  body: BodyName = 'error',
  operation: Operation | undefined,
): Reply {
  const raw = (contentType: string, text: string): Reply => ({
    status,
    headers: { 'content-type': contentType },
    body: Buffer.from(text),
  })
  switch (body) {
    case 'error':
      // Each service speaks its own language.
      if (operation === 'download') return cannedReply(status, 'xml', operation)
      return jsonReply(status, { error: `Emulated ${status}.` })
    case 'xml': {
      const codes: Record<number, string> = {
        403: 'AccessDenied',
        404: 'NoSuchKey',
        503: 'SlowDown',
      }
      const code = codes[status] ?? 'InternalError'
      return s3ErrorReply({ status, code, message: `Emulated ${status}.` })
    }
    case 'html':
      return raw(
        'text/html; charset=utf-8',
        `<!doctype html><title>${status}</title><h1>A page of some gateway, emulated</h1>\n`,
      )
    case 'empty':
      return raw('application/json', '')
    case 'null':
      return raw('application/json', 'null')
    case 'array':
      return raw('application/json', '[]')
    case 'huge':
      return jsonReply(status, { error: 'x'.repeat(hugeBytes) })
  }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

function camelCase(name: string): string {
  return name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

export function kebabCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}
