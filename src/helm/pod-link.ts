/** The link that pods get: the minted one, which must outlast the deployment, or that of a mirror, which lasts. */
import path from 'node:path'
import type { Bundle } from '../bundle.ts'
import type { Downloaded } from '../download.ts'
import { Failure } from '../errors.ts'
import type { MirrorAccess } from '../mirror.ts'
import type { StoreDependencies } from '../object-storage.ts'
import type { Environment } from '../runner.ts'
import type { Session } from '../session.ts'
import { formatDuration } from '../units.ts'
import type { HelmInputs, HelmMirror } from './inputs.ts'
import type { HelmReceipt, HelmStep } from './receipt.ts'

export interface LinkSource {
  /** Mints a link, and downloads and mirrors the archive where that is asked for. */
  prepare(session: Session, receipt: HelmReceipt): Promise<Archive | undefined>
  /** The link to deploy, right before it is: that of the mirror, or one that lasts long enough from now. */
  settle(session: Session, receipt: HelmReceipt): Promise<string>
}

/** Where the archive is, for those who compare with it. */
export interface Archive extends Downloaded {
  readonly file: string
}

export interface LinkDependencies extends Omit<StoreDependencies, 'deadline'> {
  readonly environment: Environment
  /** Private; the archive stays in it. */
  readonly directory: string
  readonly timed: <T>(step: HelmStep, work: () => Promise<T>) => Promise<T>
}

/** What a link must outlast beyond the time that Helm has. */
const reserveMs = 2 * 60_000

/**
 * Prepares where the link comes from, so that a mirror that cannot be used is told before anybody waits.
 *
 * @throws Failure `config`
 */
export async function prepareLink(
  { jobId, helmTimeoutMs, mirror, verifyUrl }: HelmInputs,
  dependencies: LinkDependencies,
): Promise<LinkSource> {
  const access = mirror && (await accessTo(mirror, dependencies.environment))
  return {
    async prepare(session, receipt) {
      const minted = await session.mintLink(jobId)
      if (!verifyUrl && !mirror) return undefined
      const file = path.join(dependencies.directory, 'bundle.tar.gz')
      const archive = { ...(await session.fetchArchive(jobId, minted, file)), file }
      if (!mirror || !access) return archive
      session.waitFor('the mirror')
      const { mirrorArchive, mirrorUrl } = await import('../mirror.ts')
      const request = { access, archiveFile: file, ...archive }
      const { uploaded } = await dependencies.timed('mirror', () =>
        mirrorArchive(request, { ...dependencies, deadline: session.deadline }),
      )
      receipt.mirrored = { url: mirrorUrl(mirror.baseUrl, archive.sha256), uploaded }
      return archive
    },
    async settle(session, { mirrored, exported }) {
      return mirrored?.url ?? (await lasting(session, exported.bundle)).url.href
    },
  }

  /** Pods start until Helm gives up, and fetch the link when they do. */
  async function lasting(session: Session, minted: Bundle | undefined): Promise<Bundle> {
    const neededMs = helmTimeoutMs + reserveMs
    const lifeMs = ({ expiresAtMs }: Bundle) => expiresAtMs - session.client.serverWallMs()
    if (minted && lifeMs(minted) >= neededMs) return minted
    dependencies.log.info('The link does not outlast the deployment; asking for a fresh one')
    const fresh = await session.mintLink(jobId)
    if (lifeMs(fresh) >= neededMs) return fresh
    throw new Failure(
      'expired',
      `The link works only for ${formatDuration(lifeMs(fresh))}, but must outlast \`helm-timeout-minutes\` and two more (${formatDuration(neededMs)}). Nothing was deployed.`,
      {
        advice:
          'Lower `helm-timeout-minutes`, or use a mirror (`mirror-bucket`), whose links do not expire.',
      },
    )
  }
}

async function accessTo(mirror: HelmMirror, environment: Environment): Promise<MirrorAccess> {
  const { mirrorAccess } = await import('../mirror.ts')
  return mirrorAccess(mirror, environment)
}
