/** The network: one request, one reply, nothing repeated, nothing followed. */
import { EventEmitter } from 'node:events'
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { HttpClient, getProxyUrl } from '@actions/http-client'

export interface NetworkRequest {
  readonly method: 'GET' | 'POST'
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | undefined
  /** Reading stops, with `body-too-large`, when the body of a success is longer. */
  readonly maxBodyBytes: number
}

export interface NetworkReply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** Sends a request once. Rejects with a {@link NetworkFault}, or with the reason of the signal. */
export type Network = (request: NetworkRequest, signal: AbortSignal) => Promise<NetworkReply>

export type NetworkFaultKind =
  'connection' | 'tls' | 'not-tls' | 'proxy' | 'not-http' | 'body-cut' | 'body-too-large'

/** A request that ended without a whole reply. The texts never hold a URL. */
export class NetworkFault extends Error {
  override readonly name = 'NetworkFault'
  readonly kind: NetworkFaultKind
  /** The error code of Node (`ECONNRESET`), of its HTTP parser (`HPE_…`), or a name of ours. */
  readonly code: string
  /** Whether the request may have reached the service. */
  readonly delivered: boolean

  constructor(
    kind: NetworkFaultKind,
    code: string,
    message: string,
    { delivered, cause }: { delivered: boolean; cause?: unknown },
  ) {
    super(message, { cause })
    this.kind = kind
    this.code = code
    this.delivered = delivered
  }
}

/** Enough of an error page to recognise it. */
const maxErrorBodyBytes = 64 * 1024

/** The real network, for requests to the API. */
export const systemNetwork: Network = ({ maxBodyBytes, ...request }, signal) =>
  send(request, signal, async (message) => {
    const status = message.statusCode ?? 0
    const success = status >= 200 && status < 300
    const body = await readBody(message, success ? maxBodyBytes : maxErrorBodyBytes, success)
    return { status, headers: message.headers, body }
  })

/** A reply whose body is read as it comes. */
export interface StreamedReply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Rejects with a {@link NetworkFault} when the body ends too early, or with the reason of the signal. */
  readonly chunks: AsyncIterable<Uint8Array>
}

/** Asks storage for a file; the signal also ends the body. Rejects as {@link Network} does. */
export type Storage = (
  url: URL,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
) => Promise<StreamedReply>

/** The real network, for downloads. */
export const systemStorage: Storage = (url, headers, signal) =>
  send({ method: 'GET', url, headers }, signal, (message) =>
    Promise.resolve(toStreamedReply(message, signal)),
  )

/** A request to storage that may also write there. */
export interface StorageRequest {
  readonly method: string
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  /** A stream is held back while an `Expect` among the headers lets the server refuse it unseen. */
  readonly body?: string | Readable | undefined
}

/** Sends a request to storage once; the signal also ends the body. Rejects as {@link Network} does. */
export type ObjectStorage = (request: StorageRequest, signal: AbortSignal) => Promise<StreamedReply>

/** The real network, for storage that is written to. */
export const systemObjectStorage: ObjectStorage = (request, signal) =>
  send(request, signal, (message) => Promise.resolve(toStreamedReply(message, signal)))

/** Not every server knows `Expect`. */
const longestHoldMs = 3_000

/**
 * A stream as the client takes it: a thing to pipe into the request. It begins when the server has asked for
 * it (`100 Continue`, RFC 9110, section 10.1.1), so that a refusal arrives as a reply, not as a connection
 * that breaks while gigabytes are on their way.
 */
function heldBack(stream: Readable): NodeJS.ReadableStream {
  const pipe = (request: ClientRequest) => {
    const begin = () => {
      release()
      stream.pipe(request)
    }
    const release = () => {
      clearTimeout(patience)
      request.off('continue', begin)
    }
    const patience = setTimeout(begin, longestHoldMs)
    request.once('continue', begin)
    request.once('response', release)
    request.once('close', release)
  }
  return Object.assign(new EventEmitter(), { pipe }) as unknown as NodeJS.ReadableStream
}

function toStreamedReply(message: IncomingMessage, signal: AbortSignal): StreamedReply {
  return {
    status: message.statusCode ?? 0,
    headers: message.headers,
    chunks: readChunks(message, signal),
  }
}

