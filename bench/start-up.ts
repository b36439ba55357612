/**
 * `npm run bench`: how long the action takes from its start to its first request, beside a script that does
 * nothing on the same Node. What is above 1 is the price of our imports, which every run pays.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import process from 'node:process'
import { median } from './measure.ts'

const rounds = 20
const targetRatio = 3

const action = path.resolve(import.meta.dirname, '../dist/index.js')
const temporary = mkdtempSync(path.join(tmpdir(), 'bench-'))
const emptyScript = writeFile('empty.mjs')
const environment = {
  PATH: process.env['PATH'],
  HOME: temporary,
  GITHUB_ACTIONS: 'true',
  GITHUB_OUTPUT: writeFile('output'),
  GITHUB_STEP_SUMMARY: writeFile('summary.md'),
  RUNNER_TEMP: temporary,
}

let firstRequestMs = NaN
const server = createServer((_, response) => {
  firstRequestMs = performance.now()
  // Ends the run at once: what follows the first request is not measured.
  response.writeHead(401).end()
})
await once(server.listen(0, '127.0.0.1'), 'listening')
const { port } = server.address() as AddressInfo

try {
  const actionMs: number[] = []
  const emptyMs: number[] = []
  for (let round = 0; round <= rounds; round += 1) {
    const [toRequest, toExit] = [await timeToRequest(), await timeToExit()]
    if (round === 0) continue // the file cache is cold
    actionMs.push(toRequest)
    emptyMs.push(toExit)
  }
  const ratio = median(actionMs) / median(emptyMs)
  console.log(`Medians of ${rounds} runs in turn, Node ${process.versions.node}`)
  console.log(row('action: start to first request', `${median(actionMs).toFixed(1)} ms`))
  console.log(row('empty script: start to exit', `${median(emptyMs).toFixed(1)} ms`))
  console.log(row('ratio', ratio.toFixed(2)))
  console.log(row('target', `${targetRatio.toFixed(2)} or less`))
  if (ratio > targetRatio) {
    console.log('The target is missed.')
    process.exitCode = 1
  }
} finally {
  server.close()
  rmSync(temporary, { recursive: true })
}

async function timeToRequest(): Promise<number> {
  firstRequestMs = NaN
  // By the environment of the process, since a shell would drop a name with a dash in it.
  const startedMs = await runNode(action, {
    ...environment,
    'INPUT_API-KEY': 'bench_0123456789abcdef',
    'INPUT_BASE-URL': `http://127.0.0.1:${port}`,
    INPUT_DOMAIN: 'docs.example.com',
  })
  if (Number.isNaN(firstRequestMs)) throw new Error('the action has sent no request')
  return firstRequestMs - startedMs
}

async function timeToExit(): Promise<number> {
  const startedMs = await runNode(emptyScript, environment)
  return performance.now() - startedMs
}

/** Runs a script to its end; resolves with the time at which it was started. */
async function runNode(script: string, env: NodeJS.ProcessEnv): Promise<number> {
  const startedMs = performance.now()
  const child = spawn(process.execPath, [script], { cwd: temporary, stdio: 'ignore', env })
  await once(child, 'exit')
  return startedMs
}

function row(name: string, value: string): string {
  return `  ${name.padEnd(32)}${value}`
}

function writeFile(name: string): string {
  const file = path.join(temporary, name)
  writeFileSync(file, '')
  return file
}
