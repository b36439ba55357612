/** Helm, for what the parts need of it. */
import path from 'node:path'
import { tools } from '../tools/tools.ts'
import { run } from './program.ts'

/** Runs Helm 4 with all of its own files in a folder. */
export function helm(home: string, ...args: readonly string[]): Promise<string> {
  return run(tools.helm4, args, { environment: { HOME: home } })
}

/** Packs the chart of a folder under a version. Resolves with the archive, which is below `home`. */
export async function packageChart(home: string, chart: string, version: string): Promise<string> {
  const said = await helm(home, 'package', chart, '--version', version, '--destination', home)
  const archive = /saved it to: (.+)/.exec(said)?.[1]
  if (archive === undefined) throw new Error(`helm package does not name an archive: ${said}`)
  return path.resolve(archive)
}
