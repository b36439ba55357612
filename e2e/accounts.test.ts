/** Jobs with a login of their own, and accounts that may do little: who deploys, and with what rights. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { after, describe } from 'node:test'
import { dump, load } from 'js-yaml'
import { filesIn } from './support/secrets.ts'
import { chart, forEachHelm, nowhere, type Scene, startStage } from './support/scene.ts'

interface Role {
  readonly metadata: { readonly name: string }
  readonly rules: readonly { readonly verbs: readonly string[] }[]
}

/** The least Role, as docs/helm.md shows it. */
const documentation = readFileSync(path.join(import.meta.dirname, '../docs/helm.md'), 'utf8')
const [, roleText = ''] = /^```yaml\n([^`]*^kind: Role\n[^`]*)^```/m.exec(documentation) ?? []
const leastRole = load(roleText) as Role

const stage = await startStage()
after(() => stage.close())

/** Of a caller whose cloud gives a kubeconfig. */
const secrets = { CLOUD_CREDENTIAL: stage.kubeconfig }

await describe('Accounts', { concurrency: 3 }, () => {
  forEachHelm((helm, _, scenario) => {
    scenario('A job with the login of its own cloud deploys with this step', async () => {
      await using scene = await stage.scene(helm)
      using result = await scene.deploy({ workflow: 'own-login.yml', secrets })
      assert.equal(result.exitCode, 0, result.log)
      await scene.expectServed(result.step('Deploy').outputs.get('jobId') ?? '')
      assert.equal((await scene.deployment()).spec.replicas, 3)
      assert.deepEqual(filesIn(path.join(result.leftovers, 'docs')), [])
    })

    scenario('That job makes its namespace on the first run', async () => {
      await using scene = await stage.scene(helm)
      const namespace = `${scene.namespace}-new`
      using result = await scene.deploy({
        workflow: 'own-login.yml',
        inputs: { namespace },
        secrets,
      })
      assert.equal(result.exitCode, 0, result.log)
      await stage.cluster.client.get(`/apis/apps/v1/namespaces/${namespace}/deployments/docs`)
    })

    scenario('A job that calls Helm itself deploys with the values file', async () => {
      await using scene = await stage.scene(helm)
      const workflow = 'values-file.yml'
      using first = await scene.deploy({ workflow, secrets })
      assert.equal(first.exitCode, 0, first.log)
      await scene.expectServed(first.step('Export the site').outputs.get('jobId') ?? '')
      assert.deepEqual(filesIn(path.join(first.leftovers, 'docs')), [])

      // What somebody has set in between is kept.
      await scene.helm('upgrade', 'docs', chart, '--reuse-values', '--set', 'replicaCount=3')
      const version = 'a,b={c}&d%2Ce "f" \\'
      const file = `.github/workflows/${workflow}`
      const text = readFileSync(path.join(import.meta.dirname, 'caller', file), 'utf8')
      const input = /^( +)(?=values-file:)/m
      using second = await scene.deploy({
        workflow,
        files: { [file]: text.replace(input, `$1version: ${JSON.stringify(version)}\n$1`) },
        secrets,
      })
      assert.equal(second.exitCode, 0, second.log)
      await scene.expectServed(second.step('Export the site').outputs.get('jobId') ?? '')
      assert.equal(await versionOf(scene), version)
      assert.equal((await scene.deployment()).spec.replicas, 3)
    })

    scenario(
      'The least Role is enough to install, to fail, to say why and to go back',
      async () => {
        await using scene = await stage.scene(helm)
        const account = await makeAccount(scene, leastRole)
        using installed = await scene.deploy(account)
        assert.equal(installed.exitCode, 0, installed.log)
        const jobId = installed.outputs.get('jobId') ?? ''
        await scene.expectServed(jobId)

        const inputs = { values: dump(nowhere), 'helm-timeout-minutes': '0.15' }
        using failed = await scene.deploy({ ...account, inputs })
        assert.equal(failed.outputs.get('failureCode'), 'deploy-failed')
        const error = failed.step('Deploy').errors.join()
        assert.match(error, /Rolled back to revision 1\.[^]*pod docs-\S+: Unschedulable/)
        assert.doesNotMatch(failed.log, /forbidden|could not be read/)
        assert.equal(failed.outputs.get('releaseRevision'), '3')
        assert.deepEqual(await scene.history(), ['1 superseded', '2 failed', '3 deployed'])
        await scene.expectServed(jobId)
      },
    )

    scenario('Without "watch" Helm 3 deploys, and Helm 4 fails with the advice', async () => {
      await using scene = await stage.scene(helm)
      const rules = leastRole.rules.map(({ verbs, ...rule }) => {
        return { ...rule, verbs: verbs.filter((verb) => verb !== 'watch') }
      })
      const account = await makeAccount(scene, { ...leastRole, rules })
      using result = await scene.deploy(account)
      if (helm.major === 3) {
        assert.equal(result.exitCode, 0, result.log)
        await scene.expectServed(result.outputs.get('jobId') ?? '')
        return
      }
      assert.equal(result.exitCode, 1)
      assert.equal(result.outputs.get('failureCode'), 'deploy-failed')
      const error = result.step('Deploy').errors.join()
      assert.match(error, /cannot watch resource[^]*What to do: Grant `watch`[^]*docs\/helm\.md/)
      // Nothing is in the way of a run with more rights.
      using next = await scene.deploy()
      assert.equal(next.exitCode, 0, next.log)
      await scene.expectServed(next.outputs.get('jobId') ?? '')
    })
  })
})

/** An account with a role, as what a run needs to use it. */
async function makeAccount(scene: Scene, role: Role) {
  const { client } = scene.cluster
  const name = 'deployer'
  const group = 'rbac.authorization.k8s.io'
  await client.create(scene.at('serviceaccounts'), { metadata: { name } })
  await client.create(scene.at('roles', `${group}/v1`), role)
  await client.create(scene.at('rolebindings', `${group}/v1`), {
    metadata: { name },
    roleRef: { apiGroup: group, kind: 'Role', name: role.metadata.name },
    subjects: [{ kind: 'ServiceAccount', name, namespace: scene.namespace }],
  })
  const path = scene.at(`serviceaccounts/${name}/token`)
  const { status } = await client.create<{ status: { token: string } }>(path, {
    spec: { expirationSeconds: 3600 },
  })
  const kubeconfig = load(stage.kubeconfig) as { users: { user: object }[] }
  for (const entry of kubeconfig.users) entry.user = { token: status.token }
  return { secrets: { KUBECONFIG: dump(kubeconfig) }, hidden: [status.token] }
}

/** As a pod sees it. */
async function versionOf(scene: Scene): Promise<string | undefined> {
  const { spec } = await scene.deployment()
  return spec.template.metadata.annotations['static-export/version']
}
