/** Whether a chart reads the link, by what it has rendered. */
import { describe, expect, test } from '@jest/globals'
import { holdsLink } from '../../src/helm/rendered.ts'

const link =
  'https://s.test/a.tar.gz?X-Amz-Date=20261120T120000Z&X-Amz-Expires=3600&X-Amz-Signature=a%2Cb&x=1,2{3}'

describe('what a chart has rendered holds the link', () => {
  const escaped = link.replaceAll('&', '\\u0026')
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  test.each([
    ['in plain', `stringData:\n  url: ${link}\n`],
    ['as JSON of Go', `args: ["--url", "${escaped}"]`],
    ['in base64', `data:\n  url: "${base64(link)}"\n`],
    ['in a file in base64', `data:\n  .env: ${base64(`TITLE="Docs"\nURL='${link}'\n`)}\n`],
    ['taken apart', 'host: s.test\npath: /a.tar.gz\nquery: X-Amz-Date=20261120T120000Z'],
  ])('%s', (_where, rendered) => {
    expect(holdsLink(rendered, link)).toBe(true)
  })

  test.each([
    ['nothing', ''],
    ['another link', `url: ${link.replace('a.tar.gz', 'b.tar.gz')}`],
    ['other data', `data:\n  url: ${base64(link.replace('a.tar.gz', 'b.tar.gz'))}\n`],
  ])('not when it is %s', (_what, rendered) => {
    expect(holdsLink(rendered, link)).toBe(false)
  })

  test('also when its path has characters that a URL escapes', () => {
    const encoded = 'https://s.test/sites/h%C3%A9%20b.tar.gz?X-Amz-Signature=a'
    expect(holdsLink('path: "/sites/hé b.tar.gz"', encoded)).toBe(true)
    expect(holdsLink(`url: ${encoded}`, encoded)).toBe(true)
  })
})
