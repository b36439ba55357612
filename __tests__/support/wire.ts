// A server on this machine that answers byte by byte as a test says: what no HTTP library would send.
import net, { type AddressInfo, type Socket } from 'node:net'
import tls from 'node:tls'

/** Answers one request; `request` is its head and body as they came. */
export type Answer = (socket: Socket, request: string, count: number) => void

export interface Wire extends AsyncDisposable {
  readonly port: number
  /** Every request that came, as text. */
  readonly requests: readonly string[]
  /** Resolves when a client has gone. */
  readonly clientGone: Promise<void>
  /** Resolves when the first request, or whatever it is, has arrived. */
  readonly arrived: Promise<void>
  /** What came on all connections, request or not. */
  readonly bytes: () => string
}

export interface WireOptions {
  readonly host?: string
  readonly tls?: { readonly key: string; readonly cert: string }
  readonly onConnection?: (socket: Socket) => void
}

export async function listen(answer: Answer, options: WireOptions = {}): Promise<Wire> {
  const sockets = new Set<Socket>()
  const requests: string[] = []
  const gone = Promise.withResolvers<undefined>()
  const arrived = Promise.withResolvers<undefined>()
  let bytes = ''

  const onConnection = (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => {
      sockets.delete(socket)
      gone.resolve(undefined)
    })
    options.onConnection?.(socket)
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      bytes += chunk.toString('latin1')
      const head = text.indexOf('\r\n\r\n')
      if (head === -1) return
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(text.slice(0, head))?.[1] ?? 0)
      if (text.length < head + 4 + length) return
      const request = text
      text = ''
      requests.push(request)
      arrived.resolve(undefined)
      answer(socket, request, requests.length)
    })
  }
  const server = options.tls
    ? tls.createServer(options.tls, onConnection).on('tlsClientError', () => undefined)
    : net.createServer(onConnection)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, options.host ?? '127.0.0.1', resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    requests,
    clientGone: gone.promise,
    arrived: arrived.promise,
    bytes: () => bytes,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** A whole reply, closed afterwards. */
export function reply(status: string, headers: readonly string[], body: string | Buffer): Answer {
  const bytes = Buffer.from(body)
  const head = [`HTTP/1.1 ${status}`, `content-length: ${bytes.length}`, 'connection: close', ...headers] // prettier-ignore
  return (socket) => {
    socket.end(Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), bytes]))
  }
}

/** A port of this machine where nobody listens. */
export async function closedPort(): Promise<number> {
  const wire = await listen(() => undefined)
  await wire[Symbol.asyncDispose]()
  return wire.port
}

/**
 * A proxy that answers `CONNECT`. With `to`, a port of this machine, it makes a tunnel there whatever name was
 * asked for.
 */
export function listenAsProxy(answer: Answer | { readonly to: number }): Promise<Wire> {
  return listen((socket, request, count) => {
    if (typeof answer === 'function') {
      answer(socket, request, count)
      return
    }
    const upstream = net.connect(answer.to, '127.0.0.1', () => {
      socket.removeAllListeners('data')
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      socket.pipe(upstream).pipe(socket)
    })
    upstream.on('error', () => socket.destroy())
    upstream.on('close', () => socket.destroy())
    socket.on('close', () => upstream.destroy())
  })
}
