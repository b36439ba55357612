import { buffer } from 'node:stream/consumers'
import { createGzip } from 'node:zlib'
import { pack } from 'tar-stream'

/**
 * Files as one `.tar.gz`, in the order given. The bytes depend on names and contents alone: neither
 * tar nor gzip records a time, an owner or a host.
 */
export async function packArchive(
  files: Iterable<[name: string, content: Buffer]>,
): Promise<Buffer> {
  const tar = pack()
  for (const [name, content] of files) {
    tar.entry({ name, mode: 0o644, mtime: new Date(0) }, content)
  }
  tar.finalize()
  return await buffer(tar.pipe(createGzip()))
}
