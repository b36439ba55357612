/** Questions to the cluster that no command of Helm asks: a template of ours looks things up while it is rendered. */
import path from 'node:path'
import { type Disk, writePrivateFile } from '../disk.ts'
import type { Helm, Within } from './helm.ts'

export interface LookupDependencies {
  readonly helm: Helm
  readonly disk: Disk
  /** Private; nothing is left in it. */
  readonly temporaryDirectory: string
}

/** Helm wants to render an object of Kubernetes. */
const head = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: static-export-lookup\ndata:\n'

/**
 * Renders a template with the cluster at hand, so that its `lookup`s are answered, with Helm's own access.
 *
 * @param data a template of the lines below `data:` of a ConfigMap, which is never applied
 * @param values JSON
 * @throws HelmError also when the account may not look it up
 */
export async function lookUp(
  data: string,
  values: string,
  { helm, disk, temporaryDirectory }: LookupDependencies,
  within: Within,
): Promise<string> {
  const chart = path.join(temporaryDirectory, 'lookup')
  try {
    disk.makeDirectory(path.join(chart, 'templates'))
    const about = 'apiVersion: v2\nname: lookup\nversion: 1.0.0\n'
    writePrivateFile(path.join(chart, 'Chart.yaml'), about, disk)
    writePrivateFile(path.join(chart, 'templates/lookup.yaml'), `${head}${data}`, disk)
    return await helm.render(chart, values, within)
  } finally {
    disk.remove(chart)
  }
}
