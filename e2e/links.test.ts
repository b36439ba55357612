/** The link and the version on their way to the pods: unchanged, unseen, and good for long enough. */
import assert from 'node:assert/strict'
import { cpSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe } from 'node:test'
import { dump } from 'js-yaml'
import type { Fault } from '../emulator/index.ts'
import { carryOut, note } from './parts/keeper.ts'
import { startPageServer } from './parts/page-server.ts'
import { chart, forEachHelm, startStage } from './support/scene.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'links-'))
note({ remove: folder })

const stage = await startStage()
/** Serves what the links of these tests lead to. */
const archives = await startPageServer()
after(async () => {
  await archives.close()
  await stage.close()
  carryOut({ remove: folder })
})

/** Both values as they are, where Kubernetes takes nothing but strings. */
const tinyChart = makeChart('tiny', {
  'templates/config.yaml': `
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
data:
  link: {{ .Values.staticExport.bundleUrl | toJson }}
  version: {{ .Values.staticExport.version | toJson }}
`,
})

/** The sample chart, but it allows a link of https only, and Helm's error then quotes the one that it got. */
const strictChart = path.join(folder, 'strict')
cpSync(chart, strictChart, { recursive: true })
writeFileSync(
  path.join(strictChart, 'values.schema.json'),
  JSON.stringify({
    properties: { staticExport: { properties: { bundleUrl: { pattern: '^https://|^$' } } } },
  }),
)

/** Every character that "--set", YAML or a shell takes for its own, in a path or a query. */
const links = [
  '/a,b/c.tar.gz?k=v',
  '/{a,b}/[0].tar.gz?k=v',
  '/a.tar.gz?list={1,2}&map[x]=y',
  '/a=b&c%2Cd%20e.tar.gz?k=%2C&l=%7B%7D',
  '/back.tar.gz?path=C:\\new\\table&end=\\',
  '/quotes.tar.gz?double="x"&single=\'y\'&tick=`z`',
  '/yaml.tar.gz?a=:b&c=-d&e=!f&g=*h&i=|j&k=>l&m=%n&o=@p&q=~',
  '/template.tar.gz?a={{.Values.a}}&b=$HOME&c=$(id)&d=${{x}}',
] as const
const versions = [
  'null',
  'true',
  '1.10',
  '20261120',
  '007',
  '1e3',
  'a,b={c}&d%2C\\e\\',
  `"double" 'single' \`tick\``,
  ': # - ! * | > %',
  '{{ .Values.a }} $HOME $(id)',
] as const

