/** Where on the disk a run may write: checked before anything is sent. */
import path from 'node:path'
import type { DeliveryRequest } from './delivery.ts'
import type { Disk } from './disk.ts'
import { Failure } from './errors.ts'
import { clean } from './text.ts'

/** The inputs that name a place on the disk. */
export type TargetName = 'bundle-file' | 'site-directory' | 'values-file'

/** Where relative paths begin, and which directories are nobody's to replace. */
export interface Places {
  readonly disk: Disk
  readonly workspace: string
  readonly home: string
}

/** What is wrong with a place to write to, for the list of wrong inputs; undefined when nothing is. */
export function targetProblem(
  name: TargetName,
  target: string,
  places: Places,
): string | undefined {
  try {
    return findProblem(name, target, places)
  } catch (error) {
    if (error instanceof Failure) return `\`${name}\` cannot be used. ${error.message}`
    throw error
  }
}

function findProblem(
  name: TargetName,
  target: string,
  { disk, workspace, home }: Places,
): string | undefined {
  const shown = `\`${name}\` ("${clean(target, 200)}")`
  const wanted = name === 'site-directory' ? 'directory' : 'file'
  const kind = disk.inspect(target)
  if (kind === 'link') return `${shown} is a symbolic link; name the ${wanted} itself.`
  if (kind !== 'nothing' && kind !== wanted) {
    return `${shown} is a ${kind === 'other' ? 'special file' : kind}, where a ${wanted} is to be written.`
  }
  const canonical = disk.canonical(target)
  if (isInside(disk.canonical(workspace), canonical)) {
    return `${shown} is the workspace or a directory above it; name a new ${wanted}.`
  }
  if (name !== 'site-directory') return undefined
  if (isInside(disk.canonical(home), canonical)) {
    return `${shown} is the home directory or one above it; name a new directory.`
  }
  if (canonical.split(path.sep).some((part) => part.toLowerCase() === '.git')) {
    return `${shown} is inside a .git directory; name one outside.`
  }
  if (kind === 'directory' && !disk.isEmptyDirectory(target)) {
    return `${shown} is not empty; name a new or an empty directory.`
  }
  if (kind === 'directory' && disk.isMountPoint(target)) {
    return `${shown} is a mount point, which cannot be replaced; name a directory in it.`
  }
  return undefined
}

/** The pairs of targets of which one is the other or inside it, as problems. */
export function overlapProblems(
  targets: ReadonlyMap<TargetName, string>,
  { disk }: Places,
): string[] {
  const named = [...targets].map(([name, target]) => ({ name, canonical: disk.canonical(target) }))
  return named.flatMap((inner, index) =>
    named
      .filter((_outer, other) => other !== index)
      .filter((outer) => isInside(inner.canonical, outer.canonical))
      .filter((outer) => inner.canonical !== outer.canonical || named.indexOf(outer) > index)
      .map((outer) =>
        inner.canonical === outer.canonical
          ? `\`${inner.name}\` and \`${outer.name}\` name the same place.`
          : `\`${inner.name}\` is inside \`${outer.name}\`; keep them apart.`,
      ),
  )
}

/** Whether a path is another or inside it. */
function isInside(inner: string, outer: string): boolean {
  const relative = path.relative(outer, inner)
  return relative !== '..' && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative)
}

/** The places that a request writes to. */
export function targetsOf({ bundleFile, siteDirectory, chartValues }: DeliveryRequest): string[] {
  return [bundleFile, siteDirectory, chartValues?.file].filter((target) => target !== undefined)
}

/**
 * Makes sure that the parents of all targets can be written to, before anything is sent.
 *
 * @throws Failure `disk`
 */
export function assertWritable(targets: readonly string[], disk: Disk): void {
  for (const target of targets) {
    const parent = path.dirname(target)
    if (disk.isWritable(parent)) continue
    throw new Failure(
      'disk',
      `Nothing can be written to ${clean(parent, 300)}: it is read-only, or permission is denied.`,
    )
  }
}
