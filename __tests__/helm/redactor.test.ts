/** Secrets in what Helm and the cluster say: gone in every form, with the rest of the text still of use. */
import { expect, test } from '@jest/globals'
import { createRedactor } from '../../src/helm/redactor.ts'
import { secretsOf } from '../../src/link.ts'

const signature = '5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7'
const link = new URL(
  `https://s.test/a/docs.tar.gz?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIDEXAMPLE0000%2F20261120%2Feu%2Fs3%2Faws4_request&X-Amz-Date=20261120T120000Z&X-Amz-Expires=3600&X-Amz-Signature=${signature}`,
)

function redactorOfLink() {
  const redactor = createRedactor()
  for (const secret of secretsOf(link)) redactor.add(secret)
  return redactor
}

test.each([
  ['as it is', link.href],
  ['in JSON', JSON.stringify({ bundleUrl: link.href })],
  ['in JSON of Go', JSON.stringify({ bundleUrl: link.href }).replaceAll('&', '\\u0026')],
  ['in the query of another address', `https://p.test/?to=${encodeURIComponent(link.href)}`],
  ['decoded', decodeURIComponent(link.href)],
  ['cut off in front', link.search.slice(90)],
  ['twice', `${link.href} ${link.href}`],
])('hides a link that stands %s', (_how, text) => {
  const told = redactorOfLink().toLine(
    `at '/staticExport/bundleUrl': ${text} does not match`,
    5_000,
  )
  expect(told).not.toContain(signature)
  expect(told).not.toContain('AKIDEXAMPLE0000')
  expect(told).toMatch(/^at '\/staticExport\/bundleUrl': /)
  expect(told).toMatch(/ does not match$/)
})

test('leaves of a link where it leads', () => {
  expect(redactorOfLink().toLine(`Get "${link.href}": 403`)).toBe(
    'Get "https://s.test/a/docs.tar.gz?***": 403',
  )
})

test('hides a key with characters that JSON and Go escape', () => {
  const redactor = createRedactor()
  redactor.add('pa"ss<wo\\rd>&1')
  expect(redactor.toLine('say pa"ss<wo\\rd>&1.')).toBe('say ***.')
  expect(redactor.toLine(JSON.stringify({ key: 'pa"ss<wo\\rd>&1' }))).toBe('{"key":"***"}')
  expect(redactor.toLine('{"key":"pa\\"ss\\u003cwo\\\\rd\\u003e\\u00261"}')).toBe('{"key":"***"}')
})

test('leaves nothing of the longer of two secrets, one inside the other', () => {
  const redactor = createRedactor()
  redactor.add('token-0123')
  redactor.add('token-0123-and-more')
  expect(redactor.toLine('with token-0123-and-more')).toBe('with ***')
})

test('takes no word for a secret that is too short to be one', () => {
  const redactor = createRedactor()
  redactor.add('error')
  redactor.add('')
  expect(redactor.toLine('no error here')).toBe('no error here')
})

test('hides before it cuts: no half of a secret stays at the end', () => {
  const redactor = createRedactor()
  redactor.add('secret-0123456789')
  for (let length = 10; length < 40; length += 1) {
    expect(redactor.toLine('told: secret-0123456789 and more of it', length)).not.toMatch(/secret/)
  }
})

test('makes what is left harmless for a line of the log', () => {
  const told = redactorOfLink().toLine('::error::x\n\u001b[31m##[group]red\u001b[0m\r\nend')
  expect(told).toBe(': :error::x ## [group]red end')
})

test('stays quick on megabytes', () => {
  const redactor = redactorOfLink()
  const text = link.href.repeat(40_000)
  expect(redactor.toLine(text).length).toBeLessThanOrEqual(500)
  expect(redactor.toLine(text)).not.toContain(signature)
})
