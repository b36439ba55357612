/**
 * `node e2e/tools/install.ts [PART…]`: installs the real parts of the end-to-end tests into `.tools`, all of them
 * unless some are named. What is there as pinned is skipped; on a new machine all takes ten to twenty minutes.
 */
import { spawn } from 'node:child_process'
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import process from 'node:process'
import { InstallError, requireGo, requirePython } from './requirements.ts'
import { recipes, stampOf, type Command, type Recipe } from './recipes.ts'
import { isInstalled, stampFile, toolsFolder } from './tools.ts'

/** What is being built, beside the parts so that it can be moved there; also the lock, by the number inside. */
const workFolder = path.join(toolsFolder, '.building')
const pidFile = path.join(workFolder, 'pid')
const shownLines = 30

const advice = {
  go: 'Downloads come from the Go module proxy ("go env GOPROXY") and its checksum database: are they reachable?',
  python: 'Downloads come from the Python package index ("pip config list"): is it reachable?',
} as const

try {
  await install(wanted(process.argv.slice(2)))
} catch (error) {
  if (!(error instanceof InstallError)) throw error
  console.error(`\n${error.message}`)
  process.exitCode = 1
}

function wanted(names: readonly string[]): readonly Recipe[] {
  const unknown = names.filter((name) => !recipes.some((recipe) => recipe.name === name))
  if (unknown.length > 0) {
    const known = recipes.map(({ name }) => name).join(', ')
    throw new InstallError(`There is no ${unknown.join(', ')}. The parts are ${known}.`)
  }
  return recipes.filter(({ name }) => names.length === 0 || names.includes(name))
}

async function install(chosen: readonly Recipe[]): Promise<void> {
  const missing = chosen.filter((recipe) => !isInstalled(recipe))
  if (missing.some(({ needs }) => needs === 'go')) requireGo()
  if (missing.some(({ needs }) => needs === 'python')) requirePython()
  for (const recipe of chosen) {
    if (!missing.includes(recipe)) console.log(`${titleOf(recipe)}: there`)
  }
  if (missing.length === 0) return
  lock()
  try {
    for (const recipe of missing) await build(recipe)
  } finally {
    rmSync(workFolder, { recursive: true, force: true })
  }
}

function titleOf({ name, version }: Recipe): string {
  return `${name} ${version}`
}

/** Takes the work folder, also from an installer that was killed. */
function lock(): void {
  mkdirSync(toolsFolder, { recursive: true })
  const owner = ownerOfLock()
  if (owner !== undefined) {
    throw new InstallError(`Another installer (process ${owner}) is at work: wait for its end.`)
  }
  rmSync(workFolder, { recursive: true, force: true })
  mkdirSync(workFolder)
  writeFileSync(pidFile, String(process.pid))
}

function ownerOfLock(): number | undefined {
  try {
    const pid = Number(readFileSync(pidFile, 'utf8'))
    process.kill(pid, 0)
    return pid
  } catch {
    return undefined // No such file, or no such process.
  }
}

async function build(recipe: Recipe): Promise<void> {
  const stamp = stampOf(recipe)
  const target = path.join(workFolder, recipe.name)
  const scratch = path.join(workFolder, 'scratch')
  const place = path.join(toolsFolder, recipe.name)
  mkdirSync(target)
  mkdirSync(scratch)
  console.log(`${titleOf(recipe)}: building`)
  const startedMs = Date.now()
  for (const command of recipe.commands(target, scratch)) await run(recipe, command, target)
  writeFileSync(path.join(target, stampFile), stamp)
  rmSync(scratch, { recursive: true })
  rmSync(place, { recursive: true, force: true })
  renameSync(target, place)
  console.log(`${titleOf(recipe)}: built in ${Math.round((Date.now() - startedMs) / 1000)} s`)
}

async function run(
  recipe: Recipe,
  { command, args, folder }: Command,
  target: string,
): Promise<void> {
  const child = spawn(command, args, {
    cwd: folder ?? target,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      // The same build everywhere, whatever the settings of this machine. The caches stay the machine's own.
      CGO_ENABLED: '0',
      GOFLAGS: '-trimpath -buildvcs=false -mod=readonly',
      GOWORK: 'off',
      GOBIN: target,
    },
  })
  let output = ''
  const keep = (chunk: Buffer) => (output += chunk.toString())
  child.stdout.on('data', keep)
  child.stderr.on('data', keep)
  const status = await new Promise<string>((resolve) => {
    child.on('error', ({ message }) => {
      resolve(message)
    })
    child.on('close', (code, signal) => {
      resolve(code === 0 ? '' : `it ended with ${signal ?? `exit code ${code ?? ''}`}`)
    })
  })
  if (status === '') return
  throw new InstallError(
    `${titleOf(recipe)} could not be built: ${status}.\n` +
      `  ${[command, ...args].join(' ')}\n\n` +
      `${output.trimEnd().split('\n').slice(-shownLines).join('\n')}\n\n` +
      `${advice[recipe.needs]}\n` +
      'What was built before stays: run "node e2e/tools/install.ts" again to go on.',
  )
}
