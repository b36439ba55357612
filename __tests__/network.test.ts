import { getEventListeners } from 'node:events'
import type { Socket } from 'node:net'
import tls from 'node:tls'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import nock from 'nock'
import { NetworkFault, type NetworkRequest, routeTo, systemNetwork } from '../src/network.ts'
import { expiredCertificate, goodCertificate, testKey } from './support/certificates.ts'
import { type Answer, type Wire, closedPort, listen, listenAsProxy, reply } from './support/wire.ts'

const never = new AbortController().signal
const jsonType = 'content-type: application/json'

function request(url: string, changes: Partial<NetworkRequest> = {}): NetworkRequest {
  return {
    method: 'GET',
    url: new URL(url),
    headers: { authorization: 'Bearer mint_0123456789abcdef' },
    maxBodyBytes: 1024 * 1024,
    ...changes,
  }
}

const get = (wire: Wire, signal = never) =>
  systemNetwork(request(`http://127.0.0.1:${wire.port}/v1/x?secret=query`), signal)

/** Lets what was written on this machine arrive. */
async function turns() {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}

async function faultOf(promise: Promise<unknown>): Promise<NetworkFault> {
  const settled = await promise.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  )
  if (!('error' in settled) || !(settled.error instanceof NetworkFault)) {
    throw new Error(`no NetworkFault, but ${JSON.stringify(settled)}`)
  }
  const fault = settled.error
  expect(fault.message).not.toBe('')
  expect(fault.message).not.toMatch(/secret|query|mint_|\n|:\/\//)
  return fault
}

const { https_proxy, HTTPS_PROXY, http_proxy, HTTP_PROXY, no_proxy, NO_PROXY } = process.env
function setProxy(url: string | undefined, noProxy?: string) {
  for (const name of [
    'https_proxy',
    'HTTPS_PROXY',
    'http_proxy',
    'HTTP_PROXY',
    'no_proxy',
    'NO_PROXY',
  ]) {
    // prettier-ignore
    Reflect.deleteProperty(process.env, name)
  }
  if (url !== undefined) process.env['HTTPS_PROXY'] = process.env['HTTP_PROXY'] = url
  if (noProxy !== undefined) process.env['NO_PROXY'] = noProxy
}
beforeAll(() => {
  nock.restore() // it would put sockets of its own in place of the real ones
})
beforeEach(() => {
  setProxy(undefined)
})
afterEach(() => {
  setProxy(undefined)
  const before = { https_proxy, HTTPS_PROXY, http_proxy, HTTP_PROXY, no_proxy, NO_PROXY }
  for (const [name, value] of Object.entries(before)) {
    if (value !== undefined) process.env[name] = value
  }
})

