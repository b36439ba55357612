/** The disk: what the run reads from it and writes to it. Problems are told as what they mean to the user. */
import fs from 'node:fs'
import path from 'node:path'
import process from 'node:process'
import type { Readable } from 'node:stream'
import { Failure } from './errors.ts'
import type { Log } from './log.ts'
import { clean } from './text.ts'
import { formatBytes } from './units.ts'

/** What stands at a path; a link is not followed. */
export type Kind = 'nothing' | 'file' | 'directory' | 'link' | 'other'

/** A new file, written from its beginning to its end. */
export interface NewFile {
  write(chunk: Uint8Array): void
  /** Forgets what was written. */
  restart(): void
  /** May be called again. */
  close(): void
}

/** Every method throws a Failure `disk` when the system refuses. */
export interface Disk {
  inspect(target: string): Kind
  isEmptyDirectory(directory: string): boolean
  /** Whether another file system begins at an existing directory. */
  isMountPoint(directory: string): boolean
  /** The path with the links of the part that exists resolved. */
  canonical(target: string): string
  /** Whether files can be made below a directory; where it does not exist, below its nearest ancestor. */
  isWritable(directory: string): boolean
  makeDirectory(directory: string): void
  /** Makes a directory of a new name that only its owner can enter, and has it removed at the end of the process. */
  makePrivateDirectory(parent: string): string
  /** Creates a file that must not exist. */
  create(file: string, mode: number): NewFile
  read(file: string): Readable
  /** Moves a file over another, or a directory to where there is none or an empty one. */
  move(from: string, to: string): void
  /** Removes a file or a whole directory, or nothing. */
  remove(target: string): void
  /** Has it removed at the end of the process, whatever that end is. */
  removeAtExit(target: string): void
}

/** Large enough that reading is not what an unpacking waits for. */
const readChunkBytes = 256 * 1024

export const systemDisk: Disk = {
  inspect(target) {
    const stats = trying(target, () => fs.lstatSync(target, { throwIfNoEntry: false }))
    if (!stats) return 'nothing'
    if (stats.isSymbolicLink()) return 'link'
    if (stats.isDirectory()) return 'directory'
    return stats.isFile() ? 'file' : 'other'
  },

  isEmptyDirectory: (directory) => trying(directory, () => fs.readdirSync(directory).length === 0),

  isMountPoint: (directory) =>
    trying(
      directory,
      () => fs.lstatSync(directory).dev !== fs.lstatSync(path.dirname(directory)).dev,
    ),

  canonical(target) {
    const ancestor = existingAncestor(target)
    return path.join(
      trying(ancestor, () => fs.realpathSync(ancestor)),
      path.relative(ancestor, target),
    )
  },

  isWritable(directory) {
    try {
      fs.accessSync(existingAncestor(directory), fs.constants.W_OK | fs.constants.X_OK)
      return true
    } catch {
      return false
    }
  },

  makeDirectory(directory) {
    trying(directory, () => fs.mkdirSync(directory, { recursive: true }))
  },

  makePrivateDirectory: (parent) =>
    trying(parent, () => {
      fs.mkdirSync(parent, { recursive: true })
      const directory = fs.mkdtempSync(path.join(parent, 'static-export-'))
      systemDisk.removeAtExit(directory)
      return directory
    }),

  create(file, mode) {
    const descriptor = trying(file, () => fs.openSync(file, 'wx', mode))
    let position = 0
    let open = true
    return {
      write(chunk) {
        trying(file, () => {
          for (let done = 0; done < chunk.length;) {
            const written = fs.writeSync(descriptor, chunk, done, chunk.length - done, position)
            done += written
            position += written
          }
        })
      },
      restart() {
        trying(file, () => {
          fs.ftruncateSync(descriptor)
        })
        position = 0
      },
      close() {
        if (!open) return
        open = false
        trying(file, () => {
          fs.closeSync(descriptor)
        })
      },
    }
  },

  read: (file) => fs.createReadStream(file, { highWaterMark: readChunkBytes }),

  move(from, to) {
    trying(to, () => {
      // Windows alone moves no directory over an empty one.
      if (process.platform === 'win32' && fs.existsSync(to) && fs.lstatSync(from).isDirectory()) {
        fs.rmdirSync(to)
      }
      fs.renameSync(from, to)
    })
  },

  removeAtExit(target) {
    if (doomed.size === 0) process.once('exit', removeDoomed)
    doomed.add(target)
  },

  remove(target) {
    trying(target, () => {
      fs.rmSync(target, { recursive: true, force: true })
    })
  },
}

/**
 * Writes a whole file that only its owner can read.
 *
 * @throws Failure `disk`, also when something stands there already
 */
export function writePrivateFile(file: string, text: string, disk: Pick<Disk, 'create'>): void {
  const created = disk.create(file, 0o600)
  try {
    created.write(Buffer.from(text))
  } finally {
    created.close()
  }
}

/** Whether there is a file, through links; not when the system does not let us look. */
export function isFile(target: string, disk: Pick<Disk, 'inspect' | 'canonical'>): boolean {
  try {
    return disk.inspect(disk.canonical(target)) === 'file'
  } catch (error) {
    if (error instanceof Failure) return false
    throw error
  }
}

/** Removes what the run has left, or logs why not: that must not hide how the run has ended. */
export function removeQuietly(target: string, disk: Pick<Disk, 'remove'>, log: Log): void {
  try {
    disk.remove(target)
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    log.debug(error.message)
  }
}

const doomed = new Set<string>()

function removeDoomed(): void {
  for (const target of doomed) {
    try {
      fs.rmSync(target, { recursive: true, force: true })
    } catch {
      // The run has ended and said how; it must not become a failure now, nor keep what comes next.
    }
  }
}

function existingAncestor(target: string): string {
  let ancestor = target
  while (!fs.existsSync(ancestor) && path.dirname(ancestor) !== ancestor) {
    ancestor = path.dirname(ancestor)
  }
  return ancestor
}

/** Carries out and translates errors of the system. */
function trying<T>(target: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw diskFailure(target, error)
  }
}

/** An error of the system as a Failure, with the free space when the disk is full. */
function diskFailure(target: string, error: unknown): Failure {
  const code = codeOf(error)
  const name = clean(target, 300)
  const reason = fullCodes.has(code)
    ? `the disk is full (${freeSpace(target)})`
    : (reasons[code] ?? code)
  return new Failure('disk', `${name}: ${reason}.`, { cause: error })
}

const fullCodes = new Set(['ENOSPC', 'EDQUOT'])

function codeOf(error: unknown): string {
  return Error.isError(error) && 'code' in error ? String(error.code) : 'unknown error'
}

/** Whether a failure says that there was no room left. */
export function isDiskFull(error: unknown): error is Failure {
  return error instanceof Failure && error.code === 'disk' && fullCodes.has(codeOf(error.cause))
}

const reasons: Partial<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  EBUSY: 'it is in use',
  ENOENT: 'there is no such directory',
  ENOTDIR: 'a file stands where a directory is needed',
  ENAMETOOLONG: 'the name is too long',
  EEXIST: 'something stands there already',
  ENOTEMPTY: 'the directory is not empty any more',
}

function freeSpace(target: string): string {
  try {
    const { bavail, bsize } = fs.statfsSync(existingAncestor(target))
    return `${formatBytes(bavail * bsize)} free`
  } catch {
    return 'free space unknown'
  }
}