async function* readChunks(
  message: IncomingMessage,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  let sizeBytes = 0
  try {
    for await (const chunk of message as AsyncIterable<Buffer>) {
      sizeBytes += chunk.length
      yield chunk
    }
  } catch (error) {
    signal.throwIfAborted()
    throw bodyCut(message, sizeBytes, error)
  }
}

/**
 * Sends a request and hands over the reply as soon as its headers are there. `@actions/http-client` brings
 * the proxy of the environment; what the client does wrong is switched off or done here: it follows
 * redirects with the key in hand, leaves a cut body hanging for ever, reads without limit and cannot be
 * aborted.
 */
async function send<T>(
  request: StorageRequest,
  signal: AbortSignal,
  receive: (message: IncomingMessage) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted()
  const abortWithSignal = {
    prepareRequest(options: { signal?: AbortSignal; host?: string }) {
      options.signal = signal
      // The client passes the brackets of an IPv6 literal on, which Node takes for a host name.
      if (options.host) options.host = options.host.replace(/^\[(.*)\]$/, '$1')
    },
    canHandleAuthentication: () => false,
    handleAuthentication: () => Promise.reject(new Error('no authentication handler')),
  }
  const client = new HttpClient('static-export-action', [abortWithSignal], {
    allowRedirects: false,
    allowRetries: false,
  })
  // The signal ends the request, but not a proxy that was asked for a tunnel and keeps silent: hence the race.
  const aborted = Promise.withResolvers<never>()
  const onAbort = () => {
    aborted.reject(signal.reason as Error)
  }
  signal.addEventListener('abort', onAbort, { once: true })
  const exchange = async () => {
    const { method, url, body = null, headers } = request
    const holds = body instanceof Readable && 'Expect' in headers
    const content = holds ? heldBack(body) : body
    const { message } = await client.request(method, url.href, content, { ...headers })
    return receive(message)
  }
  try {
    return await Promise.race([exchange(), aborted.promise])
  } catch (error) {
    // The socket only says "aborted" or "socket hang up": what counts is why we pulled the plug.
    signal.throwIfAborted()
    throw error instanceof NetworkFault ? error : explain(error)
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

function bodyCut(message: IncomingMessage, sizeBytes: number, cause: unknown): NetworkFault {
  const of = message.headers['content-length']
  const amount = of === undefined ? `${sizeBytes} bytes` : `${sizeBytes} of ${Number(of)} bytes`
  const what = `the reply was cut off after ${amount}`
  return new NetworkFault('body-cut', 'ECONNRESET', what, { delivered: true, cause })
}

/** Reads to the end, to the limit, or to the point where the connection was lost. */
function readBody(message: IncomingMessage, maxBytes: number, success: boolean): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let sizeBytes = 0
    const finish = () => {
      resolve(
        Buffer.concat(chunks)
          .toString('utf8')
          .replace(/^\ufeff/, ''),
      )
    }
    const lost = (cause?: unknown) => {
      // Of an error reply the status is what counts; its text may end where it likes.
      if (!success) {
        finish()
        return
      }
      reject(bodyCut(message, sizeBytes, cause))
    }
    message.on('data', (chunk: Buffer) => {
      sizeBytes += chunk.length
      if (sizeBytes <= maxBytes) {
        chunks.push(chunk)
        return
      }
      message.destroy()
      if (success) {
        const limit = `the reply is longer than ${Math.round(maxBytes / 1024)} KiB`
        reject(new NetworkFault('body-too-large', 'TOO_LARGE', limit, { delivered: true }))
      } else finish()
    })
    message.on('end', () => {
      if (message.complete) finish()
      else lost()
    })
    message.on('error', lost)
    message.on('close', lost)
  })
}

const certificateCodes =
  /^(?:ERR_TLS_CERT_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH|INVALID_CA)/

const certificateTexts: Record<string, string> = {
  CERT_HAS_EXPIRED: 'the TLS certificate has expired',
  CERT_NOT_YET_VALID: 'the TLS certificate is not valid yet',
  ERR_TLS_CERT_ALTNAME_INVALID: 'the TLS certificate is for another host name',
}

