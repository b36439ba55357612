/** The values of ours that a revision holds, and whether they are still what this run gave. */
import { describe, expect, test } from '@jest/globals'
import { load } from 'js-yaml'
import { toChartValues } from '../../src/chart-values.ts'
import { ownValuesOf, valuesProblem } from '../../src/helm/own-values.ts'

const link =
  'https://s.test/a.tar.gz?X-Amz-Date=20261120T120000Z&X-Amz-Expires=3600&X-Amz-Signature=a%2Cb&x=1,2{3}'
const atMs = (time: string) => Date.parse(`2026-11-20T${time}Z`)

describe('are ours', () => {
  const problem = (values: unknown, key = 'staticExport', version?: string) =>
    valuesProblem(values, key, link, version)
  const written = (key: string, version: string | null | undefined) =>
    load(toChartValues({ key, bundleUrl: link, version }))

  test.each([
    ['staticExport', undefined, undefined],
    ['staticExport', null, undefined],
    ['docs.staticExport', '1.10', '1.10'],
    ['a.b-c.d_e', '{{ "x" }}', '{{ "x" }}'],
  ])('at %s with the label %j', (key, version, wanted) => {
    expect(problem(written(key, version), key, wanted)).toBeUndefined()
  })

  test('with other values around them', () => {
    const values = { replicas: 2, staticExport: { enabled: true, bundleUrl: link, theme: 'dark' } }
    expect(problem(values)).toBeUndefined()
  })

  test.each([
    ['nothing', null],
    ['no values', {}],
    ['a text in their place', { staticExport: link }],
    ['another link', { staticExport: { enabled: true, bundleUrl: `${link}&more` } }],
    ['the link cut at a comma', { staticExport: { enabled: true, bundleUrl: link.slice(0, -5) } }],
    ['the link elsewhere', { docs: { staticExport: { enabled: true, bundleUrl: link } } }],
    ['an array', [{ staticExport: { enabled: true, bundleUrl: link } }]],
  ])('not when the revision holds %s', (_what, values) => {
    expect(problem(values)).toBe('does not hold the link of this run at staticExport.bundleUrl')
  })

  test.each([[false], ['true'], [undefined], [null]])('not when enabled is %j', (enabled) => {
    expect(problem({ staticExport: { enabled, bundleUrl: link } })).toBe(
      'does not hold true at staticExport.enabled',
    )
  })

  test.each([['1.1'], [1.1], [null], [undefined]])('not when the label is %j', (version) => {
    const values = { staticExport: { enabled: true, bundleUrl: link, version } }
    expect(problem(values, 'staticExport', '1.10')).toBe(
      'does not hold the version of this run at staticExport.version',
    )
  })

  test('and no secret is in what is wrong with them', () => {
    const values = { staticExport: { enabled: true, bundleUrl: `${link}x` } }
    expect(problem(values)).not.toMatch(/s\.test|Signature/)
  })
})

describe('a label of a revision', () => {
  test.each([
    [{ docs: { staticExport: { version: '1.10' } } }, true],
    [{ docs: { staticExport: { version: 7 } } }, true],
    [{ docs: { staticExport: { version: '' } } }, true], // was given, and would stay
    [{ docs: { staticExport: { version: null } } }, false], // was taken away
    [{ docs: { staticExport: {} } }, false],
    [{ docs: null }, false],
    [{ staticExport: { version: '1.10' } }, false],
    [null, false],
    [undefined, false],
  ])('in %j: %j', (values, label) => {
    expect(ownValuesOf(values, 'docs.staticExport').hasLabel).toBe(label)
  })

  test('is not found on what every object has', () => {
    expect(ownValuesOf({}, 'constructor.prototype').hasLabel).toBe(false)
    expect(ownValuesOf({ staticExport: 'text' }, 'staticExport.length').hasLabel).toBe(false)
  })
})

describe('the link of a revision', () => {
  const expired = (bundleUrl: unknown, nowMs: number) =>
    ownValuesOf({ staticExport: { bundleUrl } }, 'staticExport').expiry(nowMs)

  test('works for as long as its signature says', () => {
    expect(expired(link, atMs('12:59:59'))).toBeUndefined()
    expect(expired(link, atMs('13:00:00'))).toBe('expired at 2026-11-20 13:00 UTC')
    expect(expired(link, atMs('23:00:00'))).toBe('expired at 2026-11-20 13:00 UTC')
  })

  test.each([
    ['a mirror', `https://mirror.test/docs/${'a'.repeat(64)}.tar.gz`],
    ['an address without a time', 'https://s.test/a?X-Amz-Signature=abc'],
    ['no address', 'later'],
    ['a number', 7],
    ['nothing', undefined],
  ])('never expires when it is %s', (_what, bundleUrl) => {
    expect(expired(bundleUrl, atMs('23:00:00'))).toBeUndefined()
  })
})
