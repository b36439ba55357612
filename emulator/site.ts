import { readdir, readFile } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { CORE_SCHEMA, load } from 'js-yaml'
import { isRecord } from './record.ts'

/** A Markdown file that becomes a page. */
export type Page = {
  /** Where readers find it: `/guides/start`, `/guides` for `guides/index.md`, `/` for `index.md`. */
  path: string
  /** Inside the folder, with slashes: `guides/start.md`. */
  source: string
  /** Inside the export: `guides/start.html`. */
  file: string
  /** Name in the navigation. */
  title: string
  bytes: Buffer
}

export type Section = { title: string; pages: Page[] }

/** A documentation folder as it was when an export started. */
export type Site = {
  name: string
  navigation: Section[]
  /** In the order of the navigation. */
  pages: Page[]
  /** Everything that is not a page, by its name inside the folder. */
  assets: Map<string, Buffer>
}

/** What an author got wrong. The message names the file. */
export class SiteProblem extends Error {
  constructor(source: string, reason: string) {
    super(`${source}: ${reason}`)
    this.name = 'SiteProblem'
  }
}

/** Optional; at the root of the folder. */
export const navigationFile = 'navigation.yaml'

/**
 * Reads a folder of Markdown. Other files are assets; hidden ones and symbolic links are left out.
 * Throws a SiteProblem for a folder that cannot be read or a navigation that is wrong; what is
 * wrong with a single page shows when that page is rendered.
 */
export async function readSite(directory: string): Promise<Site> {
  const files = await readFolder(directory)
  const navigation = files.get(navigationFile)
  files.delete(navigationFile)

  const pages: Page[] = []
  const assets = new Map<string, Buffer>()
  for (const [name, bytes] of files) {
    if (name.endsWith('.md')) pages.push(toPage(name, bytes))
    else assets.set(name, bytes)
  }
  rejectDoubles(pages, assets)
  const { name, sections } = navigation
    ? navigationFrom(navigation, pages)
    : { name: 'Documentation', sections: navigationByFolder(pages) }
  return { name, navigation: sections, pages: sections.flatMap((each) => each.pages), assets }
}

async function readFolder(directory: string): Promise<Map<string, Buffer>> {
  try {
    const entries = await readdir(directory, { recursive: true, withFileTypes: true })
    const names = entries
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(join(directory, sep).length))
      .filter((name) => !name.split(sep).some((part) => part.startsWith('.')))
      // By code unit: the order must not depend on the file system or the language of the machine.
      .sort()
    const files = new Map<string, Buffer>()
    for (const name of names) {
      // macOS hands out decomposed names; links are written composed.
      const composed = name.split(sep).join('/').normalize('NFC')
      files.set(composed, await readFile(join(directory, name)))
    }
    return files
  } catch (error) {
    throw new SiteProblem(directory, `cannot be read: ${String(error)}`)
  }
}

/** Two files for one place would silently replace each other in the export. */
function rejectDoubles(pages: Page[], assets: Site['assets']): void {
  const sources = new Map<string, string>()
  for (const page of pages) {
    const other = sources.get(page.path) ?? (assets.has(page.file) ? page.file : undefined)
    if (other !== undefined) throw new SiteProblem(page.source, `is the same page as ${other}`)
    sources.set(page.path, page.source)
  }
}

function toPage(source: string, bytes: Buffer): Page {
  const name = source.slice(0, -'.md'.length)
  const path = `/${name.replace(/(^|\/)index$/, '')}`
  return { path, source, file: `${name}.html`, title: titleOf(name, bytes), bytes }
}

/** Lenient, since a broken page must not break the navigation of the others. */
function titleOf(name: string, bytes: Buffer): string {
  const text = bytes.toString()
  const frontMatterTitle = /^---\n(?:.*\n)*?title:[ \t]*(.+)\n(?:.*\n)*?---\n/.exec(text)?.[1]
  const heading = /^# +(.+)$/m.exec(text)?.[1]
  return frontMatterTitle?.trim().replace(/^(["'])(.*)\1$/, '$2') ?? heading?.trim() ?? name
}

function navigationFrom(bytes: Buffer, pages: Page[]): { name: string; sections: Section[] } {
  const { name, sections } = parseNavigation(bytes)
  const left = new Map(pages.map((page) => [page.path, page]))
  const take = (path: string): Page => {
    const page = left.get(path)
    if (page === undefined) {
      throw new SiteProblem(navigationFile, `"${path}" is not a page, or is listed twice`)
    }
    left.delete(path)
    return page
  }
  const listed = sections.map((section) => ({
    title: section.title,
    pages: section.pages.map(take),
  }))
  if (left.size > 0) listed.push({ title: 'More', pages: [...left.values()] })
  return { name, sections: listed }
}

type NavigationFile = { name: string; sections: { title: string; pages: string[] }[] }

function parseNavigation(bytes: Buffer): NavigationFile {
  let content: unknown
  try {
    content = load(bytes.toString(), { schema: CORE_SCHEMA })
  } catch (error) {
    throw new SiteProblem(navigationFile, `is not valid YAML: ${firstLine(error)}`)
  }
  if (!isNavigation(content)) {
    throw new SiteProblem(
      navigationFile,
      'must have a "name" and "sections", each with a "title" and a list of "pages"',
    )
  }
  return content
}

function isNavigation(content: unknown): content is NavigationFile {
  if (!isRecord(content) || typeof content['name'] !== 'string') return false
  const { sections } = content
  return (
    Array.isArray(sections) &&
    sections.every(
      (section) =>
        isRecord(section) &&
        typeof section['title'] === 'string' &&
        Array.isArray(section['pages']) &&
        section['pages'].every((page) => typeof page === 'string'),
    )
  )
}

/** One section for each folder, the pages beside the root first. */
function navigationByFolder(pages: Page[]): Section[] {
  const sections = new Map<string, Page[]>([['', []]])
  for (const page of pages) {
    const folder = page.source.includes('/')
      ? page.source.slice(0, page.source.lastIndexOf('/'))
      : ''
    sections.set(folder, [...(sections.get(folder) ?? []), page])
  }
  return [...sections]
    .filter(([, members]) => members.length > 0)
    .map(([folder, members]) => ({
      title: folder === '' ? 'Documentation' : folder,
      pages: members.sort((a, b) => Number(isIndex(b)) - Number(isIndex(a))),
    }))
}

function isIndex(page: Page): boolean {
  return page.file.endsWith('index.html')
}

/** The reason of an error of the YAML parser, without the excerpt that it adds below. */
export function firstLine(error: unknown): string {
  const message = Error.isError(error) ? error.message : String(error)
  return (message.split('\n', 1)[0] ?? '').replace(/:$/, '')
}