await describe('Links', { concurrency: 3 }, () => {
  forEachHelm((helm, _, scenario) => {
    scenario('Links and versions arrive as they are, whatever they are made of', async () => {
      await using scene = await stage.scene(helm)
      const jobId = await scene.startExport()
      const cases = versions.map((version, index) => {
        const link = new URL((links[index % links.length] ?? '') + mark(index), archives.url).href
        archives.serve(link.slice(archives.url.length), { body: `archive ${index}` })
        return { release: `docs-${index}`, version, link }
      })
      for (const { link } of cases) scene.emulator.addFault(givesLink(link))

      const steps = cases.map(({ release, version }) => ({
        name: release,
        uses: 'OWNER/static-export-action/helm@v1',
        with: {
          'api-key': '${{ secrets.ADMIN_API_KEY }}',
          'base-url': '${{ vars.ADMIN_API_URL }}',
          kubeconfig: '${{ secrets.KUBECONFIG }}',
          chart: './chart',
          namespace: scene.namespace,
          'job-id': jobId,
          release,
          version,
        },
      }))
      using result = await scene.deploy({
        workflow: 'many.yml',
        chart: tinyChart,
        files: { '.github/workflows/many.yml': workflowOf(steps) },
      })
      assert.equal(result.exitCode, 0, result.log)
      for (const [index, { release, version, link }] of cases.entries()) {
        const object = scene.at(`configmaps/${release}`)
        const { data } = await scene.cluster.client.get<{ data: unknown }>(object)
        assert.deepEqual(data, { link, version })
        assert.equal(await (await fetch(link)).text(), `archive ${index}`)
      }
    })

    scenario(
      'A chart that rejects the link does not make Helm tell it, nor does HELM_DEBUG',
      async () => {
        await using scene = await stage.scene(helm)
        const environment = { HELM_DEBUG: '1' }
        using result = await scene.deploy({ chart: strictChart, environment })
        assert.equal(result.exitCode, 1)
        assert.equal(result.outputs.get('failureCode'), 'deploy-failed')
        const error = result.step('Deploy').errors.join()
        assert.match(error, /bundleUrl[^]*does not match pattern/i)
        assert.ok(error.includes("'…'"), error)
        assert.deepEqual(await scene.history(), [])

        using deployed = await scene.deploy({ environment })
        assert.equal(deployed.exitCode, 0, deployed.log)
        await scene.expectServed(deployed.outputs.get('jobId') ?? '')

        // Left alone, Helm does tell it.
        const given = ['--set', 'staticExport.enabled=true,staticExport.bundleUrl=http://the-link']
        await assert.rejects(
          scene.helm('upgrade', 'docs', strictChart, ...given),
          /http:\/\/the-link/,
        )
      },
    )

    scenario('A link that ends too soon is asked for again, once', async () => {
      await using scene = await stage.scene(helm)
      // The first one is that of the export.
      scene.emulator.addFault({
        ...givesLink(`${archives.url}/short.tar.gz?X-Amz-Signature=short`, 90),
        skip: 1,
      })
      using result = await scene.deploy()
      assert.equal(result.exitCode, 0, result.log)
      assert.match(result.log, /does not outlast the deployment; asking for a fresh one/)
      assert.equal(scene.count('bundle'), 3)
      await scene.expectServed(result.outputs.get('jobId') ?? '')
    })

    scenario('When no link lasts long enough, nothing is deployed', async () => {
      await using scene = await stage.scene(helm, { linkSeconds: 90 })
      using result = await scene.deploy()
      assert.equal(result.exitCode, 1)
      assert.equal(result.outputs.get('failureCode'), 'expired')
      assert.match(
        result.step('Deploy').errors.join(),
        /`helm-timeout-minutes` and two more \(2m 12s\)\. Nothing was deployed\.[^]*`mirror-bucket`/,
      )
      assert.equal(scene.count('bundle'), 3)
      assert.deepEqual(await scene.history(), [])
    })
  })
})

function makeChart(name: string, files: Readonly<Record<string, string>>): string {
  const target = path.join(folder, name)
  const manifest = dump({ apiVersion: 'v2', name, version: '1.0.0' })
  for (const [file, text] of Object.entries({ 'Chart.yaml': manifest, ...files })) {
    mkdirSync(path.dirname(path.join(target, file)), { recursive: true })
    writeFileSync(path.join(target, file), text)
  }
  return target
}

/** Makes each link another one, and a secret. */
function mark(index: number): string {
  return `&X-Amz-Signature=${index}${'0123456789abcdef'.repeat(4)}`
}

/** The service answers the next request for a link with this one. */
function givesLink(bundleUrl: string, lifeSeconds = 3600): Fault {
  const expiresAt = new Date(Date.now() + lifeSeconds * 1000).toISOString()
  return {
    operation: 'bundle',
    kind: 'reply',
    status: 200,
    contentType: 'application/json',
    text: JSON.stringify({ bundleUrl, expiresAt }),
  }
}

function workflowOf(steps: readonly object[]): string {
  const checkout = { uses: 'actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1' }
  const jobs = { docs: { 'runs-on': 'ubuntu-24.04', steps: [checkout, ...steps] } }
  return dump({ on: 'workflow_dispatch', jobs })
}
