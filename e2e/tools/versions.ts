/**
 * The version of every real part, in one place. Kubernetes, etcd and the library of the registry are Go
 * modules of ours with a go.sum each, so their place is the go.mod: see `kubernetes` and `registry` beside this.
 */
import { readFileSync } from 'node:fs'
import path from 'node:path'

export const versions = {
  helm4: '4.2.4',
  helm3: '3.21.4',
  kubernetes: required('kubernetes', 'k8s.io/kubernetes'),
  kwok: '0.7.0',
  act: '0.2.89',
  versitygw: '1.8.0',
  registry: required('registry', 'github.com/google/go-containerregistry'),
  actionlint: '1.7.12',
  zizmor: '1.32.0',
} as const

/** The version of a Go module in the go.mod of a folder. */
function required(folder: string, module: string): string {
  const goMod = readFileSync(path.join(import.meta.dirname, folder, 'go.mod'), 'utf8')
  for (const line of goMod.split('\n')) {
    const [name, version] = line
      .replace(/^require /, '')
      .trim()
      .split(' ')
    if (name === module && version?.startsWith('v')) return version.slice(1)
  }
  throw new Error(`${folder}/go.mod does not require ${module}`)
}
