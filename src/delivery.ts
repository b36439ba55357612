/** Carrying the bundle to the disk: the archive, the unpacked site, the chart values, in one download. */
import { randomBytes } from 'node:crypto'
import path from 'node:path'
import { unpack } from './archive.ts'
import { type Bundle, shortLifeMs } from './bundle.ts'
import { toChartValues } from './chart-values.ts'
import { type Disk, isDiskFull, removeQuietly, writePrivateFile } from './disk.ts'
import { type DownloadDependencies, download } from './download.ts'
import { Failure } from './errors.ts'
import { clean } from './text.ts'
import { count, formatBytes, formatUtc } from './units.ts'

/** What was asked for. All paths are absolute. */
export interface DeliveryRequest {
  readonly bundleFile: string | undefined
  readonly siteDirectory: string | undefined
  readonly chartValues: ChartValuesRequest | undefined
}

export interface ChartValuesRequest {
  readonly file: string
  readonly key: string
  /** Instead of the minted link; `{sha256}` stands for that of the archive. */
  readonly bundleUrl: string | undefined
  readonly version: string | undefined
}

/** What was done, as far as it came. */
export interface Delivery {
  bundleFile?: string
  bundleSha256?: string
  siteDirectory?: string
  valuesFile?: string
  /** Size of the archive. */
  sizeBytes?: number
  fileCount?: number
  unpackedBytes?: number
}

export interface DeliveryDependencies extends DownloadDependencies {
  readonly disk: Disk
  readonly platform: NodeJS.Platform
  /** A directory for what does not outlive the run. */
  readonly temporaryDirectory: string
  /** The link as it is now: a download may have renewed it. */
  readonly currentBundle: () => Bundle
  /** Measures a phase of the run. */
  readonly timed: <T>(phase: 'download' | 'unpack', work: () => Promise<T>) => Promise<T>
}

/** Whether the archive itself is needed, or only its link. */
export function needsArchive({ bundleFile, siteDirectory, chartValues }: DeliveryRequest): boolean {
  return (
    bundleFile !== undefined ||
    siteDirectory !== undefined ||
    chartValues?.bundleUrl?.includes('{sha256}') === true
  )
}

/**
 * Delivers what was asked for. Everything is written beside its target and moved there when it is whole:
 * each target is either complete or untouched, and nothing temporary is left.
 *
 * @throws Failure, see errors.ts
 */
export async function deliver(
  request: DeliveryRequest,
  delivery: Delivery,
  dependencies: DeliveryDependencies,
): Promise<void> {
  const { disk, log, timed } = dependencies
  const { bundleFile, siteDirectory, chartValues } = request
  const partial: string[] = []
  const lifeAtStartMs = remainingLifeMs()
  try {
    if (needsArchive(request)) await fetchArchive().catch(tellNeed)
    await renewIfSpent()
    if (chartValues) writeChartValues(chartValues)
  } finally {
    for (const leftover of partial) removeQuietly(leftover, disk, log)
  }

  /** A long download may have used up the link that is about to be handed over. */
  async function renewIfSpent(): Promise<void> {
    const lifeMs = remainingLifeMs()
    if (lifeMs >= shortLifeMs || lifeMs >= lifeAtStartMs / 2) return
    log.details('The link has come near its end; asking for a fresh one', [])
    await dependencies.renewLink()
  }

  function remainingLifeMs(): number {
    return dependencies.currentBundle().expiresAtMs - dependencies.serverWallMs()
  }

  async function fetchArchive(): Promise<void> {
    let archiveBytes = 0
    const archive = beside(
      bundleFile ?? path.join(dependencies.temporaryDirectory, 'bundle.tar.gz'),
    )
    const file = disk.create(archive, 0o644)
    try {
      const { sizeBytes, sha256 } = await timed('download', () =>
        download(
          dependencies.currentBundle(),
          file,
          { checkGzip: siteDirectory === undefined },
          dependencies,
        ),
      )
      archiveBytes = sizeBytes
      delivery.sizeBytes = sizeBytes
      delivery.bundleSha256 = sha256
      log.info(`Downloaded ${formatBytes(sizeBytes)}, sha256 ${sha256}`)
    } finally {
      file.close()
    }

    const site = siteDirectory === undefined ? undefined : beside(siteDirectory)
    if (site !== undefined) {
      const { fileCount, sizeBytes } = await timed('unpack', () =>
        unpack(archive, archiveBytes, site, {
          ...dependencies,
          warn(message) {
            log.warning(message)
          },
        }),
      )
      delivery.fileCount = fileCount
      delivery.unpackedBytes = sizeBytes
    }
    if (bundleFile !== undefined) {
      disk.move(archive, bundleFile)
      delivery.bundleFile = bundleFile
      log.info(`Archive: ${clean(bundleFile)}`)
    }
    if (siteDirectory !== undefined && site !== undefined) {
      disk.move(site, siteDirectory)
      delivery.siteDirectory = siteDirectory
      const { fileCount = 0, unpackedBytes = 0 } = delivery
      log.info(
        `Site: ${clean(siteDirectory)} (${count(fileCount, 'file')}, ${formatBytes(unpackedBytes)})`,
      )
    }
  }

  /** A full disk, with the room that is needed. */
  function tellNeed(error: unknown): never {
    const needed = dependencies.currentBundle().sizeBytes
    if (!isDiskFull(error) || needed === undefined) throw error
    const more = siteDirectory === undefined ? '' : ', and its pages more'
    const what = `${error.message} The archive needs ${formatBytes(needed)}${more}.`
    throw new Failure('disk', what, { cause: error })
  }

  function writeChartValues({ file, key, version, bundleUrl }: ChartValuesRequest): void {
    const { url, expiresAtMs } = dependencies.currentBundle()
    const link = bundleUrl?.replaceAll('{sha256}', delivery.bundleSha256 ?? '') ?? url.href
    const written = beside(file)
    writePrivateFile(written, toChartValues({ key, bundleUrl: link, version }), disk)
    disk.move(written, file)
    delivery.valuesFile = file
    log.info(`Chart values: ${clean(file)}`)
    if (bundleUrl === undefined) {
      log.info(
        `Pods that start after ${formatUtc(expiresAtMs)} cannot fetch this link any more: deploy again with a fresh one, or mirror the archive (\`values-bundle-url\`).`,
      )
    }
  }

  /** A name in the same directory, so that the move is one step; removed at the end whatever happens. */
  function beside(target: string): string {
    const directory = path.dirname(target)
    disk.makeDirectory(directory)
    const sibling = path.join(directory, `.static-export-${randomBytes(4).toString('hex')}`)
    partial.push(sibling)
    disk.removeAtExit(sibling)
    return sibling
  }
}
