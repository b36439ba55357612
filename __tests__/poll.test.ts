import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { nextPollDelayMs } from '../src/poll.ts'

describe('nextPollDelayMs', () => {
  test.each([
    ['the first look comes soon', 0, 1_000],
    ['a short job is watched closely', 4_000, 1_000],
    ['then a quarter of the time that has passed', 60_000, 15_000],
    ['up to a limit', 100_000, 25_000],
    ['and no longer', 3_600_000, 25_000],
  ])('%s', (_, elapsedMs, delayMs) => {
    expect(nextPollDelayMs(elapsedMs, undefined, 0.5)).toBeCloseTo(delayMs)
  })

  test('spreads by a tenth to each side', () => {
    expect(nextPollDelayMs(0, undefined, 0)).toBeCloseTo(900)
    expect(nextPollDelayMs(0, undefined, 1)).toBeCloseTo(1_100)
  })

  test('keeps a fixed interval to the letter, also for the first look', () => {
    fc.assert(
      fc.property(
        fc.nat(),
        fc.integer({ min: 100, max: 600_000 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (elapsedMs, intervalMs, random) => {
          expect(nextPollDelayMs(elapsedMs, intervalMs, random)).toBe(intervalMs)
        },
      ),
    )
  })

  test.each([
    ['10 minutes', 10, 40],
    ['an hour', 60, 160],
  ])('%s cost few requests', (_, minutes, atMost) => {
    let requests = 0
    for (let elapsedMs = 0; elapsedMs < minutes * 60_000; requests += 1) {
      elapsedMs += nextPollDelayMs(elapsedMs, undefined, 0.5)
    }
    expect(requests).toBeLessThanOrEqual(atMost)
    expect(requests).toBeGreaterThan(atMost / 2)
  })
})
