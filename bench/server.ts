/**
 * A service for the benchmarks, in a process of its own: a job that has completed, and its archive. Says its
 * port when it is there. Usage: server.ts ARCHIVE
 */
import { createReadStream, statSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import process from 'node:process'

const archive = process.argv[2] ?? ''
const sizeBytes = statSync(archive).size

const server = createServer((request, response) => {
  const json = (value: unknown) => {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(value))
  }
  if (request.url === '/archive') {
    response.writeHead(200, { 'content-length': sizeBytes, etag: '"1"' })
    createReadStream(archive, { highWaterMark: 1024 * 1024 }).pipe(response)
  } else if (request.method === 'POST') {
    json({
      bundleUrl: `http://${request.headers.host ?? ''}/archive`,
      expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
      sizeBytes,
    })
  } else json({ status: 'completed' })
})
server.listen(0, '127.0.0.1', () => {
  console.log((server.address() as AddressInfo).port)
})
