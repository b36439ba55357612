import { describe, expect, test } from '@jest/globals'
import { count, formatBytes, formatDuration, formatElapsed, formatUtc } from '../src/units.ts'

describe('formatDuration', () => {
  test.each([
    [-5, '0 s'],
    [0, '0 s'],
    [0.3, '1 ms'],
    [94, '94 ms'],
    [96, '0.1 s'],
    [400, '0.4 s'],
    [9_949, '9.9 s'],
    [9_950, '10 s'],
    [12_400, '12 s'],
    [59_499, '59 s'],
    [59_500, '1m 00s'],
    [185_000, '3m 05s'],
    [3_599_400, '59m 59s'],
    [3_599_500, '1h 00m'],
    [3_720_000, '1h 02m'],
    [86_400_000, '24h 00m'],
    [47 * 3_600_000 + 59 * 60_000, '47h 59m'],
  ])('%d ms is %s', (durationMs, text) => {
    expect(formatDuration(durationMs)).toBe(text)
  })
})

describe('formatElapsed', () => {
  test.each([
    [0, '00:00'],
    [39_600, '00:40'],
    [725_000, '12:05'],
    [3_599_600, '1:00:00'],
    [3_723_000, '1:02:03'],
  ])('%d ms is %s', (durationMs, text) => {
    expect(formatElapsed(durationMs)).toBe(text)
  })
})

describe('formatBytes', () => {
  test.each([
    [0, '0 B'],
    [312, '312 B'],
    [999, '999 B'],
    [1_000, '1.0 kB'],
    [99_949, '99.9 kB'],
    [99_950, '100 kB'],
    [999_499, '999 kB'],
    [999_500, '1.0 MB'],
    [18_400_000, '18.4 MB'],
    [5_368_709_120, '5.4 GB'],
    [9e15, '9000 TB'],
  ])('%d bytes are %s', (sizeBytes, text) => {
    expect(formatBytes(sizeBytes)).toBe(text)
  })
})

test('formatUtc cuts to the minute, so that it never promises too much', () => {
  expect(formatUtc(Date.parse('2026-11-20T12:40:59.999Z'))).toBe('2026-11-20 12:40 UTC')
  expect(formatUtc(Date.parse('2026-11-20T23:30:00-01:00'))).toBe('2026-11-21 00:30 UTC')
})

test.each([
  [0, '0 pages'],
  [1, '1 page'],
  [2, '2 pages'],
])('count: %d', (amount, text) => {
  expect(count(amount, 'page')).toBe(text)
})
