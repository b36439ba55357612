import { createHash } from 'node:crypto'
import type { Clock } from './clock.ts'
import { pathOf, type Reply, type Request } from './message.ts'
import { s3ErrorReply, type S3Error } from './s3-error.ts'
import { presign, problemWithLink, type Credentials } from './signature.ts'

type StoredObject = { bytes: Buffer; etag: string; lastModified: string }

/** Open nothing but the emulator. */
export const storageCredentials: Credentials = {
  accessKeyId: 'EMULATORACCESSKEY',
  secretAccessKey: 'emulator-secret-access-key',
  region: 'us-east-1',
}

export const bucket = 'static-exports'

/** Objects that can be read through presigned links, path-style, and in no other way. */
export class ObjectStorage {
  readonly #clock: Clock
  readonly #newRequestId: () => string
  readonly #objects = new Map<string, StoredObject>()

  constructor(clock: Clock, newRequestId: () => string) {
    this.#clock = clock
    this.#newRequestId = newRequestId
  }

  /** Storing the same bytes again changes nothing, not even the time of the last change. */
  put(key: string, bytes: Buffer): void {
    if (this.#objects.get(key)?.bytes.equals(bytes)) return
    this.#objects.set(key, {
      bytes,
      // As S3 does for an object that was put in one part.
      etag: `"${createHash('md5').update(bytes).digest('hex')}"`,
      lastModified: new Date(this.#clock.now()).toUTCString(),
    })
  }

  /** A fresh link below `baseUrl`, and when it ends; signatures count whole seconds. */
  async link(
    baseUrl: string,
    key: string,
    lifetimeSeconds: number,
  ): Promise<{ url: string; expiresAtMs: number }> {
    const nowMs = Math.floor(this.#clock.now() / 1000) * 1000
    const path = `${bucket}/${key}`.split('/').map(encodeURIComponent).join('/')
    const url = await presign(`${baseUrl}/${path}`, storageCredentials, nowMs, lifetimeSeconds)
    return { url, expiresAtMs: nowMs + lifetimeSeconds * 1000 }
  }

  answer(request: Request): Reply {
    const requestId = this.#newRequestId()
    const answer = this.#find(request)
    const reply =
      'code' in answer
        ? s3ErrorReply({
            ...answer,
            details: { ...answer.details, RequestId: requestId, HostId: 'emulator' },
          })
        : answer
    return { ...reply, headers: { ...reply.headers, 'x-amz-request-id': requestId } }
  }

  #find(request: Request): Reply | S3Error {
    let path: string
    try {
      path = decodeURIComponent(pathOf(request))
    } catch {
      return { status: 400, code: 'InvalidURI', message: "Couldn't parse the specified URI." }
    }
    const problem = problemWithLink(request, storageCredentials, this.#clock.now())
    if (problem !== undefined) return problem
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return {
        status: 405,
        code: 'MethodNotAllowed',
        message: 'The specified method is not allowed against this resource.',
      }
    }
    const key = path.startsWith(`/${bucket}/`) ? path.slice(bucket.length + 2) : undefined
    const object = key === undefined ? undefined : this.#objects.get(key)
    if (object === undefined) {
      return {
        status: 404,
        code: 'NoSuchKey',
        message: 'The specified key does not exist.',
        details: { Key: key ?? path },
      }
    }
    return read(object, request)
  }
}

/** Conditions and a range, in the order of RFC 9110, section 13.2.2. */
function read(object: StoredObject, request: Request): Reply | S3Error {
  const { range, 'if-match': ifMatch, 'if-range': ifRange } = request.headers
  if (ifMatch !== undefined && ifMatch !== '*' && !ifMatch.split(/ *, */).includes(object.etag)) {
    return {
      status: 412,
      code: 'PreconditionFailed',
      message: 'At least one of the pre-conditions you specified did not hold',
      details: { Condition: 'If-Match' },
    }
  }
  const headers = {
    'content-type': 'application/gzip',
    'accept-ranges': 'bytes',
    etag: object.etag,
    'last-modified': object.lastModified,
  }
  const size = object.bytes.length
  const changed = ifRange !== undefined && ifRange !== object.etag
  const part = range === undefined || changed ? undefined : parseRange(range, size)
  if (part === undefined) return { status: 200, headers, body: object.bytes }
  if (part.first > part.last) {
    return {
      status: 416,
      code: 'InvalidRange',
      message: 'The requested range is not satisfiable',
      details: { RangeRequested: range ?? '', ActualObjectSize: String(size) },
    }
  }
  return {
    status: 206,
    headers: { ...headers, 'content-range': `bytes ${part.first}-${part.last}/${size}` },
    body: object.bytes.subarray(part.first, part.last + 1),
  }
}

/**
 * One range of bytes; `first > last` when it lies outside. Anything else, several ranges included,
 * is ignored, as S3 does and RFC 9110, section 14.2, allows.
 */
function parseRange(range: string, size: number): { first: number; last: number } | undefined {
  const [, from = '', to = ''] = /^bytes=(\d*)-(\d*)$/.exec(range.trim()) ?? []
  if (from === '' && to === '') return undefined
  if (from === '') return { first: Math.max(0, size - Number(to)), last: size - 1 }
  if (to !== '' && Number(to) < Number(from)) return undefined
  return { first: Number(from), last: Math.min(size - 1, to === '' ? Infinity : Number(to)) }
}
