/** How each part is built. */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { versions } from './versions.ts'

export interface Command {
  readonly command: string
  readonly args: readonly string[]
  /** Where it runs; the folder that is being filled unless given. */
  readonly folder?: string
}

export interface Recipe {
  /** Its folder below `.tools`. */
  readonly name: string
  readonly version: string
  readonly needs: 'go' | 'python'
  /** What fills `target`, an empty folder. `scratch` is another one, which is thrown away. */
  readonly commands: (target: string, scratch: string) => readonly Command[]
  /** A folder whose files go into the part. */
  readonly sources?: string
}

const kubernetesFolder = path.join(import.meta.dirname, 'kubernetes')
const registryFolder = path.join(import.meta.dirname, 'registry')

/** In the order of how soon the tests need them. */
export const recipes: readonly Recipe[] = [
  helm(4, versions.helm4),
  helm(3, versions.helm3),
  {
    name: 'kubernetes',
    version: versions.kubernetes,
    needs: 'go',
    sources: kubernetesFolder,
    commands: (target) => {
      const [major, minor] = versions.kubernetes.split('.')
      // Helm cannot parse the version of a server that was built without these.
      const flags = { gitVersion: `v${versions.kubernetes}`, gitMajor: major, gitMinor: minor }
      const variables = Object.entries(flags)
        .map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value ?? ''}`)
        .join(' ')
      const programs = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler']
      return [
        ...programs.map((name) =>
          goBuild(kubernetesFolder, target, name, `k8s.io/kubernetes/cmd/${name}`, variables),
        ),
        goBuild(kubernetesFolder, target, 'etcd', 'go.etcd.io/etcd/server/v3'),
      ]
    },
  },
  goInstall('kwok', versions.kwok, 'sigs.k8s.io/kwok/cmd/kwok', 'sigs.k8s.io/kwok/cmd/kwokctl'),
  goInstall('act', versions.act, 'github.com/nektos/act'),
  goInstall('versitygw', versions.versitygw, 'github.com/versity/versitygw/cmd/versitygw'),
  {
    name: 'registry',
    version: versions.registry,
    needs: 'go',
    sources: registryFolder,
    commands: (target) => [goBuild(registryFolder, target, 'registry', '.')],
  },
  goInstall('actionlint', versions.actionlint, 'github.com/rhysd/actionlint/cmd/actionlint'),
  {
    name: 'zizmor',
    version: versions.zizmor,
    needs: 'python',
    commands: (target, scratch) => [
      { command: 'python3', args: ['-m', 'venv', scratch] },
      {
        command: path.join(scratch, 'bin/pip'),
        args: ['install', '--disable-pip-version-check', `zizmor==${versions.zizmor}`],
      },
      // The wheel holds a program that needs no Python, so that the environment, which cannot move, can go.
      { command: 'cp', args: [path.join(scratch, 'bin/zizmor'), target] },
    ],
  },
]

function helm(major: 3 | 4, version: string): Recipe {
  const module = `helm.sh/helm/v${major}`
  // As in a release: without it "helm version" gives no patch number.
  const variables = `-X ${module}/internal/version.version=v${version}`
  return {
    name: `helm-${major}`,
    version,
    needs: 'go',
    commands: () => [
      {
        command: 'go',
        args: ['install', '-ldflags', `-s -w ${variables}`, `${module}/cmd/helm@v${version}`],
      },
    ],
  }
}

function goInstall(name: string, version: string, ...packages: readonly string[]): Recipe {
  return {
    name,
    version,
    needs: 'go',
    commands: () => [
      {
        command: 'go',
        args: ['install', '-ldflags', '-s -w', ...packages.map((path) => `${path}@v${version}`)],
      },
    ],
  }
}

function goBuild(
  folder: string,
  target: string,
  program: string,
  packagePath: string,
  variables = '',
): Command {
  const flags = ['-ldflags', `-s -w ${variables}`, '-o', path.join(target, program)]
  return { command: 'go', args: ['build', ...flags, packagePath], folder }
}

/** What a part of this recipe is made of, as a line: another line asks for another build. */
export function stampOf(recipe: Recipe): string {
  const hash = createHash('sha256')
  hash.update(JSON.stringify(recipe.commands('TARGET', 'SCRATCH').map(({ args }) => args)))
  if (recipe.sources !== undefined) {
    for (const file of readdirSync(recipe.sources).sort()) {
      hash.update(`${file}\n`).update(readFileSync(path.join(recipe.sources, file)))
    }
  }
  return `${recipe.name} ${recipe.version} ${hash.digest('hex').slice(0, 16)}\n`
}
