import { posix } from 'node:path'
import { CORE_SCHEMA, load } from 'js-yaml'
import { Marked, type Tokens } from 'marked'
import { isRecord } from './record.ts'
import { firstLine, SiteProblem, type Page, type Site } from './site.ts'

/** What an export renders: all pages of a site, or some. */
export type Edition = {
  site: Site
  /** Host name, for links to pages that are not part of the export. */
  domain: string
  /** Label shown to readers; null shows none. */
  version: string | null
  pages: Page[]
}

/** Assets that every page uses. The emulator brings this one when a site has none of its own. */
export const stylesheet = 'style.css'

/**
 * Renders one page as a self-contained HTML document: every link inside the export is relative.
 * Throws a SiteProblem that names the file when it is not UTF-8, has a front matter that is not a
 * YAML map, or links to something that is not there.
 */
export function renderPage(page: Page, edition: Edition): string {
  const { site, version, pages } = edition
  const { title, markdown } = readPage(page)
  const marked = new Marked({
    async: false,
    walkTokens: (token) => {
      if (token.type === 'link' || token.type === 'image') {
        const link = token as Tokens.Link | Tokens.Image
        link.href = resolveLink(link.href, page, edition)
      }
    },
    renderer: {
      heading({ tokens, depth, text }) {
        return `<h${depth} id="${slug(text)}">${this.parser.parseInline(tokens)}</h${depth}>\n`
      },
    },
  })
  const content = marked.parse(markdown) as string

  const heading = title ?? page.title
  const href = (file: string) => escape(relative(page.file, file))
  const navigation = site.navigation
    .map((section) => ({ ...section, pages: section.pages.filter((one) => pages.includes(one)) }))
    .filter((section) => section.pages.length > 0)
    .map((section) => {
      const items = section.pages.map((one) => {
        const current = one === page ? ' aria-current="page"' : ''
        return `<li><a href="${href(one.file)}"${current}>${escape(one.title)}</a></li>`
      })
      return `<h2>${escape(section.title)}</h2>\n<ul>\n${items.join('\n')}\n</ul>`
    })
  const position = pages.indexOf(page)
  const [previous, next] = [pages[position - 1], pages[position + 1]]
  const home = pages.find((one) => one.path === '/') ?? pages[0] ?? page
  const label = version === null ? '' : ` <span class="version">${escape(version)}</span>`

  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(heading)} · ${escape(site.name)}</title>
<link rel="stylesheet" href="${href(stylesheet)}">
</head>
<body>
<header><a href="${href(home.file)}">${escape(site.name)}</a>${label}</header>
<nav aria-label="Pages">
${navigation.join('\n')}
</nav>
<main>
${title === undefined ? '' : `<h1>${escape(title)}</h1>\n`}${content}</main>
<footer>
${previous ? `<a rel="prev" href="${href(previous.file)}">${escape(previous.title)}</a>` : ''}
${next ? `<a rel="next" href="${href(next.file)}">${escape(next.title)}</a>` : ''}
<p>${escape(site.name)}${label}</p>
</footer>
</body>
</html>
`
}

/** The text of a page, and the title that its front matter gives, if any. */
function readPage(page: Page): { title: string | undefined; markdown: string } {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(page.bytes).replaceAll('\r\n', '\n')
  } catch {
    throw new SiteProblem(page.source, 'is not valid UTF-8')
  }
  if (!text.startsWith('---\n')) return { title: undefined, markdown: text }

  const [, yaml, markdown] = /^---\n(.*?)^---(?:\n(.*))?$/ms.exec(text) ?? []
  if (yaml === undefined) {
    throw new SiteProblem(page.source, 'the front matter is not closed by a line "---"')
  }
  let data: unknown
  try {
    data = load(yaml, { schema: CORE_SCHEMA }) ?? {}
  } catch (error) {
    throw new SiteProblem(page.source, `the front matter is not valid YAML: ${firstLine(error)}`)
  }
  if (!isRecord(data)) {
    throw new SiteProblem(page.source, 'the front matter must consist of "name: value" lines')
  }
  const { title } = data
  return { title: typeof title === 'string' ? title : undefined, markdown: markdown ?? '' }
}

/** Finds what an author linked to, and says it the way the exported file must. */
function resolveLink(link: string, page: Page, edition: Edition): string {
  // Another site, a mail address, or a place on this page.
  if (/^([a-z][a-z0-9+.-]*:|\/\/|#|$)/i.test(link)) return link

  const { site, domain, pages } = edition
  const [, target = '', fragment = ''] = /^([^?#]*)([?#].*)?$/.exec(link) ?? []
  const name = posix
    .join(target.startsWith('/') ? '/' : posix.dirname(`/${page.source}`), decode(target))
    .normalize('NFC')
  const path = name.replace(/\.md$/, '').replace(/(?<=.)\/$/, '')
  const linked = site.pages.find((one) => one.path === path || one.source === name.slice(1))
  if (linked !== undefined) {
    return pages.includes(linked)
      ? relative(page.file, linked.file) + fragment
      : `https://${domain}${encodePath(linked.path)}${fragment}`
  }
  if (site.assets.has(name.slice(1))) return relative(page.file, name.slice(1)) + fragment
  throw new SiteProblem(
    page.source,
    `links to "${link}", which is neither a page nor a file of the site`,
  )
}

function decode(target: string): string {
  try {
    return decodeURIComponent(target)
  } catch {
    return target
  }
}

function relative(fromFile: string, toFile: string): string {
  return encodePath(posix.relative(posix.dirname(fromFile), toFile))
}

function encodePath(path: string): string {
  return path.split('/').map(encodeURIComponent).join('/')
}

/** The name of a heading in links, as in GitHub's rendering of Markdown. */
function slug(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^\p{Letter}\p{Number} _-]/gu, '')
    .replaceAll(' ', '-')
}

function escape(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}
