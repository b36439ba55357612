import { createServer, STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { buffer } from 'node:stream/consumers'
import type { Clock } from './clock.ts'
import type { Delivery, Reply, Request } from './message.ts'

export type Server = {
  /** The port that is listened on, also when any free one was asked for. */
  port: number
  /** Stops listening and drops every connection, hanging ones included. */
  close(): Promise<void>
}

/** Serves a function from requests to deliveries. Rejects when the port cannot be had. */
export async function listen(
  answer: (request: Request) => Promise<Delivery>,
  { host, port, clock }: { host: string; port: number; clock: Clock },
): Promise<Server> {
  const server = createServer((incoming, response) => {
    respond(answer, incoming, response, clock).catch((error: unknown) => {
      console.error('emulator: a request could not be answered:', error)
      incoming.destroy()
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve()
        })
        server.closeAllConnections()
      }),
  }
}

async function respond(
  answer: (request: Request) => Promise<Delivery>,
  incoming: IncomingMessage,
  response: ServerResponse,
  clock: Clock,
): Promise<void> {
  let body: Buffer
  try {
    body = await buffer(incoming)
  } catch {
    return // The client went away while it was still sending.
  }
  const { method = '', url: target = '', headers } = incoming
  const { reply, ...delivery } = await answer({ method, target, headers, body: body.toString() })
  if (reply === undefined) {
    await misbehave(delivery, incoming.socket)
    return
  }
  const framed: Reply = {
    status: reply.status,
    headers: {
      'content-length': String(reply.body.length),
      ...reply.headers,
      date: new Date(clock.now()).toUTCString(),
    },
    // RFC 9110, section 9.3.2: HEAD gets the headers of GET and no body.
    body: method === 'HEAD' ? Buffer.alloc(0) : reply.body,
  }
  if (delivery.ending === 'complete') {
    response.writeHead(framed.status, framed.headers)
    response.end(framed.body)
  } else {
    await misbehave({ ...delivery, reply: framed }, incoming.socket)
  }
}

/** Writes to the connection itself, since `node:http` rightly refuses to send a broken reply. */
async function misbehave(delivery: Delivery, socket: Socket): Promise<void> {
  // The client may hang up first: that is what many faults are for.
  socket.on('error', () => undefined)
  const { reply, bodyBytes = Infinity, drip, ending } = delivery
  if (reply !== undefined) {
    const body = reply.body.subarray(0, bodyBytes)
    if (drip?.from !== 'headers') await write(socket, headOf(reply))
    const slow = drip?.from === 'headers' ? Buffer.concat([headOf(reply), body]) : body
    if (drip === undefined) await write(socket, body)
    else await writeSlowly(socket, slow, drip.bytesPerSecond)
  }
  if (ending === 'reset') socket.resetAndDestroy()
  else if (ending !== 'hold') socket.end()
}

function headOf(reply: Reply): Buffer {
  const lines = Object.entries({ ...reply.headers, connection: 'close' })
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `${name}: ${value}\r\n`)
  const reason = STATUS_CODES[reply.status] ?? ''
  return Buffer.from(`HTTP/1.1 ${reply.status} ${reason}\r\n${lines.join('')}\r\n`, 'latin1')
}

function write(socket: Socket, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => {
    socket.write(bytes, () => {
      resolve()
    })
  })
}

const maxWritesPerSecond = 50

async function writeSlowly(socket: Socket, bytes: Buffer, bytesPerSecond: number): Promise<void> {
  const step = Math.ceil(bytesPerSecond / maxWritesPerSecond)
  for (let at = 0; at < bytes.length && !socket.destroyed; at += step) {
    await write(socket, bytes.subarray(at, at + step))
    await setTimeout((step / bytesPerSecond) * 1000, undefined, { ref: false })
  }
}
