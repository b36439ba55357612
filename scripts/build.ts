/**
 * Builds `dist` from scratch: a bundle for each action by ncc, not minified so that it can be reviewed, and the
 * licences of everything in it. ncc's own list leaves out what only the first chunk uses as soon as there are several.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import process from 'node:process'

interface WebpackModule {
  readonly name?: string
  readonly modules?: readonly WebpackModule[]
}

/** Each action by its entry and the folder of its bundle, below the one that is built. */
const actions = [
  { entry: 'src/main.ts', folder: '.' },
  { entry: 'src/helm/main.ts', folder: 'helm' },
]

const root = path.resolve(import.meta.dirname, '..')
const dist = path.resolve(root, process.argv[2] ?? 'dist')

const scratch = mkdtempSync(path.join(tmpdir(), 'build-'))
try {
  const built = path.join(scratch, 'dist')
  for (const { entry, folder } of actions) {
    const target = path.join(built, folder)
    const statsFile = path.join(scratch, 'stats.json')
    bundle(entry, target, statsFile)
    const stats = JSON.parse(readFileSync(statsFile, 'utf8')) as WebpackModule
    writeFileSync(path.join(target, 'licenses.txt'), licences([...packagesOf(stats)].sort()))
  }
  // What was there stays until all is built.
  rmSync(dist, { recursive: true, force: true })
  cpSync(built, dist, { recursive: true })
} finally {
  rmSync(scratch, { recursive: true })
}

function bundle(entry: string, target: string, statsFile: string): void {
  const ncc = path.join(root, 'node_modules/@vercel/ncc/dist/ncc/cli.js')
  const options = ['-o', target, '--no-cache', '--stats-out', statsFile]
  const { status } = spawnSync(process.execPath, [ncc, 'build', entry, ...options], {
    cwd: root,
    stdio: 'inherit',
  })
  if (status !== 0) throw new Error(`${entry} could not be bundled`)
}

/** The package folders that the bundle takes modules from, as `node_modules/…`. */
function packagesOf({ name = '', modules = [] }: WebpackModule): Set<string> {
  const folder = /node_modules\/(?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/]+/.exec(name)?.[0]
  const nested = modules.flatMap((module) => [...packagesOf(module)])
  return new Set(folder === undefined ? nested : [folder, ...nested])
}

function licences(folders: readonly string[]): string {
  return folders
    .map((folder) => {
      const manifestFile = path.join(root, folder, 'package.json')
      const manifest = JSON.parse(readFileSync(manifestFile, 'utf8')) as Record<string, string>
      const heading = [manifest['name'], manifest['version'], manifest['license']].join(' ')
      const file = readdirSync(path.join(root, folder)).find((name) => /^licen[cs]e/i.test(name))
      const text = file ? readFileSync(path.join(root, folder, file), 'utf8').trim() : ''
      return `${heading}\n${'-'.repeat(heading.length)}\n${text}\n`
    })
    .join('\n')
}
