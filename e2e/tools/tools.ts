/** Where the installed parts are. */
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { recipes, stampOf, type Recipe } from './recipes.ts'

const root = path.resolve(import.meta.dirname, '../..')

/** The folder of all parts, which Git ignores. */
export const toolsFolder = path.join(root, '.tools')

/** A part counts as there when its folder holds this file with the stamp of its recipe. */
export const stampFile = '.stamp'

/** Paths of the programs. */
export const tools = {
  helm3: program('helm-3', 'helm'),
  helm4: program('helm-4', 'helm'),
  kubeApiserver: program('kubernetes', 'kube-apiserver'),
  kubeControllerManager: program('kubernetes', 'kube-controller-manager'),
  kubeScheduler: program('kubernetes', 'kube-scheduler'),
  etcd: program('kubernetes', 'etcd'),
  kwok: program('kwok', 'kwok'),
  kwokctl: program('kwok', 'kwokctl'),
  act: program('act', 'act'),
  versitygw: program('versitygw', 'versitygw'),
  registry: program('registry', 'registry'),
  actionlint: program('actionlint', 'actionlint'),
  zizmor: program('zizmor', 'zizmor'),
} as const

function program(part: string, name: string): string {
  return path.join(toolsFolder, part, name)
}

/** Whether the part is there, built as its recipe says now. */
export function isInstalled(recipe: Recipe): boolean {
  const file = path.join(toolsFolder, recipe.name, stampFile)
  return existsSync(file) && readFileSync(file, 'utf8') === stampOf(recipe)
}

/** Throws, with what to do, when a part is missing or of another version. */
export function requireTools(): void {
  const missing = recipes.filter((recipe) => !isInstalled(recipe)).map(({ name }) => name)
  if (missing.length === 0) return
  throw new Error(
    `Not installed, or not as pinned: ${missing.join(', ')}. Run "node e2e/tools/install.ts" first.`,
  )
}
