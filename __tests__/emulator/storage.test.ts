import { GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { startEmulator, type Emulator } from '../../emulator/index.ts'
import { presign, problemWithLink } from '../../emulator/signature.ts'
import { bucket, ObjectStorage, storageCredentials } from '../../emulator/storage.ts'
import { exportSite, ManualClock, send, type Bundle, type Sent, type Seen } from './client.ts'

const clock = new ManualClock()
let emulator: Emulator
let link: Bundle
let whole: Seen

beforeAll(async () => {
  emulator = await startEmulator({ clock, linkSeconds: 600 })
})
afterAll(() => emulator.close())
beforeEach(async () => {
  link = await exportSite(emulator, { paths: ['/'] })
  whole = await send(link.bundleUrl)
})

const s3Error = (seen: Seen) => {
  const xml = seen.body.toString()
  const element = (name: string) => new RegExp(`<${name}>(.*)</${name}>`).exec(xml)?.[1]
  expect(seen.headers['content-type']).toBe('application/xml')
  expect(seen.headers['x-amz-request-id']).toBe(element('RequestId'))
  return { status: seen.status, code: element('Code'), message: element('Message'), element }
}

describe('a link', () => {
  it('gives the archive, with what a careful client looks at', () => {
    expect(whole.status).toBe(200)
    expect(whole.headers).toMatchObject({
      'content-length': String(link.sizeBytes),
      'content-type': 'application/gzip',
      'accept-ranges': 'bytes',
      etag: expect.stringMatching(/^"[0-9a-f]{32}"$/) as unknown,
      'last-modified': expect.stringMatching(/ GMT$/) as unknown,
      'x-amz-request-id': expect.any(String) as unknown,
    })
  })

  it('is good until expiresAt and not a second longer', async () => {
    const lifetimeMs = Date.parse(link.expiresAt) - Date.parse(whole.headers['date'] as string)
    expect(lifetimeMs).toBe(600_000)
    emulator.advanceClock(599)
    expect((await send(link.bundleUrl)).status).toBe(200)
    emulator.advanceClock(1)
    const error = s3Error(await send(link.bundleUrl))
    expect(error).toMatchObject({
      status: 403,
      code: 'AccessDenied',
      message: 'Request has expired',
    })
    expect(Date.parse(error.element('Expires') ?? '')).toBe(Date.parse(link.expiresAt))
    expect(error.element('ServerTime')).toBe(error.element('Expires'))
    expect(error.element('X-Amz-Expires')).toBe('600')
  })

  const noMatch = { status: 403, code: 'SignatureDoesNotMatch' }
  it.each<[string, (url: URL) => void, object]>([
    ['another path', (url) => (url.pathname += 'x'), noMatch],
    [
      'a longer life',
      (url) => {
        url.searchParams.set('X-Amz-Expires', '601')
      },
      noMatch,
    ],
    [
      'another parameter',
      (url) => {
        url.searchParams.set('versionId', '1')
      },
      noMatch,
    ],
    [
      'another signature',
      (url) => {
        url.searchParams.set('X-Amz-Signature', 'f'.repeat(64))
      },
      noMatch,
    ],
    [
      'half a signature',
      (url) => {
        url.searchParams.set('X-Amz-Signature', 'ff')
      },
      noMatch,
    ],
    [
      'no signature',
      (url) => (url.search = ''),
      { status: 403, code: 'AccessDenied', message: 'Access Denied' },
    ],
    [
      'no date',
      (url) => {
        url.searchParams.delete('X-Amz-Date')
      },
      { status: 400, code: 'AuthorizationQueryParametersError' },
    ],
    [
      'a life of a month',
      (url) => {
        url.searchParams.set('X-Amz-Expires', '2592000')
      },
      { status: 400, code: 'AuthorizationQueryParametersError' },
    ],
    [
      'another region',
      (url) => {
        url.searchParams.set(
          'X-Amz-Credential',
          `${storageCredentials.accessKeyId}/20260301/eu-west-1/s3/aws4_request`,
        )
      },
      { status: 400, code: 'AuthorizationQueryParametersError' },
    ],
    [
      'another key',
      (url) => {
        url.searchParams.set(
          'X-Amz-Credential',
          url.searchParams.get('X-Amz-Credential')?.replace('EMULATOR', 'X') ?? '',
        )
      },
      { status: 403, code: 'InvalidAccessKeyId' },
    ],
    [
      'a path that is no UTF-8',
      (url) => (url.pathname = '/%FF'),
      { status: 400, code: 'InvalidURI' },
    ],
  ])('with %s is refused', async (_, change, expected) => {
    const url = new URL(link.bundleUrl)
    change(url)
    expect(s3Error(await send(url.href))).toMatchObject(expected)
  })

  it('is for GET: HEAD and PUT do not match the signature', async () => {
    const head = await send(link.bundleUrl, { method: 'HEAD' })
    expect([head.status, head.body.length]).toEqual([403, 0])
    expect(s3Error(await send(link.bundleUrl, { method: 'PUT' }))).toMatchObject(noMatch)
  })

  it('does not go together with a key, which S3 then repeats', async () => {
    const error = s3Error(await send(link.bundleUrl, { headers: { authorization: 'Bearer a&b' } }))
    expect(error).toMatchObject({ status: 400, code: 'InvalidArgument' })
    expect(error.message).toMatch(/^Only one auth mechanism allowed/)
    expect(error.element('ArgumentValue')).toBe('Bearer a&amp;b')
  })

  it('does not go together with a header of Amazon that it does not sign', async () => {
    const seen = await send(link.bundleUrl, { headers: { 'x-amz-meta-x': '1' } })
    const error = s3Error(seen)
    expect(error).toMatchObject({ status: 403, code: 'AccessDenied' })
    expect(error.element('HeadersNotSigned')).toBe('x-amz-meta-x')
  })

  it('is signed for the host that clients use', async () => {
    await using behind = await startEmulator({ storagePublicUrl: 'http://storage.internal:4011' })
    const { bundleUrl } = await exportSite(behind)
    const { host, pathname, search } = new URL(bundleUrl)
    expect(host).toBe('storage.internal:4011')
    // storageUrl is what clients are told; where it really listens shows in no answer.
    const storage = new ObjectStorage(clock, () => 'id')
    const request = { method: 'GET', target: pathname + search, body: '' }
    const nowMs = Date.now() + 1_000_000
    expect(
      problemWithLink({ ...request, headers: { host } }, storageCredentials, nowMs),
    ).toBeUndefined()
    expect(
      problemWithLink({ ...request, headers: { host: 'x' } }, storageCredentials, nowMs),
    ).toMatchObject(noMatch)
    expect(storage.answer({ ...request, headers: { host: 'x' } }).status).toBe(403)
  })
})

describe('a range', () => {
  const range = (value: string, headers: Sent['headers'] = {}) =>
    send(link.bundleUrl, { headers: { range: value, ...headers } })

  it.each([
    ['bytes=0-0', 0, 1],
    ['bytes=10-19', 10, 20],
    ['bytes=100-', 100, undefined],
    ['bytes=-7', -7, undefined],
    ['bytes=5-99999999', 5, undefined],
  ])('%s is answered with these bytes', async (value, from, to) => {
    const seen = await range(value)
    const expected = whole.body.subarray(from, to)
    const first = from < 0 ? link.sizeBytes + from : from
    expect(seen.status).toBe(206)
    expect(seen.body).toEqual(expected)
    expect(seen.headers['content-length']).toBe(String(expected.length))
    expect(seen.headers['content-range']).toBe(
      `bytes ${first}-${first + expected.length - 1}/${link.sizeBytes}`,
    )
    expect(seen.headers['etag']).toBe(whole.headers['etag'])
  })

  it.each(['bytes=9-5', 'bytes=0-1,4-5', 'lines=1-2', 'bytes=x'])(
    '%s is ignored',
    async (value) => {
      const seen = await range(value)
      expect([seen.status, seen.body.length]).toEqual([200, link.sizeBytes])
    },
  )

  it('beyond the end is a 416 that tells the size', async () => {
    const error = s3Error(await range(`bytes=${link.sizeBytes}-`))
    expect(error).toMatchObject({ status: 416, code: 'InvalidRange' })
    expect(error.element('ActualObjectSize')).toBe(String(link.sizeBytes))
  })

  it('may depend on the object being the same', async () => {
    const etag = whole.headers['etag'] as string
    expect((await range('bytes=5-', { 'if-match': etag })).status).toBe(206)
    const changed = s3Error(await range('bytes=5-', { 'if-match': '"other"' }))
    expect(changed).toMatchObject({ status: 412, code: 'PreconditionFailed' })
    expect((await range('bytes=5-', { 'if-range': etag })).status).toBe(206)
    expect((await range('bytes=5-', { 'if-range': '"other"' })).status).toBe(200)
  })
})

describe('signatures, with the AWS SDK as the oracle', () => {
  const sdk = new S3Client({
    region: storageCredentials.region,
    credentials: storageCredentials,
    endpoint: 'http://127.0.0.1:4011',
    forcePathStyle: true,
  })
  const key = "a folder/größe (1)+&=!*'.tar.gz"
  const signingDate = new Date(clock.nowMs)
  const check = (url: string, method = 'GET', nowMs = clock.nowMs) => {
    const { host, pathname, search } = new URL(url)
    const request = { method, target: pathname + search, headers: { host }, body: '' }
    return problemWithLink(request, storageCredentials, nowMs)
  }

  it.each(['plain.tar.gz', key])(
    'its links to %j are accepted, for their time and method',
    async (Key) => {
      const command = new GetObjectCommand({ Bucket: bucket, Key })
      const url = await getSignedUrl(sdk, command, { expiresIn: 60, signingDate })
      expect(check(url)).toBeUndefined()
      expect(check(url, 'PUT')).toMatchObject({ code: 'SignatureDoesNotMatch' })
      expect(check(url, 'GET', signingDate.getTime() + 60_000)).toMatchObject({
        code: 'AccessDenied',
      })
      const put = await getSignedUrl(sdk, new PutObjectCommand({ Bucket: bucket, Key }), {
        signingDate,
      })
      expect(check(put, 'PUT')).toBeUndefined()
    },
  )

  it.each(['plain.tar.gz', key])('our links to %j are those it would make', async (Key) => {
    const command = new GetObjectCommand({ Bucket: bucket, Key })
    const theirs = new URL(await getSignedUrl(sdk, command, { expiresIn: 60, signingDate }))
    // Parameters that the SDK adds and every server ignores, but that are signed: ours with them.
    const own = [
      'X-Amz-Expires',
      'X-Amz-Date',
      'X-Amz-Algorithm',
      'X-Amz-Credential',
      'X-Amz-SignedHeaders',
      'X-Amz-Signature',
    ]
    const extra = new URLSearchParams(
      [...theirs.searchParams].filter(([name]) => !own.includes(name)),
    )
    const path = Key.split('/').map(encodeURIComponent).join('/')
    const ours = new URL(
      await presign(
        `http://127.0.0.1:4011/${bucket}/${path}?${extra.toString()}`,
        storageCredentials,
        signingDate.getTime(),
        60,
      ),
    )
    const sorted = (url: URL) => [...url.searchParams].sort()
    expect(sorted(ours)).toEqual(sorted(theirs))
    expect(decodeURIComponent(ours.pathname)).toBe(decodeURIComponent(theirs.pathname))
  })

  it('ours are accepted whatever the key and the other parameters, until one of them changes', async () => {
    // A URL takes "." and ".." out of its path.
    const name = fc
      .string({ unit: 'grapheme', minLength: 1, maxLength: 12 })
      .filter((one) => one !== '.' && one !== '..')
    await fc.assert(
      fc.asyncProperty(name, fc.dictionary(name, name), async (Key, parameters) => {
        const path = `${bucket}/${encodeURIComponent(Key)}`
        const url = `http://127.0.0.1:4011/${path}?${new URLSearchParams(parameters).toString()}`
        const link = await presign(url, storageCredentials, clock.nowMs, 60)
        const noMatch = { code: 'SignatureDoesNotMatch' }
        expect(check(link)).toBeUndefined()
        expect(check(`${link}&more=1`)).toMatchObject(noMatch)
        expect(check(link.replace(`/${bucket}/`, `/${bucket}/x`))).toMatchObject(noMatch)
      }),
    )
  })

  it('a link made by it opens the storage', async () => {
    const storage = new ObjectStorage(clock, () => 'id')
    storage.put(key, Buffer.from('bytes'))
    const get = async (Key: string) => {
      const command = new GetObjectCommand({ Bucket: bucket, Key })
      const { host, pathname, search } = new URL(await getSignedUrl(sdk, command, { signingDate }))
      return storage.answer({
        method: 'GET',
        target: pathname + search,
        headers: { host },
        body: '',
      })
    }
    expect((await get(key)).body.toString()).toBe('bytes')
    const missing = await get('other')
    expect(missing.status).toBe(404)
    expect(missing.body.toString()).toContain('<Code>NoSuchKey</Code>')
  })
})
