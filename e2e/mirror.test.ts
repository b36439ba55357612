/** The mirror: the archive in a bucket under its own hash, where pods find it when the link has long expired. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, describe } from 'node:test'
import { HeadObjectCommand, ListObjectsV2Command } from '@aws-sdk/client-s3'
import type { WorkflowResult } from './act/run-workflow.ts'
import { startObjectStorage } from './parts/object-storage.ts'
import { type DeployOptions, forEachHelm, type Scene, startStage } from './support/scene.ts'

const stage = await startStage()
const storage = await startObjectStorage()
after(async () => {
  await storage.close()
  await stage.close()
})

const linkSeconds = 600
const domains = ['docs.example.com', 'handbook.example.com'] as const

await describe('The mirror', { concurrency: 3 }, () => {
  forEachHelm((helm, _, scenario) => {
    scenario(
      'The archive is stored once, and served when no link works any more, also after a rollback',
      async () => {
        await using scene = await stage.scene(helm, { linkSeconds, domains })
        const prefix = scene.namespace

        using first = await deploy(scene, { inputs: { domain: domains[0] } })
        const archive = await expectMirrored(scene, first)
        const key = `${prefix}/${sha256(archive)}.tar.gz`
        const before = await stored(key)
        assert.match(first.log, /^Mirrored \S+ kB to /m)

        using second = await deploy(scene, { inputs: { domain: domains[1] } })
        const other = await expectMirrored(scene, second)
        assert.ok(!other.equals(archive))

        const jobId = second.outputs.get('jobId') ?? ''
        const presigned = await linkOf(scene, jobId)
        scene.emulator.advanceClock(linkSeconds + 1)
        assert.equal((await fetch(presigned)).status, 403)
        assert.ok((await served(scene)).equals(other))
        await scene.helm('rollback', 'docs', '1', '--wait')
        assert.ok((await served(scene)).equals(archive))

        using again = await deploy(scene, { inputs: { domain: domains[0] } })
        assert.ok((await expectMirrored(scene, again)).equals(archive))
        assert.deepEqual(await stored(key), before)
        assert.match(again.log, /^Already mirrored: /m)
        assert.deepEqual(
          await keys(`${prefix}/`),
          [key, `${prefix}/${sha256(other)}.tar.gz`].sort(),
        )
      },
    )

    scenario('Nothing is deployed when the storage refuses the credentials', async () => {
      await using scene = await stage.scene(helm)
      using result = await deploy(scene, {
        secrets: { AWS_SECRET_ACCESS_KEY: 'not-the-secret-key' },
      })
      await expectStorageFailed(scene, result, /SignatureDoesNotMatch/)
    })

    scenario('Nothing is deployed when there is no such bucket', async () => {
      await using scene = await stage.scene(helm)
      using result = await deploy(scene, { variables: { MIRROR_BUCKET: 'no-such-bucket' } })
      await expectStorageFailed(scene, result, /no-such-bucket[^]*NoSuchBucket/)
    })

    scenario(
      'A mirror without its address for pods is refused before anything is done',
      async () => {
        await using scene = await stage.scene(helm)
        using result = await deploy(scene, { variables: { MIRROR_BASE_URL: '' } })
        assert.equal(result.outputs.get('failureCode'), 'config')
        const { errors } = result.step('Check inputs and secrets')
        assert.match(errors.join(), /mirror-bucket and mirror-base-url belong together/)
        assert.equal(scene.count('start'), 0)
        assert.deepEqual(await scene.history(), [])
      },
    )

    scenario('A service that stumbles and a download that is cut cost a try, no more', async () => {
      // The first link is that of the export.
      const faults = ['status:503', 'bundle:503:skip=1', 'download:fin:after-bytes=1000']
      await using scene = await stage.scene(helm, { faults })
      using result = await deploy(scene)
      await expectMirrored(scene, result)
      const downloads = scene.emulator.requests.filter(({ operation }) => operation === 'download')
      assert.ok(downloads.length > 1)
    })

    scenario('A link that expires before the download is replaced by a fresh one', async () => {
      let links = 0
      await using scene = await stage.scene(helm, {
        linkSeconds,
        onRequest: ({ operation }) => {
          if (operation === 'bundle' && (links += 1) === 2) scene.emulator.advanceClock(linkSeconds)
        },
      })
      using result = await deploy(scene)
      await expectMirrored(scene, result)
      assert.equal(links - 1, 3)
    })
  })
})

/** Deploys with a mirror under the name of the namespace. */
function deploy(scene: Scene, options: DeployOptions = {}): Promise<WorkflowResult> {
  return scene.deploy({
    ...options,
    variables: {
      MIRROR_BUCKET: storage.bucket,
      MIRROR_PREFIX: scene.namespace,
      MIRROR_REGION: storage.region,
      MIRROR_ENDPOINT_URL: storage.endpoint,
      MIRROR_BASE_URL: storage.publicUrl(scene.namespace),
      ...options.variables,
    },
    secrets: {
      AWS_ACCESS_KEY_ID: storage.accessKeyId,
      AWS_SECRET_ACCESS_KEY: storage.secretAccessKey,
      ...options.secrets,
    },
    hidden: [storage.secretAccessKey, 'not-the-secret-key'],
  })
}

/** Pods get the lasting address of the archive of this export. Resolves with the archive. */
async function expectMirrored(scene: Scene, result: WorkflowResult): Promise<Buffer> {
  assert.equal(result.exitCode, 0, result.log)
  const archive = await scene.archiveOf(result.outputs.get('jobId') ?? '')
  const sum = sha256(archive)
  assert.equal(result.outputs.get('bundleSha256'), sum)
  assert.equal(await scene.link(), storage.publicUrl(`${scene.namespace}/${sum}.tar.gz`))
  assert.ok((await served(scene)).equals(archive))
  return archive
}

/** A presigned link to the archive of an export. */
async function linkOf({ emulator }: Scene, jobId: string): Promise<string> {
  const response = await fetch(`${emulator.apiUrl}/v1/static-export/jobs/${jobId}/bundle`, {
    method: 'POST',
    headers: { authorization: `Bearer ${emulator.keys.good}`, 'content-type': 'application/json' },
    body: '{}',
  })
  return ((await response.json()) as { bundleUrl: string }).bundleUrl
}

/** What pods fetch, without any credentials. */
async function served(scene: Scene): Promise<Buffer> {
  const response = await fetch(await scene.link())
  assert.equal(response.status, 200)
  return Buffer.from(await response.arrayBuffer())
}

async function expectStorageFailed(
  scene: Scene,
  result: WorkflowResult,
  error: RegExp,
): Promise<void> {
  assert.equal(result.exitCode, 1, result.log)
  assert.equal(result.outputs.get('failureCode'), 'storage-failed')
  assert.match(result.step('Deploy').errors.join(), error)
  assert.deepEqual(await scene.history(), [])
  assert.deepEqual(await keys(`${scene.namespace}/`), [])
}

/** What changes when an object is written again. */
async function stored(key: string) {
  const command = new HeadObjectCommand({ Bucket: storage.bucket, Key: key })
  const { ETag, LastModified, ContentLength, ContentType } = await storage.client.send(command)
  assert.equal(ContentType, 'application/gzip')
  return { ETag, LastModified, ContentLength }
}

async function keys(prefix: string): Promise<readonly (string | undefined)[]> {
  const command = new ListObjectsV2Command({ Bucket: storage.bucket, Prefix: prefix })
  const { Contents = [] } = await storage.client.send(command)
  return Contents.map(({ Key }) => Key).sort()
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