const connectionTexts: Record<string, string> = {
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: 'the connection was closed before a reply',
  EPIPE: 'the connection was closed before a reply',
  ENOTFOUND: 'the host name could not be resolved',
  EAI_AGAIN: 'the host name could not be resolved for now',
  ETIMEDOUT: 'no answer within the time of the system',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the network cannot be reached',
}

/** Nothing was sent when the connection was never made. */
const neverSent = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'])

/** Names the cause of a transport error; its own text may hold a path with a query, so it is not repeated. */
function explain(error: unknown): NetworkFault {
  const { code, syscall } = detailsOf(error)
  const text = Error.isError(error) ? error.message : ''
  const fault = (kind: NetworkFaultKind, what: string, delivered = false, as = code) =>
    new NetworkFault(kind, as, what, { delivered, cause: error })

  const tunnel = /^tunneling socket could not be established, (?:statusCode=(\d{3}))?/.exec(text)
  if (tunnel?.[1]) return fault('proxy', `the proxy answered HTTP ${tunnel[1]}`, false, tunnel[1])
  if (tunnel) return fault('proxy', 'the proxy could not be reached')
  if (text.startsWith('got illegal response body from proxy')) {
    return fault('proxy', 'the proxy sent more than its answer')
  }
  // Ours is a valid URL, so it is the other one.
  if (code === 'ERR_INVALID_URL') {
    return fault('proxy', 'the proxy variable of the environment is not an address')
  }
  if (certificateCodes.test(code)) {
    return fault('tls', certificateTexts[code] ?? 'the TLS certificate was not trusted')
  }
  if (code === 'EPROTO' || /^ERR_(?:SSL|TLS)_/.test(code)) {
    return /wrong version number|packet length too long/.test(text)
      ? fault('not-tls', 'the server does not speak TLS on this port')
      : fault('tls', 'the TLS handshake failed')
  }
  if (code.startsWith('HPE_')) return fault('not-http', 'the reply is not valid HTTP', true)
  const connected =
    !neverSent.has(code) &&
    syscall !== 'connect' &&
    syscall !== 'getaddrinfo' &&
    !text.includes('before secure TLS connection was established')
  return fault('connection', connectionTexts[code] ?? 'the connection failed', connected)
}

/** What Node says about an error, or about the first one where each address of a host was tried. */
function detailsOf(error: unknown): { readonly code: string; readonly syscall: unknown } {
  if (typeof error !== 'object' || error === null) return { code: 'UNKNOWN', syscall: undefined }
  if ('errors' in error && Array.isArray(error.errors)) return detailsOf(error.errors[0])
  return {
    code: 'code' in error ? String(error.code) : 'UNKNOWN',
    syscall: 'syscall' in error ? error.syscall : undefined,
  }
}

/** How a host is reached, for the log: through which proxy, never with its credentials. */
export type Route =
  | { readonly via: 'direct' }
  | { readonly via: 'proxy'; readonly proxyHost: string }
  | { readonly via: 'unusable-proxy' }

/**
 * The route to a URL by `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`, as the client will take it: a proxy
 * variable that is not a URL makes it connect directly without a word, or throw.
 */
export function routeTo(
  url: URL,
  environment: Readonly<Record<string, string | undefined>>,
): Route {
  const name = url.protocol === 'https:' ? 'https_proxy' : 'http_proxy'
  const configured = environment[name] || environment[name.toUpperCase()] || ''
  try {
    const proxyHref = getProxyUrl(url.href)
    // `proxy.corp:8080` parses as a URL without a host, of the scheme `proxy.corp`.
    const proxyHost = proxyHref && new URL(proxyHref).host
    if (proxyHost) return { via: 'proxy', proxyHost }
    if (proxyHref) return { via: 'unusable-proxy' }
  } catch {
    return { via: 'unusable-proxy' }
  }
  // Passed by for this host, or passed over in silence.
  const silent = /^https?:\/\//.test(configured) && !isReadable(configured)
  return { via: silent ? 'unusable-proxy' : 'direct' }
}

function isReadable(proxyHref: string): boolean {
  try {
    const { username, password } = new URL(proxyHref)
    decodeURIComponent(username + password)
    return true
  } catch {
    return false
  }
}
