import process from 'node:process'
import { helpText, readCommandLine, UsageError } from './command-line.ts'
import { startEmulator, type Emulator, type EmulatorOptions } from './index.ts'
import type { RecordedRequest } from './recorder.ts'

try {
  const options = readCommandLine(process.argv.slice(2))
  if (options === 'help') process.stdout.write(helpText())
  else await run(options)
} catch (error) {
  if (!(error instanceof UsageError)) throw error
  console.error(`${error.message}\nSee npm run emulator -- --help.`)
  process.exitCode = 2
}

async function run(options: EmulatorOptions): Promise<void> {
  let emulator: Emulator
  try {
    emulator = await startEmulator({ ...options, onRequest: print })
  } catch (error) {
    const advice = adviceFor(error)
    if (advice === undefined) throw error
    console.error(advice)
    process.exitCode = 1
    return
  }
  process.stdout.write(welcome(emulator))
  const stop = () => {
    void emulator.close()
  }
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
}

/** What to do about an address that cannot be listened on. */
function adviceFor(error: unknown): string | undefined {
  const { code, port, address } = error as NodeJS.ErrnoException & {
    port?: number
    address?: string
  }
  switch (code) {
    case 'EADDRINUSE':
      return `Port ${port ?? ''} is taken: choose others with --port and --storage-port (0 takes any).`
    case 'EACCES':
      return `Port ${port ?? ''} may not be used: choose others with --port and --storage-port.`
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `--host ${address ?? ''} is not an address of this machine.`
    case undefined:
    default:
      return undefined
  }
}

function welcome(emulator: Emulator): string {
  const { apiUrl, storageUrl, keys, domains, agentProject, agentJobs } = emulator
  const body = JSON.stringify({ domain: domains[0] })
  return `Admin API       ${apiUrl}
Object storage  ${storageUrl}
Domains         ${domains.join(', ')}
Keys            ${keys.good}
                ${keys.expired} (401)
                ${keys.readOnly} (403 on start and bundle)
                ${keys.noExport} (403 on static export)
Agent jobs      ${agentJobs.join(', ')} in project ${agentProject}

Start an export:
curl -sS ${apiUrl}/v1/static-export/jobs -H 'Authorization: Bearer ${keys.good}' -H 'Content-Type: application/json' -d '${body}'

`
}

function print({ method, path, status, fault }: RecordedRequest): void {
  console.log(
    [method, path, status ?? 'no answer', fault && `(fault: ${fault})`].filter(Boolean).join(' '),
  )
}
