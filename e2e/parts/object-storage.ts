/** A real S3 server with a bucket whose objects anyone may read, as pods read a mirror. */
import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { CreateBucketCommand, PutBucketPolicyCommand, S3Client } from '@aws-sdk/client-s3'
import { tools } from '../tools/tools.ts'
import { startPart, type Part } from './lifetime.ts'
import { freePorts, waitFor } from './ready.ts'

export interface ObjectStorage extends Part {
  readonly endpoint: string
  readonly region: string
  readonly bucket: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /** Where anyone may read the object of a key. */
  publicUrl(key: string): string
  /** A client that may do everything. */
  readonly client: S3Client
}

/** Starts a server with an empty bucket. */
export function startObjectStorage(): Promise<ObjectStorage> {
  return startPart(async (scope) => {
    const objects = path.join(scope.folder('object-storage'), 'objects')
    mkdirSync(objects)
    const { port } = await freePorts('port')
    const endpoint = `http://127.0.0.1:${port}`
    const region = 'eu-central-1'
    const bucket = 'mirror'
    const credentials = { accessKeyId: 'e2e-access-key', secretAccessKey: 'e2e-secret-access-key' }
    const gateway = scope.program(
      tools.versitygw,
      ['--port', `127.0.0.1:${port}`, '--region', region, 'posix', objects],
      {
        ROOT_ACCESS_KEY: credentials.accessKeyId,
        ROOT_SECRET_KEY: credentials.secretAccessKey,
      },
    )
    await waitFor({
      what: `answering on port ${port}: object storage`,
      program: gateway,
      ask: () => fetch(endpoint, { signal: AbortSignal.timeout(1_000) }),
    })

    const client = new S3Client({ endpoint, region, credentials, forcePathStyle: true })
    await client.send(new CreateBucketCommand({ Bucket: bucket }))
    await client.send(
      new PutBucketPolicyCommand({
        Bucket: bucket,
        Policy: JSON.stringify({
          Statement: [
            {
              Effect: 'Allow',
              Principal: '*',
              Action: 's3:GetObject',
              Resource: `arn:aws:s3:::${bucket}/*`,
            },
          ],
        }),
      }),
    )
    return {
      endpoint,
      region,
      bucket,
      ...credentials,
      publicUrl: (key) => `${endpoint}/${bucket}/${key}`,
      client,
    }
  })
}
