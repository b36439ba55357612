import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { CORE_SCHEMA, Type, load } from 'js-yaml'
import { keyPattern, toChartValues } from '../src/chart-values.ts'

const link =
  'https://storage.test/a,b/%2C.tar.gz?X-Amz-Signature=0&a={{x}}&b=%25&c="q"&d=#f: g\\n,[]{}!|>*&~'

/** What YAML 1.1 takes for something else than a text (yaml.org/type), which YAML 1.2 does not. */
const yaml11 = CORE_SCHEMA.extend({
  implicit: [
    ['bool', /^(?:y|n|yes|no|on|off)$/i],
    ['int', /^[-+]?(?:0[0-7_]+|0b[01_]+|0x[\da-f_]+|\d[\d_]*(?::[0-5]?\d)*)$/i],
    ['float', /^[-+]?(?:\d[\d_]*)?(?::[0-5]?\d)*\.[\d_]*(?:e[-+]\d+)?$/i],
    ['timestamp', /^\d{4}-\d\d?-\d\d?(?:$|[ \tT])/],
    ['merge', /^<<$/],
    ['value', /^=$/],
  ].map(
    ([name, pattern]) =>
      new Type(`${String(name)}-1.1`, {
        kind: 'scalar',
        resolve: (text: string | null) => (pattern as RegExp).test(text ?? ''),
        construct: () => 1.1,
      }),
  ),
})

/** As a reader of YAML 1.1 (Helm's) and one of YAML 1.2 see the file. */
function read(text: string): unknown[] {
  return [yaml11, CORE_SCHEMA].map((schema) => load(text, { schema }))
}

describe('the values file', () => {
  test('is block style with quoted strings', () => {
    expect(toChartValues({ key: 'docs.staticExport', bundleUrl: 'https://a/b', version: '1.10' }))
      .toBe(`docs:
  staticExport:
    enabled: true
    bundleUrl: "https://a/b"
    version: "1.10"
`)
  })

  test('holds no version unless one is given', () => {
    const text = toChartValues({
      key: 'staticExport',
      bundleUrl: 'https://a/b',
      version: undefined,
    })
    for (const values of read(text)) {
      expect(values).toEqual({ staticExport: { enabled: true, bundleUrl: 'https://a/b' } })
    }
  })

  test.each([
    '1.10',
    '2026-11',
    '20261120',
    'true',
    'null',
    '1e3',
    '~',
    'yes',
    '0x1f',
    '1:30',
    '{{ v }}',
    '- a',
    ' ',
  ])('gives the version %j back as this string', (version) => {
    const text = toChartValues({ key: 'staticExport', bundleUrl: link, version })
    for (const values of read(text)) {
      expect(values).toEqual({ staticExport: { enabled: true, bundleUrl: link, version } })
    }
  })

  test('gives any printable ASCII back, in either version of YAML', () => {
    const printable = fc.string({
      unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
    })
    fc.assert(
      fc.property(printable, printable, (bundleUrl, version) => {
        for (const values of read(toChartValues({ key: 'a', bundleUrl, version }))) {
          expect(values).toEqual({ a: { enabled: true, bundleUrl, version } })
        }
      }),
    )
  })

  test('keeps keys that YAML 1.1 takes for booleans', () => {
    const text = toChartValues({ key: 'on.y.null', bundleUrl: 'https://a/b', version: undefined })
    for (const values of read(text)) {
      expect(values).toEqual({ on: { y: { null: { enabled: true, bundleUrl: 'https://a/b' } } } })
    }
  })
})

test.each(['staticExport', 'docs.staticExport', 'a-b._c'])('%j is a key', (key) => {
  expect(key).toMatch(keyPattern)
})

test.each(['', '.a', 'a.', 'a..b', '1a', 'a b', 'a:b', 'a\nb', 'ä'])('%j is none', (key) => {
  expect(key).not.toMatch(keyPattern)
})
