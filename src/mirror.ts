/** The mirror: the archive kept on object storage under its own hash, where pods find it long after the link has expired. */
import type { Agent } from 'node:http'
import type { Clock, Deadline } from './clock.ts'
import type { Disk } from './disk.ts'
import type { Log } from './log.ts'

/** Where a mirror is, and how it is reached. */
export interface MirrorTarget {
  readonly bucket: string
  /** Without slashes at its ends; may be empty. */
  readonly prefix: string
  /** Else that of the environment. */
  readonly region: string | undefined
  /** Of a storage other than AWS. */
  readonly endpointUrl: URL | undefined
}

/** A {@link MirrorTarget} that can be used: nothing is missing. */
export interface MirrorAccess extends MirrorTarget {
  readonly region: string
  readonly credentials: MirrorCredentials
}

export interface MirrorCredentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken: string | undefined
}

/** The archive on disk, already checked. */
export interface MirrorRequest {
  readonly access: MirrorAccess
  readonly archiveFile: string
  readonly sizeBytes: number
  /** Lower-case hex. */
  readonly sha256: string
}

export interface MirrorDependencies {
  readonly disk: Pick<Disk, 'read'>
  /** The agent by which a URL is reached, through the proxy of the environment if there is one. */
  readonly agentFor: (url: URL) => Agent
  readonly clock: Clock
  /** From 0 to 1. */
  readonly random: () => number
  readonly log: Log
  readonly deadline: Deadline
  readonly signal: AbortSignal
}

export interface Mirrored {
  /** In the bucket. */
  readonly key: string
  /** False when it had been there before. */
  readonly uploaded: boolean
}

/** @throws Failure `config` naming every variable that is missing; nothing is sent */
export function mirrorAccess(
  target: MirrorTarget,
  environment: Readonly<Record<string, string | undefined>>,
): MirrorAccess {
  throw new Error(`not written yet ${target.bucket} ${Object.keys(environment).length}`)
}

export function mirrorArchive(
  request: MirrorRequest,
  dependencies: MirrorDependencies,
): Promise<Mirrored> {
  throw new Error(`not written yet ${request.sha256} ${dependencies.random()}`)
}

/** The URL below which pods find the archive. */
export function mirrorUrl(baseUrl: URL, sha256: string): string {
  return `${baseUrl.href.replace(/\/+$/, '')}/${sha256}.tar.gz`
}
