// A client of the emulator that hides nothing: what the wire showed is what it returns.
import { request } from 'node:http'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { createGunzip } from 'node:zlib'
import { extract } from 'tar-stream'
import type { Clock, Emulator } from '../../emulator/index.ts'

/** A clock that stands still until it is told how far to go. */
export class ManualClock implements Clock {
  nowMs = Date.parse('2026-03-01T10:00:00Z')

  now(): number {
    return this.nowMs
  }

  advance(seconds: number): void {
    this.nowMs += seconds * 1000
  }
}

export type Seen = {
  status: number | undefined
  headers: Record<string, string | string[] | undefined>
  body: Buffer
  /** Code of the error that ended the exchange, before or after the headers. */
  errorCode: string | undefined
}

export type Sent = { method?: string; headers?: Record<string, string>; body?: string }

/** One request on a connection of its own; it never rejects. */
export function send(
  url: string,
  { method = 'GET', headers = {}, body }: Sent = {},
): Promise<Seen> {
  return new Promise((resolve) => {
    const seen: Seen = {
      status: undefined,
      headers: {},
      body: Buffer.alloc(0),
      errorCode: undefined,
    }
    const end = (error?: NodeJS.ErrnoException) => {
      seen.errorCode ??= error?.code
      resolve(seen)
    }
    const outgoing = request(url, { method, headers, agent: false }, (incoming) => {
      seen.status = incoming.statusCode
      seen.headers = incoming.headers
      incoming.on('data', (chunk: Buffer) => {
        seen.body = Buffer.concat([seen.body, chunk])
      })
      incoming.on('error', end)
      incoming.on('end', () => {
        end()
      })
    })
    outgoing.on('error', end)
    outgoing.end(body)
  })
}

export function json(seen: Seen): unknown {
  return JSON.parse(seen.body.toString())
}

type Call = { key?: string; body?: unknown }

/** A request to the Admin API as a well-behaved client sends it. */
export function call(
  emulator: Emulator,
  method: string,
  path: string,
  { key = emulator.keys.good, body }: Call = {},
): Promise<Seen> {
  const type: Record<string, string> =
    body === undefined ? {} : { 'content-type': 'application/json' }
  return send(emulator.apiUrl + path, {
    method,
    headers: { authorization: `Bearer ${key}`, ...type },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
}

export type Job = {
  jobId: string
  status: string
  progress: number
  pageCount: number
  error: string | null
}

export const domain = 'docs.example.com'

export async function start(emulator: Emulator, body: object = {}): Promise<Job> {
  const seen = await call(emulator, 'POST', '/v1/static-export/jobs', { body: { domain, ...body } })
  return json(seen) as Job
}

export async function status(emulator: Emulator, jobId: string): Promise<Job> {
  return json(await call(emulator, 'GET', `/v1/static-export/jobs/${jobId}`)) as Job
}

export type Bundle = { jobId: string; bundleUrl: string; sizeBytes: number; expiresAt: string }

export async function bundle(emulator: Emulator, jobId: string): Promise<Bundle> {
  return json(await call(emulator, 'POST', `/v1/static-export/jobs/${jobId}/bundle`)) as Bundle
}

/** Exports to the end, by moving the clock of the emulator. */
export async function exportSite(emulator: Emulator, body: object = {}): Promise<Bundle> {
  const { jobId } = await start(emulator, body)
  emulator.advanceClock(1000)
  return bundle(emulator, jobId)
}

export async function unpack(archive: Buffer): Promise<Map<string, Buffer>> {
  const files = new Map<string, Buffer>()
  const entries = Readable.from([archive]).pipe(createGunzip()).pipe(extract())
  for await (const entry of entries) files.set(entry.header.name, await buffer(entry))
  return files
}
