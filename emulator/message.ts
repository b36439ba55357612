import type { IncomingHttpHeaders } from 'node:http'

/** What a client sent, as a value: everything that answers is a function of this. */
export type Request = {
  method: string
  /** Path and query exactly as sent; a signature covers their spelling. */
  target: string
  headers: IncomingHttpHeaders
  body: string
}

/** What it is told. Names of headers are in lower case; the server adds length and date. */
export type Reply = {
  status: number
  headers: Record<string, string>
  body: Buffer
}

/** A reply together with how it reaches, or does not reach, the client. */
export type Delivery = {
  /** Without a reply not one byte is sent. */
  reply?: Reply
  /** Send no more than this of the body. */
  bodyBytes?: number
  /** Send slowly, from there on. */
  drip?: { from: 'headers' | 'body'; bytesPerSecond: number }
  /** `complete` keeps the connection usable; the others show the client a broken one. */
  ending: 'complete' | 'fin' | 'reset' | 'hold'
}

export function pathOf(request: Request): string {
  return request.target.split('?', 1)[0] ?? ''
}

export function jsonReply(
  status: number,
  value: unknown,
  headers: Record<string, string> = {},
): Reply {
  return {
    status,
    headers: { 'content-type': 'application/json', ...headers },
    body: Buffer.from(JSON.stringify(value)),
  }
}
