/**
 * Unpacking the archive: a static site has regular files and directories, and nothing else may come out of
 * it. Parsing is tar-stream's; what is allowed, and the writing, is ours.
 */
import path from 'node:path'
import { Transform, type TransformCallback } from 'node:stream'
import { finished, pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { type Header, extract } from 'tar-stream'
import type { Clock, Deadline } from './clock.ts'
import type { Disk, NewFile } from './disk.ts'
import { Failure } from './errors.ts'
import { clean } from './text.ts'
import { formatBytes } from './units.ts'

export interface UnpackDependencies {
  readonly disk: Disk
  readonly clock: Clock
  readonly deadline: Deadline
  readonly signal: AbortSignal
  readonly warn: (message: string) => void
  readonly platform: NodeJS.Platform
  /** Only tests set others. */
  readonly limits?: typeof defaultLimits
}

export interface Unpacked {
  readonly fileCount: number
  readonly sizeBytes: number
}

/** Fixed, and named in the error; a documentation site comes nowhere near them. */
export const defaultLimits = {
  entries: 250_000,
  unpackedBytes: 8 * 1024 ** 3,
  /** Bytes out for each byte in, once `ratioFromBytes` are out. */
  ratio: 200,
  ratioFromBytes: 10 * 1024 ** 2,
}
const maxPathBytes = 1_024
const maxPathParts = 64
const maxNameBytes = 255

const outputChunkBytes = 256 * 1024
/** What zlib may unpack ahead in its thread while files are written. */
const aheadBytes = 4 * outputChunkBytes

/**
 * Unpacks a `.tar.gz` into a new directory.
 *
 * @param archiveBytes its size, for the ratio
 * @param directory must not exist; after a failure it is left half filled
 * @throws Failure `unsafe-archive` naming the entry, `integrity`, `disk`, `timeout`, or the reason of the signal
 */
export async function unpack(
  archiveFile: string,
  archiveBytes: number,
  directory: string,
  dependencies: UnpackDependencies,
): Promise<Unpacked> {
  const { disk, clock, deadline, limits = defaultLimits } = dependencies
  const late = new AbortController()
  const signal = AbortSignal.any([dependencies.signal, late.signal])
  const admit = createRules(dependencies)
  const parser = extract()
  const made = new Set<string>()
  let openFile: NewFile | undefined
  let fileCount = 0
  let sizeBytes = 0

  parser.on('entry', (header, body, next) => {
    // Thrown errors would be lost in the parser: whatever fails here ends it.
    const attempt = (work: () => void) => {
      try {
        work()
      } catch (error) {
        parser.destroy(error as Error)
      }
    }
    body.on('error', () => {}) // the parser reports the same
    attempt(() => {
      const { parts, isFile } = admit(header)
      if (!isFile) {
        makeDirectory(path.join(directory, ...parts))
      } else {
        const file = path.join(directory, ...parts)
        makeDirectory(path.dirname(file))
        openFile = disk.create(file, 0o644)
        fileCount += 1
        sizeBytes += header.size
      }
      body.on('data', (chunk) => {
        attempt(() => openFile?.write(chunk as Buffer))
      })
      body.on('end', () => {
        attempt(() => openFile?.close())
        openFile = undefined
        next()
      })
    })
  })

  makeDirectory(directory)
  const stopTimer = clock.timer(deadline.remainingMs(), () => {
    const what = 'The time of this step was over before the archive was unpacked.'
    late.abort(new Failure('timeout', what))
  })
  try {
    const input = disk.read(archiveFile)
    const gunzip = createGunzip({ chunkSize: outputChunkBytes })
    await pipeline(input, gunzip, createGuard(limits, archiveBytes), parser, { signal })
    assertReadToEnd(gunzip.bytesWritten, archiveBytes)
  } catch (error) {
    signal.throwIfAborted()
    throw error instanceof Failure ? error : broken(error)
  } finally {
    stopTimer()
    openFile?.close()
  }
  if (fileCount === 0) throw new Failure('integrity', 'The archive holds no file.')
  return { fileCount, sizeBytes }

  function makeDirectory(target: string): void {
    if (made.has(target)) return
    disk.makeDirectory(target)
    made.add(target)
  }
}

/** Node stops in silence at a zero byte behind the end of a gzip stream: what follows was not read. */
function assertReadToEnd(readBytes: number, archiveBytes: number): void {
  if (readBytes !== archiveBytes) throw broken(new Error('something follows behind its end'))
}

/** Reads a gzip stream to its end without keeping anything, beside whoever else takes its bytes. */
export interface GzipCheck {
  /** Resolves when there is room for more. */
  add(chunk: Uint8Array): Promise<void> | undefined
  /** @throws Failure `integrity` when the stream is cut, has a wrong sum, or something behind it */
  finish(): Promise<void>
  /** Ends the check without a verdict. */
  stop(): void
}

/** Each way to the thread of zlib and back costs as much as many kilobytes of work. */
const checkedBatchBytes = 512 * 1024
const checkedChunkBytes = 1024 * 1024

/** Begins a check of the archive's checksums while it is downloaded; unpacking checks them by itself. */
export function createGzipCheck(): GzipCheck {
  const gunzip = createGunzip({ chunkSize: checkedChunkBytes })
  gunzip.on('data', (piece: Buffer<ArrayBuffer>) => {
    // zlib takes a new buffer when one is full; the full one is given back now, not left to the collector.
    const isFull = piece.byteOffset + piece.length === piece.buffer.byteLength
    if (isFull) piece.buffer.transfer(0)
  })
  const verdict = finished(gunzip)
  verdict.catch(() => {}) // told by finish
  // One batch is filled while the other is read.
  let [filling, reading] = [
    Buffer.allocUnsafe(checkedBatchBytes),
    Buffer.allocUnsafe(checkedBatchBytes),
  ]
  let filledBytes = 0
  let addedBytes = 0
  let written = Promise.resolve()

  async function pass(): Promise<void> {
    await written
    const batch = filling.subarray(0, filledBytes)
    // The callback comes in any case, also when the stream is broken.
    written = new Promise((resolve) =>
      gunzip.write(batch, () => {
        resolve()
      }),
    )
    ;[filling, reading] = [reading, filling]
    filledBytes = 0
  }

  async function fill(chunk: Uint8Array): Promise<void> {
    let rest = chunk
    while (filledBytes + rest.length > checkedBatchBytes) {
      const room = checkedBatchBytes - filledBytes
      filling.set(rest.subarray(0, room), filledBytes)
      filledBytes += room
      rest = rest.subarray(room)
      await pass()
    }
    filling.set(rest, filledBytes)
    filledBytes += rest.length
  }

  return {
    add(chunk) {
      addedBytes += chunk.length
      if (gunzip.destroyed) return undefined
      if (filledBytes + chunk.length > checkedBatchBytes) return fill(chunk)
      filling.set(chunk, filledBytes)
      filledBytes += chunk.length
      return undefined
    },
    async finish() {
      await pass()
      gunzip.end()
      await verdict.catch((error: unknown) => {
        throw broken(error)
      })
      assertReadToEnd(gunzip.bytesWritten, addedBytes)
    },
    stop() {
      gunzip.destroy()
    },
  }
}

function refusal(name: string, why: string): Failure {
  return new Failure('unsafe-archive', `The archive was refused at "${clean(name, 200)}": ${why}.`)
}

function broken(error: unknown): Failure {
  // The parser's first sentence; the next one guesses.
  const [reason = ''] = clean(Error.isError(error) ? error.message : '', 200).split(/[.?!](?:\s|$)/)
  return new Failure('integrity', `The archive cannot be read: ${reason}.`, { cause: error })
}

/** Windows keeps these names for devices, with any extension ("Naming Files", Microsoft). */
const deviceName = /^(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\.|$)/i

interface Admitted {
  /** Of its path, below the target. */
  readonly parts: readonly string[]
  readonly isFile: boolean
}

/**
 * The rules of what may be unpacked, over the entries of one archive. Judges by the header alone, before a byte of the body is read.
 */
function createRules({
  platform,
  warn,
  limits = defaultLimits,
}: UnpackDependencies): (header: Header) => Admitted {
  // What was seen, by its name on a file system that ignores case and Unicode form.
  const seen = new Map<string, { spelling: string; isFile: boolean }>()
  let entryCount = 0
  let unpackedBytes = 0
  let warned = false

  return (header) => {
    const { name, size } = header
    // The parser's types know no other, but what it does not know is null.
    const type = header.type as string | null
    entryCount += 1
    if (entryCount > limits.entries) throw tooMany(name)
    // The parser lets some sizes through that are none, and waits for ever for such a body.
    if (!Number.isSafeInteger(size) || size < 0) throw refusal(name, 'its size is not a number')
    // Old archives mark a directory by its name alone.
    const isFile = type === 'file' && !(size === 0 && name.endsWith('/'))
    if (type !== 'file' && type !== 'directory') {
      throw refusal(name, `it is neither a file nor a directory (${type ?? 'of unknown type'})`)
    }
    // The parser neither skips nor delivers the body of a directory, but takes it for further entries.
    if (!isFile && size > 0) throw refusal(name, 'it is a directory with a content')
    const extended = Object.keys(header.pax ?? {})
    if (extended.some((key) => key.startsWith('GNU.sparse.'))) {
      throw refusal(name, 'it is a sparse file')
    }
    // Only for more than 8 GiB; elsewhere a way to make two programs see two archives.
    if (extended.includes('size')) throw refusal(name, 'its size is given twice')
    unpackedBytes += size
    if (unpackedBytes > limits.unpackedBytes) {
      throw refusal(name, `the archive holds more than ${formatBytes(limits.unpackedBytes)}`)
    }

    const parts = toParts(name, isFile)
    const portable = parts.every(isPortable)
    if (!portable && platform === 'win32') throw refusal(name, 'Windows cannot hold this name')
    if (!portable && !warned) {
      warned = true
      warn(`The archive has names that Windows cannot hold, such as "${clean(name, 200)}".`)
    }
    register(name, parts, isFile)
    return { parts, isFile }
  }

  function tooMany(name: string): Failure {
    return refusal(name, `it has more than ${limits.entries} entries`)
  }

  /** Two names for one place, or a file where a directory is needed, would overwrite in silence. */
  function register(name: string, parts: readonly string[], isFile: boolean): void {
    parts.forEach((_part, index) => {
      const spelling = parts.slice(0, index + 1).join('/')
      const place = spelling.normalize('NFC').toLowerCase()
      const before = seen.get(place)
      const isLeafFile = isFile && index === parts.length - 1
      if (before && (isLeafFile || before.isFile)) {
        throw refusal(name, `"${clean(before.spelling, 200)}" stands at the same place`)
      }
      if (before && before.spelling !== spelling) {
        throw refusal(
          name,
          `it differs only in case or Unicode form from "${clean(before.spelling, 200)}"`,
        )
      }
      if (!before) seen.set(place, { spelling, isFile: isLeafFile })
      // Directories that no entry names are made all the same.
      if (seen.size > limits.entries) throw tooMany(name)
    })
  }
}

/** The parts of a relative path; `./` at the front and a slash at the end of a directory are common and fine. */
function toParts(name: string, isFile: boolean): string[] {
  // eslint-disable-next-line no-control-regex
  if (/[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/.test(name)) {
    throw refusal(name, 'its name has a control character')
  }
  if (name.includes('\ufffd')) throw refusal(name, 'its name is not valid UTF-8')
  if (/^(?:[/\\]|[a-z]:)/i.test(name)) throw refusal(name, 'its path is absolute')
  if (name.includes('\\')) throw refusal(name, 'its name has a backslash')
  if (Buffer.byteLength(name) > maxPathBytes) {
    throw refusal(name, `its path is longer than ${maxPathBytes} bytes`)
  }
  const parts = name.replace(/^(?:\.\/+)+/, '').split('/')
  if (!isFile && parts.at(-1) === '') parts.pop()
  if (!isFile && parts.length === 1 && parts[0] === '.') return []
  if (parts.length > maxPathParts) {
    throw refusal(name, `its path has more than ${maxPathParts} parts`)
  }
  for (const part of parts) {
    if (part === '..') throw refusal(name, 'its path leads out of the archive')
    if (part === '' || part === '.') throw refusal(name, 'its path is not a plain one')
    if (Buffer.byteLength(part) > maxNameBytes) {
      throw refusal(name, `a part of its path is longer than ${maxNameBytes} bytes`)
    }
  }
  return parts
}

function isPortable(part: string): boolean {
  return !/[<>:"|?*]|[. ]$/.test(part) && !deviceName.test(part)
}

const blockBytes = 512

/**
 * Watches the unpacked stream for what the parser does not: a bomb by its ratio, and whatever follows the
 * end of the archive (two blocks of zeros), which some programs read on and others do not.
 *
 */
function createGuard(limits: typeof defaultLimits, archiveBytes: number): Transform {
  let bytesOut = 0
  let skipBytes = 0
  let zeroBlocks = 0
  let rest: Buffer = Buffer.alloc(0)

  return new Transform({
    highWaterMark: aheadBytes,
    transform(chunk: Buffer, _encoding, done: TransformCallback) {
      bytesOut += chunk.length
      try {
        if (bytesOut > limits.ratioFromBytes && bytesOut > limits.ratio * archiveBytes) {
          throw new Failure(
            'unsafe-archive',
            `The archive was refused: it unpacks to more than ${limits.ratio} times its size.`,
          )
        }
        follow(chunk)
        done(null, chunk)
      } catch (error) {
        done(error as Error)
      }
    },
  })

  /** Goes from header to header; bodies are skipped by their size. */
  function follow(chunk: Buffer): void {
    let position = 0
    while (position < chunk.length) {
      if (skipBytes > 0) {
        const step = Math.min(skipBytes, chunk.length - position)
        skipBytes -= step
        position += step
        continue
      }
      const missing = blockBytes - rest.length
      const piece = chunk.subarray(position, position + missing)
      position += piece.length
      rest = rest.length === 0 ? piece : Buffer.concat([rest, piece])
      if (rest.length < blockBytes) return
      readHeader(rest)
      rest = Buffer.alloc(0)
    }
  }

  function readHeader(block: Buffer): void {
    if (block.every((byte) => byte === 0)) {
      zeroBlocks += 1
      return
    }
    if (zeroBlocks > 0) {
      throw new Failure(
        'unsafe-archive',
        'The archive was refused: something follows after its end, which programs read differently.',
      )
    }
    const isDirectory = block[156] === 0x35
    skipBytes = isDirectory ? 0 : Math.ceil(readSize(block) / blockBytes) * blockBytes
  }
}

/** The size field of a tar header: octal digits, or base 256 when its first bit is set (GNU). */
function readSize(block: Buffer): number {
  if (((block[124] ?? 0) & 0x80) !== 0) return block.readUIntBE(130, 6)
  const digits = /^[ \0]*([0-7]*)/.exec(block.toString('latin1', 124, 136))?.[1] ?? ''
  return digits === '' ? 0 : Number.parseInt(digits, 8)
}
