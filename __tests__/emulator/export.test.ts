import { mkdtemp, mkdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, posix } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { startEmulator, type Curve, type EmulatorOptions } from '../../emulator/index.ts'
import { bundle, exportSite, ManualClock, send, start, status, unpack } from './client.ts'

const clock = new ManualClock()
const emulate = (options: EmulatorOptions = {}) =>
  startEmulator({ clock, queueSeconds: 5, jobSeconds: 100, ...options })

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'emulator-site-'))
})
afterEach(() => rm(folder, { recursive: true }))

async function write(files: Record<string, string | Buffer>): Promise<void> {
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true })
    await writeFile(join(folder, name), content)
  }
}

/** Ten small pages. */
const tenPages = () =>
  write(Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`page-${n}.md`, `# Page ${n}\n`])))

describe('a job', () => {
  it('is queued, runs and completes when the clock says so', async () => {
    await tenPages()
    await using emulator = await emulate({ siteDirectory: folder })
    const job = await start(emulator)
    expect(job).toMatchObject({ status: 'queued', progress: 0, pageCount: 0, error: null })

    clock.advance(4)
    expect(await status(emulator, job.jobId)).toMatchObject({ status: 'queued' })
    clock.advance(1)
    expect(await status(emulator, job.jobId)).toMatchObject({ status: 'running', pageCount: 0 })
    clock.advance(35)
    expect(await status(emulator, job.jobId)).toEqual({
      jobId: job.jobId,
      status: 'running',
      progress: 30,
      pageCount: 3,
      createdAt: '2026-03-01T10:00:00.000Z',
      updatedAt: '2026-03-01T10:00:40.000Z',
      error: null,
    })
    clock.advance(64)
    expect(await status(emulator, job.jobId)).toMatchObject({ status: 'running', pageCount: 9 })
    clock.advance(1)
    expect(await status(emulator, job.jobId)).toMatchObject({
      status: 'completed',
      progress: 100,
      pageCount: 10,
    })
  })

  it('may be completed in the reply to start', async () => {
    await using emulator = await emulate({ queueSeconds: 0, jobSeconds: 0 })
    expect(await start(emulator)).toMatchObject({ status: 'completed', progress: 100 })
  })

  it('has ids that a seed repeats', async () => {
    const ids = async (options: EmulatorOptions) => {
      await using emulator = await emulate(options)
      return [(await start(emulator)).jobId, (await start(emulator)).jobId]
    }
    const [first, second] = await ids({ seed: 'a' })
    expect(first).toMatch(/^se_[0-9a-f]{24}$/)
    expect(await ids({ seed: 'a' })).toEqual([first, second])
    expect(await ids({ seed: 'b' })).not.toContain(first)
    expect(await ids({})).not.toContain(first)
  })

  it.each<[Curve, number[]]>([
    ['linear', [1, 2, 5, 8, 9]],
    ['slow-start', [0, 0, 1, 5, 7]],
    ['slow-end', [2, 4, 8, 9, 9]],
    ['stall', [2, 4, 4, 6, 8]],
  ])('with the curve %s has rendered %j pages on its way', async (curve, pageCounts) => {
    await tenPages()
    await using emulator = await emulate({ siteDirectory: folder, curve, queueSeconds: 0 })
    const { jobId } = await start(emulator)
    const seen: number[] = []
    for (const seconds of [10, 10, 30, 30, 10]) {
      clock.advance(seconds)
      seen.push((await status(emulator, jobId)).pageCount)
    }
    expect(seen).toEqual(pageCounts)
    clock.advance(10)
    expect(await status(emulator, jobId)).toMatchObject({ status: 'completed', pageCount: 10 })
  })

  it('can be told barely, backwards, or in a word that nobody knows', async () => {
    await tenPages()
    const tell = async (report: NonNullable<EmulatorOptions['report']>) => {
      await using emulator = await emulate({ siteDirectory: folder, report, queueSeconds: 0 })
      const { jobId } = await start(emulator)
      clock.advance(30)
      const first = await status(emulator, jobId)
      clock.advance(20)
      const second = await status(emulator, jobId)
      clock.advance(50)
      return [first, second, await status(emulator, jobId)]
    }
    for (const job of await tell('bare')) {
      expect(job).not.toHaveProperty('progress')
      expect(job).not.toHaveProperty('pageCount')
    }
    const backwards = await tell('backwards')
    expect(backwards.map((job) => job.progress)).toEqual([30, 12, 100])
    expect(backwards.map((job) => job.pageCount)).toEqual([3, 1, 10])
    const unknown = await tell('unknown-status')
    expect(unknown.map((job) => job.status)).toEqual(['exporting', 'exporting', 'completed'])
  })

  it.each([
    ['an unclosed front matter', '---\ntitle: x\n', /^guides\/bad\.md: .*not closed/],
    [
      'a front matter that is no YAML',
      '---\ntitle: "x\n---\n',
      /^guides\/bad\.md: .*not valid YAML/,
    ],
    ['a front matter that is no map', '---\n- x\n---\n', /^guides\/bad\.md: .*"name: value"/],
    ['bytes that are not UTF-8', Buffer.from([0x23, 0xff]), /^guides\/bad\.md: is not valid UTF-8/],
    ['a link to nothing', '[x](../nowhere.md)', /^guides\/bad\.md: links to "\.\.\/nowhere\.md"/],
    ['a missing image', '![x](/images/x.png)', /^guides\/bad\.md: links to "\/images\/x\.png"/],
    ['a link out of the folder', '![x](../../../etc/passwd)', /^guides\/bad\.md: links to /],
  ])('fails on %s, naming the file', async (_, content, error) => {
    await tenPages()
    await write({ 'guides/bad.md': content })
    await using emulator = await emulate({ siteDirectory: folder })
    const { jobId } = await start(emulator)
    clock.advance(1000)
    const job = await status(emulator, jobId)
    expect(job).toMatchObject({ status: 'failed', pageCount: 10, progress: 90 })
    expect(job.error).toMatch(error)
  })

  it.each([
    ['name: [', /^navigation\.yaml: is not valid YAML/],
    ['name: x\n', /^navigation\.yaml: must have a "name" and "sections"/],
    ['name: x\nsections: [{title: y, pages: [/z]}]\n', /^navigation\.yaml: "\/z" is not a page/],
  ])('fails on the navigation file %j', async (content, error) => {
    await tenPages()
    await write({ 'navigation.yaml': content })
    await using emulator = await emulate({ siteDirectory: folder })
    const { jobId } = await start(emulator)
    clock.advance(5)
    const job = await status(emulator, jobId)
    expect(job).toMatchObject({ status: 'failed', pageCount: 0 })
    expect(job.error).toMatch(error)
  })

  it.each([
    [{ 'page-3/index.md': '# Page 3' }, /^page-3\/index\.md: is the same page as page-3\.md$/],
    [{ 'page-3.html': '<p>' }, /^page-3\.md: is the same page as page-3\.html$/],
  ])('fails on two files for one page: %j', async (files, error) => {
    await tenPages()
    await write(files)
    await using emulator = await emulate({ siteDirectory: folder })
    const { jobId } = await start(emulator)
    clock.advance(5)
    expect((await status(emulator, jobId)).error).toMatch(error)
  })

  it('fails when the folder is gone', async () => {
    await using emulator = await emulate({ siteDirectory: join(folder, 'gone') })
    const { jobId } = await start(emulator)
    clock.advance(1000)
    expect((await status(emulator, jobId)).error).toMatch(/gone: cannot be read: .*ENOENT/)
  })

  it('fails on demand, once', async () => {
    await tenPages()
    await using emulator = await emulate({ siteDirectory: folder })
    emulator.failNextJob({ error: 'Out of paper.', afterPages: 4 })
    const [first, second] = [await start(emulator), await start(emulator)]
    clock.advance(1000)
    expect(await status(emulator, first.jobId)).toMatchObject({
      status: 'failed',
      pageCount: 4,
      error: 'Out of paper.',
    })
    expect(await status(emulator, second.jobId)).toMatchObject({ status: 'completed' })
  })
})

