/** The cluster: by the input or by the machine, and never `localhost:8080` by mistake. */
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { type Disk, systemDisk } from '../../src/disk.ts'
import { ambientCluster, parseKubeconfig } from '../../src/helm/kubeconfig.ts'
import { Problem } from '../../src/input-reader.ts'

const config = `apiVersion: v1
kind: Config
current-context: prod
clusters:
- name: prod
  cluster:
    server: https://k8s.example.com:6443
    certificate-authority-data: Q0E=
contexts:
- name: prod
  context: {cluster: prod, user: robot}
- name: arn:aws:eks:eu-central-1:1:cluster/test
  context: {cluster: prod}
users:
- name: robot
  user:
    token: token-0123456789
`
const base64 = Buffer.from(config).toString('base64')

function parse(text: string, context?: string, files: readonly string[] = []) {
  return parseKubeconfig(text, context, (file) => files.includes(file))
}

const flatten = 'Store what `kubectl config view --raw --flatten --minify` prints.'
const noKubeconfig =
  '`kubeconfig` is not a kubeconfig, neither as YAML nor in base64. Is the secret whole? (`kubectl config view --raw --flatten --minify` prints what belongs into it.)'

describe('the input', () => {
  test.each([
    ['as text', config],
    ['as text with space around it', `\ufeff\r\n \n${config}\n\n`],
    ['in base64', base64],
    ['in base64 with line ends', `${base64.replace(/.{76}/g, '$&\n')}\n`],
    ['in base64 of text with space around it', Buffer.from(`\n${config}\n`).toString('base64')],
  ])('%s', (_how, text) => {
    expect(parse(text)).toEqual({ text: config, context: 'prod', secrets: ['token-0123456789'] })
  })

  test('as JSON, and indented', () => {
    const json =
      '{"current-context":"c","clusters":[{"name":"c","cluster":{"server":"https://k"}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"users":null}'
    expect(parse(json)).toEqual({ text: `${json}\n`, context: 'c', secrets: [] })
    const indented = config.replace(/^/gm, '  ').trimEnd()
    expect(parse(indented)).toMatchObject({ text: `${indented}\n`, context: 'prod' })
  })

  test('with another context than its current one', () => {
    const context = 'arn:aws:eks:eu-central-1:1:cluster/test'
    expect(parse(config, context)).toMatchObject({ context })
    expect(parse(config.replace('current-context: prod\n', ''), 'prod')).toMatchObject({
      context: 'prod',
    })
  })

  test.each([
    ['hunter2-hunter2', noKubeconfig],
    ['clusters: []', noKubeconfig],
    ['clusters: {}\ncontexts: {}', noKubeconfig],
    [`${config}\n\t- x`, noKubeconfig],
    [base64.slice(0, -5), noKubeconfig],
    [`${base64.slice(0, 40)}!${base64.slice(40)}`, noKubeconfig],
    [Buffer.from('hunter2: 1').toString('base64'), noKubeconfig],
    [Buffer.from([0xff, 0xfe, 0xfd]).toString('base64'), noKubeconfig],
    [
      '/home/me/.kube/config',
      '`kubeconfig` looks like the path of a file. It is for the text itself; for a file on the runner, set the variable KUBECONFIG instead.',
    ],
    [
      '~/.kube/config',
      '`kubeconfig` looks like the path of a file. It is for the text itself; for a file on the runner, set the variable KUBECONFIG instead.',
    ],
    [
      config.replace('current-context: prod', 'current-context: ""'),
      '`kubeconfig` has no current-context; name a context in `kube-context`.',
    ],
    [
      config.replace('current-context: prod', 'current-context: old'),
      '`kubeconfig` has a current-context that is not among its contexts; name another one in `kube-context`.',
    ],
    [
      'clusters: []\ncontexts: []',
      '`kubeconfig` has no current-context; name a context in `kube-context`.',
    ],
    [
      config.replace('{cluster: prod, user', '{cluster: old, user'),
      '`kubeconfig` has a context whose cluster is missing.',
    ],
    [
      config.replace('server: https://k8s.example.com:6443', 'server: ""'),
      '`kubeconfig` has a context whose cluster has no `server`.',
    ],
    [
      config.replace('user: robot', 'user: old'),
      '`kubeconfig` has a context whose user is missing.',
    ],
    [
      config.replace('certificate-authority-data: Q0E=', 'certificate-authority: ca.crt'),
      `\`kubeconfig\` names a file by a relative path, which is not here. ${flatten}`,
    ],
    [
      config.replace('token: token-0123456789', 'tokenFile: ./token'),
      `\`kubeconfig\` names a file by a relative path, which is not here. ${flatten}`,
    ],
    [
      config.replace('token: token-0123456789', 'exec: {command: ./bin/aws}'),
      `\`kubeconfig\` names a file by a relative path, which is not here. ${flatten}`,
    ],
    [
      config.replace('token: token-0123456789', 'client-key: /home/me/.minikube/client.key'),
      `\`kubeconfig\` names a file that does not exist on this runner. ${flatten}`,
    ],
  ])('is refused: %#', (text, problem) => {
    expect(() => parse(text)).toThrow(new Problem(problem))
  })

  test('is refused without the context that is asked for', () => {
    expect(() => parse(config, 'staging')).toThrow(
      new Problem('`kube-context` ("staging") is not a context of `kubeconfig`.'),
    )
  })

  test('may name files that exist, and plugins', () => {
    const file = config.replace('certificate-authority-data: Q0E=', 'certificate-authority: /ca')
    expect(() => parse(file, undefined, ['/ca'])).not.toThrow()
    // Nobody asks for the files of a cluster that is not used.
    const other = '- name: minikube\n  cluster: {server: https://m, certificate-authority: /m/ca}\n'
    expect(() => parse(config.replace('contexts:', `${other}contexts:`))).not.toThrow()
    for (const command of ['aws', '/usr/bin/gke-gcloud-auth-plugin']) {
      const plugin = config.replace('token: token-0123456789', `exec: {command: ${command}}`)
      expect(() => parse(plugin)).not.toThrow()
    }
  })

  test('gives every secret in it for the masks', () => {
    const line = 'MIIEvQIBADANBgkqhkiG9w0BAQEFAASC'
    const pem = `-----BEGIN PRIVATE KEY-----\n${line}\nshort==\n-----END PRIVATE KEY-----\n`
    const key = Buffer.from(pem).toString('base64')
    const users = `users:
- name: robot
  user:
    client-certificate-data: public-certificate
    client-key-data: ${key}
    username: not-a-secret-name
    password: "pass: word-1"
- name: short
  user: {token: short}
- name: google
  user:
    auth-provider: {name: gcp, config: {access-token: access-0123, cmd-path: /usr/bin/gcloud}}
- name: aws
  user:
    exec:
      command: aws
      env:
      - {name: AWS_PROFILE, value: production}
      - {name: AWS_SECRET_ACCESS_KEY, value: secret-0123}
`
    expect(parse(config.replace(/users:[^]*/, users)).secrets).toEqual([
      key,
      line,
      'pass: word-1',
      'access-0123',
      'secret-0123',
    ])
  })

  test('whatever it holds: nothing of it is repeated', () => {
    const secret = 'hunter2hunter2'
    const part = fc.oneof(fc.string(), fc.constantFrom(secret, '\n', ': ', '- ', '*', '{', '\t', '&a ', config)) // prettier-ignore
    fc.assert(
      fc.property(fc.array(part), (parts) => {
        try {
          parse(parts.join(''))
        } catch (error) {
          if (!(error instanceof Problem)) throw error
          expect(error.message).not.toContain(secret)
        }
      }),
    )
  })
})

