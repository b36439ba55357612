/** The mirror: the archive kept on object storage under its own hash, where pods find it when the link has long expired. */
import { Failure } from './errors.ts'
import {
  type Answer,
  type StoreAccess,
  type StoreDependencies,
  describeObject,
  openStore,
  otherThanS3Advice,
  storeAccess,
} from './object-storage.ts'
import { formatBytes } from './units.ts'

/** Where a mirror is, by the inputs. */
export interface MirrorTarget {
  readonly bucket: string
  /** Empty, or without slashes at its ends and without a part of dots alone, which the path of a URL would lose. */
  readonly prefix: string
  readonly region: string | undefined
  /** Of a storage other than AWS. */
  readonly endpointUrl: URL | undefined
}

/** A mirror with all that it takes to reach it. */
export interface MirrorAccess extends StoreAccess {
  readonly prefix: string
}

export interface MirrorRequest {
  readonly access: MirrorAccess
  /** The archive on disk, already checked. */
  readonly archiveFile: string
  readonly sizeBytes: number
  /** Lower-case hex. */
  readonly sha256: string
}

export interface Mirrored {
  /** False when it had been there before. */
  readonly uploaded: boolean
}

/** The URL under which pods find an archive, below a base URL that includes the prefix. */
export function mirrorUrl(baseUrl: URL, sha256: string): string {
  return `${baseUrl.href.replace(/\/+$/, '')}/${objectName(sha256)}`
}

function objectName(sha256: string): string {
  return `${sha256}.tar.gz`
}

/**
 * Completes a mirror with what the usual AWS variables say, see {@link storeAccess}.
 *
 * @throws InvalidInputs with every problem found, each with its fix; nothing was sent
 */
export function mirrorAccess(
  target: MirrorTarget,
  environment: Readonly<Record<string, string | undefined>>,
): MirrorAccess {
  const access = storeAccess({ ...target, inputPrefix: 'mirror-' }, environment)
  return { ...access, prefix: target.prefix }
}

/** The most that one PutObject may carry (Amazon S3 user guide, "Uploading objects"). */
const longestPutBytes = 5 * 1024 ** 3

/**
 * Stores the archive as `<prefix>/<sha256>.tar.gz`, unless it is there already. What is there is never
 * overwritten, and nothing is removed.
 *
 * @throws Failure `storage-failed` with what the storage said, `timeout`, `disk`, or the reason of the signal
 */
export async function mirrorArchive(
  request: MirrorRequest,
  dependencies: StoreDependencies,
): Promise<Mirrored> {
  const { access, archiveFile, sizeBytes, sha256 } = request
  const { log } = dependencies
  const parts = access.prefix.split('/').filter((part) => part !== '')
  const key = [...parts, objectName(sha256)].join('/')
  const place = describeObject(access, key)
  const size = formatBytes(sizeBytes)
  if (sizeBytes > longestPutBytes) {
    const limit = formatBytes(longestPutBytes)
    const what = `The archive is too large for the mirror: it has ${size}, and ${limit} is the most that S3 stores at once.`
    const advice = 'Leave the mirror out, or upload the archive in parts in a step of your own.'
    throw new Failure('storage-failed', what, { advice })
  }
  const store = await openStore(access, dependencies)

  const found = await store.look(key)
  if (found.status === 200) return alreadyThere(found)
  // Without s3:ListBucket a missing object is forbidden, and no answer to HEAD gives a reason: the upload gets one.
  const isAbsent = found.status === 404
  if (!isAbsent) log.debug(`HTTP ${found.status} on looking for ${place}; the upload will tell.`)

  const upload = { key, file: archiveFile, sizeBytes, sha256, ...kept }
  let stored = await store.put({ ...upload, onlyIfAbsent: true })
  if (isAbsent && (stored.status === 501 || stored.code === 'NotImplemented')) {
    log.debug('This storage knows no conditional upload. Nothing was there a moment ago.')
    stored = await store.put({ ...upload, onlyIfAbsent: false })
  }
  // Another run was faster, or looking was forbidden.
  if (stored.status === 412) return alreadyThere(await store.look(key))
  if (stored.status !== 200) throw store.refusal('store', key, stored)
  if (stored.headers.etag === undefined) {
    const what = `Could not store ${place}: HTTP 200 came without an ETag, and so not from S3.`
    throw new Failure('storage-failed', what, { advice: otherThanS3Advice(access) })
  }
  log.info(`Mirrored ${size} to ${place}`)
  return { uploaded: true }

  function alreadyThere({ status, headers }: Answer): Mirrored {
    const thereBytes = headers['content-length']
    if (status !== 200) {
      log.debug(`HTTP ${status} on looking at ${place}: its size stays unknown.`)
    } else if (thereBytes !== sizeBytes.toString()) {
      const what = `${place} is there, but it is not the archive: it has ${thereBytes ?? 'an unknown number of'} bytes instead of ${sizeBytes}.`
      const advice = `What is there is never overwritten. Remove it, or choose another \`mirror-prefix\`. ${otherThanS3Advice(access)}`
      throw new Failure('storage-failed', what, { advice })
    }
    log.info(`Already mirrored: ${place} (${size})`)
    return { uploaded: false }
  }
}

/** A name that holds the hash of its content is good for ever. */
const kept = {
  contentType: 'application/gzip',
  cacheControl: 'public, max-age=31536000, immutable',
}