describe('a whole reply', () => {
  test('arrives with status, headers and text; one request with our headers was sent', async () => {
    await using wire = await listen(
      reply('202 Accepted', [jsonType, 'retry-after: 7'], '{"a":"ä"}'),
    )
    const body = '{"domain":"dö"}'
    const headers = { authorization: 'Bearer k', 'content-type': 'application/json' }
    const got = await systemNetwork(
      request(`http://127.0.0.1:${wire.port}/v1/jobs`, { method: 'POST', headers, body }),
      never,
    )
    expect(got).toMatchObject({ status: 202, headers: { 'retry-after': '7' }, body: '{"a":"ä"}' })
    expect(wire.requests).toHaveLength(1)
    const [head = '', sent] = wire.requests[0]?.split('\r\n\r\n') ?? []
    expect(head).toMatch(/^POST \/v1\/jobs HTTP\/1\.1\r\n/)
    expect(head).toMatch(/^authorization: Bearer k\r?$/im)
    expect(head).toMatch(/^content-length: 16\r?$/im)
    expect(Buffer.from(sent ?? '', 'latin1').toString()).toBe(body)
    expect(headers).toEqual({ authorization: 'Bearer k', 'content-type': 'application/json' })
  })

  test('a POST without a body says so', async () => {
    await using wire = await listen(reply('200 OK', [], '{}'))
    await systemNetwork(request(`http://127.0.0.1:${wire.port}/x`, { method: 'POST' }), never)
    expect(wire.requests[0]).toMatch(/content-length: 0/i)
  })

  test.each([
    ['a byte order mark is dropped', Buffer.from('\ufeff{}'), '{}'],
    ['invalid UTF-8 is replaced', Buffer.from([0x7b, 0xff, 0xc3, 0x7d]), '{\ufffd\ufffd}'],
    ['an empty body is an empty text', Buffer.alloc(0), ''],
  ])('%s', async (_, body, text) => {
    await using wire = await listen(reply('200 OK', [], body))
    expect((await get(wire)).body).toBe(text)
  })

  test('a character may be cut by the wire', async () => {
    const bytes = Buffer.from('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"ä"')
    await using wire = await listen((socket) => {
      socket.write(bytes.subarray(0, -2))
      setImmediate(() => socket.end(bytes.subarray(-2)))
    })
    expect((await get(wire)).body).toBe('"ä"')
  })

  test.each([
    ['chunked', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n'],
    ['ended by the connection', 'HTTP/1.1 200 OK\r\n\r\n{}'],
    ['behind 1xx', 'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}'],
    ['longer than it says', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}{}'],
    [
      'still compressed',
      'HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}',
    ],
  ])('%s', async (_, bytes) => {
    await using wire = await listen((socket) => socket.end(bytes))
    expect(await get(wire)).toMatchObject({ status: 200, body: '{}' })
  })

  test('by IPv6, where the machine has it', async () => {
    let wire: Wire
    try {
      wire = await listen(reply('200 OK', [], '{}'), { host: '::1' })
    } catch {
      return
    }
    await using served = wire
    const got = await systemNetwork(request(`http://[::1]:${served.port}/x`), never)
    expect(got.body).toBe('{}')
    expect(served.requests[0]).toMatch(new RegExp(`^host: \\[::1\\]:${served.port}\\r$`, 'im'))
  })
})

describe('a redirect is a reply like any other', () => {
  test.each(['301 Moved', '302 Found', '303 See Other', '307 Temporary', '308 Permanent'])(
    '%s is not followed, and the key stays here',
    async (status) => {
      await using target = await listen(reply('200 OK', [], '{}'))
      await using wire = await listen(
        reply(status, [`location: http://127.0.0.1:${target.port}/x`], ''),
      )
      expect((await get(wire)).status).toBe(Number(status.slice(0, 3)))
      expect(target.requests).toEqual([])
      expect(wire.requests).toHaveLength(1)
    },
  )
})

describe('a lost connection settles at once', () => {
  const cutAfter =
    (text: string, reset: boolean): Answer =>
    (socket) => {
      socket.write(text, () => (reset ? socket.resetAndDestroy() : socket.end()))
    }
  const head = 'HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n'
  const chunked = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'

  test.each([
    ['in a body of known length', `${head}{"status":"runn`, false, '15 of 1000 bytes'],
    ['by a reset in a body', `${head}{"status":"runn`, true, '15 of 1000 bytes'],
    ['before the body', head, false, '0 of 1000 bytes'],
    ['between chunks', `${chunked}4\r\n{"a"\r\n`, false, '4 bytes'],
    ['in a chunk', `${chunked}ff\r\n{"a"`, true, '4 bytes'],
  ])('%s', async (_, bytes, reset, amount) => {
    await using wire = await listen(cutAfter(bytes, reset))
    const fault = await faultOf(get(wire))
    expect(fault).toMatchObject({ kind: 'body-cut', code: 'ECONNRESET', delivered: true })
    expect(fault.message).toMatch(/^the reply was cut off after /)
    // A reset may overtake the bytes before it.
    if (!reset) expect(fault.message).toBe(`the reply was cut off after ${amount}`)
  })

  test('of an error reply the status counts', async () => {
    await using wire = await listen(
      cutAfter('HTTP/1.1 502 Bad Gateway\r\ncontent-length: 99\r\n\r\n<html>', false),
    )
    expect(await get(wire)).toMatchObject({ status: 502, body: '<html>' })
  })

  test.each([
    ['closed before the reply', (socket: Socket) => socket.end()],
    ['reset before the reply', (socket: Socket) => socket.resetAndDestroy()],
    ['closed in the head', (socket: Socket) => socket.end('HTTP/1.1 200 OK\r\ncont')],
  ])('%s', async (_, answer) => {
    await using wire = await listen(answer)
    const fault = await faultOf(get(wire))
    expect(fault).toMatchObject({ kind: 'connection', code: 'ECONNRESET', delivered: true })
    expect(fault.message).toBe('the connection was closed before a reply')
  })
})

describe('what is not HTTP', () => {
  test.each([
    ['another protocol', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}'],
    ['length and chunks', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}'], // prettier-ignore
    ['a huge head', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`],
    ['no status', 'HTTP/1.1 abc\r\n\r\n'],
  ])('%s', async (_, bytes) => {
    await using wire = await listen((socket) => socket.end(bytes))
    const fault = await faultOf(get(wire))
    expect(fault).toMatchObject({ kind: 'not-http', delivered: true })
    expect(fault.code).toMatch(/^HPE_/)
  })
})

describe('a reply without end', () => {
  /** Sends for ever, until the client hangs up. */
  const flood =
    (status: string): Answer =>
    (socket) => {
      socket.write(`HTTP/1.1 ${status}\r\n\r\n`)
      const block = Buffer.alloc(64 * 1024, 'x')
      const pour = () => {
        while (!socket.destroyed && socket.write(block));
      }
      socket.on('drain', pour)
      pour()
    }

  test('is cut at the limit', async () => {
    await using wire = await listen(flood('200 OK'))
    const fault = await faultOf(get(wire))
    expect(fault).toMatchObject({ kind: 'body-too-large', code: 'TOO_LARGE', delivered: true })
    expect(fault.message).toBe('the reply is longer than 1024 KiB')
    await wire.clientGone
  })

  test('of an error is cut at 64 KiB, and its status counts', async () => {
    await using wire = await listen(flood('502 Bad Gateway'))
    const got = await get(wire)
    expect(got.status).toBe(502)
    expect(got.body.length).toBeLessThanOrEqual(64 * 1024)
    await wire.clientGone
  })

  test('may fill the limit exactly', async () => {
    await using wire = await listen(reply('200 OK', [], 'x'.repeat(1024 * 1024)))
    expect((await get(wire)).body).toHaveLength(1024 * 1024)
  })
})

describe('no connection', () => {
  test('refused: nothing was sent', async () => {
    const port = await closedPort()
    const fault = await faultOf(systemNetwork(request(`http://127.0.0.1:${port}/`), never))
    expect(fault).toMatchObject({ kind: 'connection', code: 'ECONNREFUSED', delivered: false })
    expect(fault.message).toBe('the connection was refused')
  })

  test('refused by each address of a name: there is a text all the same', async () => {
    const port = await closedPort()
    const fault = await faultOf(systemNetwork(request(`http://localhost:${port}/`), never))
    expect(fault).toMatchObject({ code: 'ECONNREFUSED', delivered: false })
    expect(fault.message).toBe('the connection was refused')
  })

  test.each([
    ['ECONNREFUSED', 'connect', 'the connection was refused', false],
    ['ETIMEDOUT', 'connect', 'no answer within the time of the system', false],
    ['ECONNRESET', 'connect', 'the connection was closed before a reply', false],
    ['EADDRNOTAVAIL', 'connect', 'the connection failed', false],
    ['ENOTFOUND', 'getaddrinfo', 'the host name could not be resolved', false],
    ['EAI_AGAIN', 'getaddrinfo', 'the host name could not be resolved for now', false],
    ['EAI_FAIL', 'getaddrinfo', 'the connection failed', false],
    ['EHOSTUNREACH', 'connect', 'the host cannot be reached', false],
    ['ENETUNREACH', 'connect', 'the network cannot be reached', false],
    ['ECONNRESET', 'read', 'the connection was closed before a reply', true],
    ['ETIMEDOUT', 'read', 'no answer within the time of the system', true],
    ['EPIPE', 'write', 'the connection was closed before a reply', true],
    ['EOTHER', 'read', 'the connection failed', true],
  ])('%s by %s', async (code, syscall, message, delivered) => {
    const raw = `${syscall} ${code} https://x/?secret=query`
    nock.activate()
    nock('https://api.example.com').get('/x').replyWithError(Object.assign(new Error(raw), { code, syscall })) // prettier-ignore
    const fault = await faultOf(systemNetwork(request('https://api.example.com/x'), never))
    nock.restore()
    expect(fault).toMatchObject({ kind: 'connection', code, message, delivered })
  })
})

describe('an abort', () => {
  const reason = new Error('enough')

  test('before anything: no connection is made', async () => {
    await using wire = await listen(reply('200 OK', [], '{}'))
    await expect(get(wire, AbortSignal.abort(reason))).rejects.toBe(reason)
    expect(wire.bytes()).toBe('')
  })

  test.each([
    ['while the server is silent', () => undefined],
    ['in the head', (socket: Socket) => socket.write('HTTP/1.1 200 OK\r\nx: ')],
    [
      'in the body',
      (socket: Socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{'),
    ],
    [
      'in an error',
      (socket: Socket) => socket.write('HTTP/1.1 500 X\r\ncontent-length: 9\r\n\r\n{'),
    ],
  ] as [string, Answer][])('%s ends with its reason, and hangs up', async (_, answer) => {
    await using wire = await listen(answer)
    const controller = new AbortController()
    const got = get(wire, controller.signal)
    await wire.arrived
    await turns()
    controller.abort(reason)
    await expect(got).rejects.toBe(reason)
    await wire.clientGone
    expect(wire.requests).toHaveLength(1)
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0)
  })

  test('while bytes drip: total time counts, not silence', async () => {
    await using wire = await listen((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n')
      const drip = () => {
        if (!socket.destroyed) socket.write('x', () => setImmediate(drip))
      }
      drip()
    })
    const controller = new AbortController()
    const got = get(wire, controller.signal)
    await wire.arrived
    await turns()
    controller.abort(reason)
    await expect(got).rejects.toBe(reason)
    await wire.clientGone
  })

  test('leaves no listener behind after a success or a fault', async () => {
    const { signal } = new AbortController()
    await using wire = await listen(reply('200 OK', [], '{}'))
    await get(wire, signal)
    const port = await closedPort()
    await faultOf(systemNetwork(request(`http://127.0.0.1:${port}/`), signal))
    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
  })
})

describe('TLS', () => {
  const trusted = tls.getCACertificates('default')
  afterEach(() => {
    tls.setDefaultCACertificates(trusted)
  })
  const secure = (cert: string) => ({ tls: { key: testKey, cert } })
  const ask = (port: number) => systemNetwork(request(`https://localhost:${port}/`), never)

  test('a trusted certificate', async () => {
    tls.setDefaultCACertificates([goodCertificate])
    await using wire = await listen(reply('200 OK', [], '{}'), secure(goodCertificate))
    expect((await ask(wire.port)).body).toBe('{}')
  })

  test.each([
    ['signed by nobody we know', goodCertificate, [], 'DEPTH_ZERO_SELF_SIGNED_CERT', 'the TLS certificate was not trusted'],
    ['expired', expiredCertificate, [expiredCertificate], 'CERT_HAS_EXPIRED', 'the TLS certificate has expired'],
  ])('a certificate %s', async (_, cert, trust, code, message) => {
    tls.setDefaultCACertificates(trust)
    await using wire = await listen(reply('200 OK', [], '{}'), secure(cert))
    const fault = await faultOf(ask(wire.port))
    expect(fault).toMatchObject({ kind: 'tls', code, message, delivered: false })
    expect(wire.requests).toEqual([])
  }) // prettier-ignore

  test('a plain port', async () => {
    await using wire = await listen(() => undefined, {
      onConnection: (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'),
    })
    const fault = await faultOf(ask(wire.port))
    expect(fault).toMatchObject({
      kind: 'not-tls',
      message: 'the server does not speak TLS on this port',
      delivered: false,
    })
  })

  test('a handshake that fails for another reason is not blamed on the certificate', async () => {
    await using wire = await listen(() => undefined, {
      // A fatal alert: handshake failure.
      onConnection: (socket) => socket.end(Buffer.from([0x15, 3, 3, 0, 2, 2, 40])),
    })
    const fault = await faultOf(ask(wire.port))
    expect(fault).toMatchObject({
      kind: 'tls',
      message: 'the TLS handshake failed',
      delivered: false,
    })
    expect(fault.code).toMatch(/^(?:ERR_SSL_|EPROTO)/)
  })

  test('hung up in the handshake: nothing was sent', async () => {
    await using wire = await listen(() => undefined, { onConnection: (socket) => socket.end() })
    const fault = await faultOf(ask(wire.port))
    expect(fault).toMatchObject({ kind: 'connection', code: 'ECONNRESET', delivered: false })
  })

  test('a plain request to a TLS port', async () => {
    await using wire = await listen(reply('200 OK', [], '{}'), secure(goodCertificate))
    const fault = await faultOf(systemNetwork(request(`http://localhost:${wire.port}/`), never))
    expect(fault.kind).toMatch(/connection|not-http/)
  })
})

describe('a proxy', () => {
  // The client bypasses the proxy for loopback, hence a made-up host: the proxy leads it to this machine.
  const ask = (signal = never, url = 'http://api.example.com:8080/v1/x?secret=query') =>
    systemNetwork(request(url), signal)
  const through = (proxy: Wire) => {
    setProxy(`http://me:pass-word@127.0.0.1:${proxy.port}`)
  }

  test('tunnels a plain request', async () => {
    await using wire = await listen(reply('200 OK', [], '{}'))
    await using proxy = await listenAsProxy({ to: wire.port })
    through(proxy)
    expect((await ask()).body).toBe('{}')
    expect(proxy.requests[0]).toMatch(/^CONNECT api\.example\.com:8080 /)
    expect(proxy.requests[0]).toMatch(/proxy-authorization: Basic bWU6cGFzcy13b3Jk/i)
    expect(proxy.requests[0]).not.toContain('mint_')
    expect(wire.requests).toHaveLength(1)
  })

  test('tunnels TLS, from end to end', async () => {
    const trusted = tls.getCACertificates('default')
    tls.setDefaultCACertificates([goodCertificate])
    try {
      await using wire = await listen(reply('200 OK', [], '{}'), { tls: { key: testKey, cert: goodCertificate } }) // prettier-ignore
      await using proxy = await listenAsProxy({ to: wire.port })
      through(proxy)
      expect((await ask(never, 'https://api.example.com/x')).body).toBe('{}')
      expect(proxy.requests[0]).toMatch(/^CONNECT api\.example\.com:443 /)
      expect(await faultOf(ask(never, 'https://other.example.com/x'))).toMatchObject({
        kind: 'tls',
        code: 'ERR_TLS_CERT_ALTNAME_INVALID',
        message: 'the TLS certificate is for another host name',
        delivered: false,
      })
      expect(wire.requests).toHaveLength(1)
      expect(proxy.bytes()).not.toContain('mint_')
    } finally {
      tls.setDefaultCACertificates(trusted)
    }
  })

  test.each([
    ['407 Proxy Authentication Required', '407'],
    ['403 Forbidden', '403'],
    ['502 Bad Gateway', '502'],
  ])('that answers %s', async (status, code) => {
    await using proxy = await listenAsProxy(reply(status, [], '<html>'))
    through(proxy)
    const fault = await faultOf(ask())
    expect(fault).toMatchObject({ kind: 'proxy', code, delivered: false })
    expect(fault.message).toBe(`the proxy answered HTTP ${code}`)
  })

  test('that refuses the connection', async () => {
    const port = await closedPort()
    setProxy(`http://me:pass-word@127.0.0.1:${port}`)
    const fault = await faultOf(ask())
    expect(fault).toMatchObject({ kind: 'proxy', code: 'ECONNRESET', delivered: false })
    expect(fault.message).toBe('the proxy could not be reached')
    expect(fault.message).not.toContain('pass-word')
  })

  test.each([
    ['hangs up', (socket: Socket) => socket.end()],
    ['speaks before it is asked', (socket: Socket) => socket.write('HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n')], // prettier-ignore
  ] as [string, Answer][])('that %s', async (_, answer) => {
    await using proxy = await listenAsProxy(answer)
    through(proxy)
    expect(await faultOf(ask())).toMatchObject({ kind: 'proxy', delivered: false })
  })

  test.each([
    ['http://api.example.com:8080/x', 'plain'],
    ['https://api.example.com/x', 'TLS'],
  ])('that is silent, and answers after the abort: nothing is sent to %s', async (url) => {
    let connected: Socket | undefined
    await using proxy = await listenAsProxy((socket) => {
      connected = socket
    })
    through(proxy)
    const controller = new AbortController()
    const got = ask(controller.signal, url)
    await proxy.arrived
    const before = proxy.bytes().length
    const reason = new Error('enough')
    controller.abort(reason)
    await expect(got).rejects.toBe(reason)
    connected?.write('HTTP/1.1 200 OK\r\n\r\n')
    await Promise.race([proxy.clientGone, new Promise((resolve) => setTimeout(resolve, 100))])
    expect(proxy.bytes().slice(before)).not.toMatch(/GET|authorization/i)
    expect(proxy.requests).toHaveLength(1)
  })

  test('whose tunnel breaks', async () => {
    await using wire = await listen((socket) => socket.resetAndDestroy())
    await using proxy = await listenAsProxy({ to: wire.port })
    through(proxy)
    expect(await faultOf(ask())).toMatchObject({ kind: 'connection', delivered: true })
  })

  test('whose variable is no address at all', async () => {
    setProxy('[broken')
    const fault = await faultOf(ask())
    expect(fault).toMatchObject({ kind: 'proxy', delivered: false })
    expect(fault.message).toBe('the proxy variable of the environment is not an address')
  })
})

describe('routeTo', () => {
  test.each([
    [undefined, undefined, { via: 'direct' }],
    ['', undefined, { via: 'direct' }],
    ['http://proxy.corp:8080', undefined, { via: 'proxy', proxyHost: 'proxy.corp:8080' }],
    ['http://me:pass@proxy.corp:8080', undefined, { via: 'proxy', proxyHost: 'proxy.corp:8080' }],
    ['https://proxy.corp', undefined, { via: 'proxy', proxyHost: 'proxy.corp' }],
    ['10.0.0.1:3128', undefined, { via: 'proxy', proxyHost: '10.0.0.1:3128' }],
    ['http://proxy.corp:8080', 'example.com', { via: 'direct' }],
    ['10.0.0.1:3128', 'example.com', { via: 'direct' }],
    ['http://proxy.corp:8080', '*', { via: 'direct' }],
    ['http://proxy.corp:8080', 'other.com', { via: 'proxy', proxyHost: 'proxy.corp:8080' }],
    ['proxy.corp:8080', undefined, { via: 'unusable-proxy' }],
    ['[broken', undefined, { via: 'unusable-proxy' }],
    ['http://[broken', undefined, { via: 'unusable-proxy' }],
    ['http://me:100%@proxy.corp:8080', undefined, { via: 'unusable-proxy' }],
  ])('%s without %s', (proxy, noProxy, route) => {
    setProxy(proxy, noProxy)
    expect(routeTo(new URL('https://api.example.com'), process.env)).toEqual(route)
    expect(routeTo(new URL('http://127.0.0.1:4000'), process.env).via).not.toBe('proxy')
  })

  test('reads the lower-case variable first, unless it is empty', () => {
    setProxy('http://upper.corp')
    process.env['https_proxy'] = 'http://lower.corp'
    const route = () => routeTo(new URL('https://api.example.com'), process.env)
    expect(route()).toEqual({ via: 'proxy', proxyHost: 'lower.corp' })
    process.env['https_proxy'] = ''
    expect(route()).toEqual({ via: 'proxy', proxyHost: 'upper.corp' })
  })
})
