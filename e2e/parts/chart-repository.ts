/** A plain chart repository: an index and archives over HTTP. */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import { mayPass, type Credentials } from './credentials.ts'
import { helm, packageChart } from './helm.ts'
import { startPart, type Part } from './lifetime.ts'

export interface ChartRepository extends Part {
  /** What `helm repo add` or `--repo` takes. */
  readonly url: string
  /** Packages the chart of a folder under a version, and lists it. */
  publish(chartFolder: string, version: string): Promise<void>
  /** Takes a version of a chart away again. */
  withdraw(chart: string, version: string): Promise<void>
}

/** Starts a repository without charts, which asks for the credentials if there are any. */
export function startChartRepository(credentials?: Credentials): Promise<ChartRepository> {
  return startPart(async (scope) => {
    const folder = scope.folder('chart-repository')
    const site = path.join(folder, 'site')
    mkdirSync(site)
    const index = () => helm(folder, 'repo', 'index', site)

    await index()
    const address = await scope.serve((request, response) => {
      const file = path.join(site, path.basename(request.url ?? ''))
      if (!mayPass(request.headers, credentials)) {
        response.writeHead(401, { 'www-authenticate': 'Basic realm="charts"' }).end()
      } else if (file === site || !existsSync(file)) {
        response.writeHead(404).end()
      } else {
        response.end(readFileSync(file))
      }
    })
    return {
      url: `http://${address}`,
      publish: async (chartFolder, version) => {
        const archive = await packageChart(folder, chartFolder, version)
        renameSync(archive, path.join(site, path.basename(archive)))
        await index()
      },
      withdraw: async (chart, version) => {
        rmSync(path.join(site, `${chart}-${version}.tgz`))
        await index()
      },
    }
  })
}
