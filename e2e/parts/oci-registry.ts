/** A real OCI registry, for charts. */
import { rmSync } from 'node:fs'
import { tools } from '../tools/tools.ts'
import type { Credentials } from './credentials.ts'
import { helm, packageChart } from './helm.ts'
import { startPart, type Part } from './lifetime.ts'
import { waitFor } from './ready.ts'

export interface OciRegistry extends Part {
  /** `127.0.0.1:port`, as `helm registry login` takes it. */
  readonly host: string
  /** Where the charts are: `oci://…`, without the name of a chart. */
  readonly url: string
  /** Packages the chart of a folder under a version, and pushes it. */
  publish(chartFolder: string, version: string): Promise<void>
}

/** Starts a registry without charts, which asks for the credentials if there are any. */
export function startOciRegistry(credentials?: Credentials): Promise<OciRegistry> {
  return startPart(async (scope) => {
    const folder = scope.folder('oci-registry')
    const registry = scope.program(tools.registry, [], {
      REGISTRY_USERNAME: credentials?.username,
      REGISTRY_PASSWORD: credentials?.password,
    })
    const host = await waitFor({
      what: 'listening: a registry',
      program: registry,
      ask: () => Promise.resolve(/^listening on (\S+)$/m.exec(registry.stdout())?.[1]),
    })
    const url = `oci://${host}/charts`
    const login =
      credentials === undefined
        ? []
        : ['--username', credentials.username, '--password', credentials.password]
    return {
      host,
      url,
      publish: async (chartFolder, version) => {
        const archive = await packageChart(folder, chartFolder, version)
        await helm(folder, 'push', archive, url, '--plain-http', ...login)
        rmSync(archive)
      },
    }
  })
}