describe('the machine', () => {
  let root: string
  beforeEach(() => {
    root = fs.mkdtempSync(path.join(tmpdir(), 'kubeconfig-'))
    fs.mkdirSync(path.join(root, 'home/.kube'), { recursive: true })
    fs.mkdirSync(path.join(root, 'work'))
  })
  afterEach(() => {
    fs.rmSync(root, { recursive: true })
  })

  const inPod = { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' }
  const token = '/var/run/secrets/kubernetes.io/serviceaccount/token'
  const podDisk: Disk = {
    ...systemDisk,
    inspect: (target) => (target === token ? 'file' : systemDisk.inspect(target)),
    canonical: (target) => (target === token ? target : systemDisk.canonical(target)),
  }
  const find = (
    environment: Readonly<Record<string, string>>,
    { context, disk = systemDisk }: { context?: string; disk?: Disk } = {},
  ) =>
    ambientCluster(environment, context, {
      disk,
      workspace: path.join(root, 'work'),
      home: path.join(root, 'home'),
    })
  const write = (name: string, text: string) => {
    const file = path.join(root, name)
    fs.writeFileSync(file, text)
    return file
  }
  const secrets = ['token-0123456789']

  test('has a kubeconfig at home, or where KUBECONFIG says', async () => {
    const home = write('home/.kube/config', config)
    const other = write('work/other', config)
    expect(await find({})).toEqual({ kind: 'files', files: [home], context: 'prod', secrets })
    expect(await find({ KUBECONFIG: '' })).toMatchObject({ files: [home] })
    expect(await find({ KUBECONFIG: other })).toMatchObject({ files: [other] })
    expect(await find({ KUBECONFIG: 'other' })).toMatchObject({ files: [other] })
    // A pod that has logged in somewhere else is not asked.
    expect(await find({ ...inPod, KUBECONFIG: other }, { disk: podDisk })).toMatchObject({ files: [other] }) // prettier-ignore
  })

  test('has several, of which one must exist', async () => {
    const clusters = write('clusters', config.replace(/current-context.*\n/, ''))
    const current = write('current', 'current-context: prod\n')
    const missing = path.join(root, 'missing')
    const KUBECONFIG = ['', missing, current, clusters].join(path.delimiter)
    expect(await find({ KUBECONFIG })).toEqual({ kind: 'files', files: [current, clusters], context: 'prod', secrets }) // prettier-ignore
  })

  test('is a pod', async () => {
    expect(await find(inPod, { disk: podDisk })).toEqual({ kind: 'pod' })
    write('home/.kube/config', '')
    expect(await find(inPod, { disk: podDisk })).toEqual({ kind: 'pod' })
  })

  test('has the variables of Helm', async () => {
    expect(await find({ HELM_KUBEAPISERVER: 'https://k8s.example.com' })).toEqual({ kind: 'variables' }) // prettier-ignore
  })

  test('has none', async () => {
    const text = (why: string) =>
      `There is no cluster to deploy to: \`kubeconfig\` is empty, the variable KUBECONFIG is not set, ${root}/home/.kube/config ${why}, and this runner is not a pod.`
    await expect(find({})).rejects.toMatchObject({
      code: 'config',
      message: text('does not exist'),
      advice:
        'Give `kubeconfig` from a secret, or log in to the cluster in an earlier step of this job. In the reusable workflow, pass the secret KUBECONFIG; one of an environment reaches it only with `secrets: inherit`.',
    })
    write('home/.kube/config', '')
    // The variables of a pod alone, as containers of a pod without a service account have them.
    await expect(find(inPod)).rejects.toMatchObject({ message: text('holds no cluster') })
  })

  test.each([
    ['a file that is missing', undefined, 'which does not exist.'],
    ['an empty file', '', 'which holds no cluster.'],
    ['a file without clusters', 'clusters: []\ncontexts: []\n', 'which holds no cluster.'],
  ])('names %s, which is not taken for the cluster of the pod', async (_what, text, why) => {
    const file = path.join(root, 'logged-in')
    if (text !== undefined) fs.writeFileSync(file, text)
    await expect(find({ ...inPod, KUBECONFIG: file }, { disk: podDisk })).rejects.toMatchObject({
      code: 'config',
      message: `KUBECONFIG names ${file}, ${why}`,
      advice: 'Did the step that logs in to the cluster run in this job, before this step?',
    })
  })

  test('has a kubeconfig that is none', async () => {
    const file = write('home/.kube/config', 'hunter2')
    await expect(find({})).rejects.toMatchObject({
      code: 'config',
      message: `${file} is not a kubeconfig.`,
    })
  })

  test('has no such context', async () => {
    const file = write('home/.kube/config', config)
    const missing = {
      code: 'config',
      message: `\`kube-context\` ("staging") is not a context of ${file}.`,
    }
    await expect(find({}, { context: 'staging' })).rejects.toMatchObject(missing)
    await expect(find({ HELM_KUBECONTEXT: 'staging' })).rejects.toMatchObject(missing)
    fs.rmSync(file)
    await expect(find(inPod, { context: 'prod', disk: podDisk })).rejects.toMatchObject({
      code: 'config',
      message: '`kube-context` ("prod") needs a kubeconfig; this runner is a pod without one.',
    })
  })
})