describe('the archive', () => {
  const download = async (options: EmulatorOptions = {}, body: object = {}) => {
    await using emulator = await emulate(options)
    const { bundleUrl, sizeBytes } = await exportSite(emulator, body)
    const { body: archive } = await send(bundleUrl)
    expect(archive.length).toBe(sizeBytes)
    return archive
  }
  const text = (files: Map<string, Buffer>, name: string) => files.get(name)?.toString() ?? ''

  it('holds the sample site: pages by their path, assets and a manifest', async () => {
    const files = await unpack(await download())
    const pages = [...files.keys()].filter((name) => name.endsWith('.html'))
    expect(pages.length).toBeGreaterThanOrEqual(40)
    expect(pages.length).toBeLessThanOrEqual(50)
    expect(pages).toEqual(expect.arrayContaining(['index.html', 'guides/größenänderung.html']))
    expect([...files.keys()]).toEqual(expect.arrayContaining(['style.css', 'export.json']))
    expect(
      [...files.values()].filter((bytes) => bytes.subarray(1, 4).toString() === 'PNG').length,
    ).toBeGreaterThanOrEqual(1)
    expect(JSON.parse(text(files, 'export.json'))).toMatchObject({
      domain: 'docs.example.com',
      version: null,
      pageCount: pages.length,
    })
  })

  it('is closed in itself: every relative link of the sample site leads to a file and a heading', async () => {
    const files = await unpack(await download())
    const broken: string[] = []
    let count = 0
    for (const [name, bytes] of files) {
      if (!name.endsWith('.html')) continue
      for (const [, link = ''] of bytes.toString().matchAll(/(?:href|src)="([^"]*)"/g)) {
        if (/^[a-z]+:/.test(link)) continue
        count += 1
        const [path = '', heading] = link.split('#')
        const target =
          path === '' ? name : posix.join(posix.dirname(name), decodeURIComponent(path))
        const found =
          files.has(target) &&
          (heading === undefined || text(files, target).includes(`id="${decodeURI(heading)}"`))
        if (!found) broken.push(`${name}: ${link}`)
      }
    }
    expect(broken).toEqual([])
    expect(count).toBeGreaterThan(1000)
  })

  it('is the same, byte for byte, for the same input', async () => {
    const first = await download({}, { version: 'v1' })
    clock.advance(86_400)
    expect(await download({}, { version: 'v1' })).toEqual(first)
    expect(await download({}, { version: 'v2' })).not.toEqual(first)
  })

  it('shows the version on every page and in the manifest', async () => {
    const files = await unpack(await download({}, { version: '2026 <b>' }))
    const pages = [...files].filter(([name]) => name.endsWith('.html'))
    for (const [, html] of pages) expect(html.toString()).toContain('2026 &lt;b&gt;')
    expect(JSON.parse(text(files, 'export.json'))).toMatchObject({ version: '2026 <b>' })
  })

  it('holds only the pages asked for; links to others lead to the live site', async () => {
    await write({
      'index.md': '# Home\n\n[Start](guides/start.md), [Größe](guides/größe.md)\n',
      'guides/start.md': '# Start\n\n[Home](/index.md), ![x](x.svg)\n',
      'guides/größe.md': '# Größe\n',
      'guides/x.svg': '<svg/>',
    })
    const paths = ['/', 'guides/start']
    const files = await unpack(await download({ siteDirectory: folder }, { paths }))
    expect([...files.keys()].sort()).toEqual([
      'export.json',
      'guides/start.html',
      'guides/x.svg',
      'index.html',
      'style.css',
    ])
    expect(text(files, 'index.html')).toContain('href="guides/start.html"')
    expect(text(files, 'index.html')).toContain(
      'href="https://docs.example.com/guides/gr%C3%B6%C3%9Fe"',
    )
    expect(text(files, 'guides/start.html')).toContain('href="../index.html"')
    expect(text(files, 'guides/start.html')).toContain('src="x.svg"')
  })

  it('has a navigation made from the folder, with an index page for each part', async () => {
    await write({
      'index.md': '# Home\n',
      'about.md': '---\ntitle: About & more\n---\nText.\n',
      'guides/index.md': '# All guides\n',
      'guides/a.md': '# A guide\n',
      '.hidden/secret.md': '# Hidden\n',
      'unused.txt': 'kept',
    })
    const files = await unpack(await download({ siteDirectory: folder }))
    const page = text(files, 'guides/a.html')
    const titles = [...page.matchAll(/<li><a [^>]*>([^<]*)</g)].map(([, title]) => title)
    expect(titles).toEqual(['Home', 'About &amp; more', 'All guides', 'A guide'])
    expect(page).toContain('<a href="a.html" aria-current="page">')
    expect(page).toContain('href="../index.html"')
    expect(text(files, 'about.html')).toContain('<h1>About &amp; more</h1>')
    expect(text(files, 'unused.txt')).toBe('kept')
    expect([...files.keys()].join()).not.toContain('hidden')
  })

  it('can be had as often as one likes, also long after the first link has expired', async () => {
    await using emulator = await emulate()
    const first = await exportSite(emulator)
    clock.advance(30 * 86_400)
    expect((await send(first.bundleUrl)).status).toBe(403)
    const second = await bundle(emulator, first.jobId)
    expect(second.bundleUrl).not.toBe(first.bundleUrl)
    expect(Date.parse(second.expiresAt)).toBe(clock.nowMs + 1_000_000 + 3_600_000)
    expect((await send(second.bundleUrl)).status).toBe(200)
  })
})
