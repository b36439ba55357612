import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import {
  type FailedTry,
  type Fault,
  type RetryPolicy,
  afterFailedTry,
  isFateUnknown,
  parseHttpDateMs,
  parseRetryAfterMs,
} from '../src/retry.ts'

const start: RetryPolicy = { maxTries: 4, minPersistenceMs: 0, repeatable: false }
const look: RetryPolicy = { maxTries: 8, minPersistenceMs: 300_000, repeatable: true }
const firstLook: RetryPolicy = { ...look, notYet: { status: 404, graceMs: 30_000 } }
const bundle: RetryPolicy = {
  maxTries: 5,
  minPersistenceMs: 0,
  repeatable: true,
  notYet: { status: 409, graceMs: 60_000 },
}

const status = (code: number, retryAfterMs?: number): Fault => ({
  kind: 'status',
  status: code,
  retryAfterMs,
})
const connection = (code: string, delivered = false): Fault => ({
  kind: 'connection',
  code,
  delivered,
})
const silence: Fault = { kind: 'silence' }
const unreadable: Fault = { kind: 'unreadable' }

/** A first try that failed after a second, half an hour before the end; its fate counted as http.ts does. */
function decide(policy: RetryPolicy, fault: Fault, changes: Partial<FailedTry> = {}) {
  return afterFailedTry(policy, {
    fault,
    tries: 1,
    unknownFates: isFateUnknown(fault) ? 1 : 0,
    elapsedMs: 1_000,
    remainingMs: 1_800_000,
    random: 1,
    ...changes,
  })
}

const retryIn = (delayMs: number) => ({ retry: true, delayMs })
const stop = (why: string) => ({ retry: false, why })

describe('what heals by itself is tried again, what does not fails at once', () => {
  test.each([408, 425, 500, 502, 504, 520, 521, 522, 523, 524, 530])('HTTP %d', (code) => {
    expect(decide(look, status(code))).toEqual(retryIn(1_000))
  })

  test.each([429, 503])('HTTP %d, after a longer while', (code) => {
    expect(decide(look, status(code))).toEqual(retryIn(5_000))
  })

  test.each([
    204, 299, 301, 302, 307, 400, 401, 403, 404, 405, 407, 409, 410, 411, 413, 415, 422, 501, 505,
    999,
  ])('not HTTP %d', (code) => {
    expect(decide(look, status(code))).toEqual(stop('permanent'))
    expect(decide(start, status(code))).toEqual(stop('permanent'))
  })

  test.each([
    'ECONNRESET',
    'ECONNREFUSED',
    'ECONNABORTED',
    'EPIPE',
    'ETIMEDOUT',
    'EHOSTUNREACH',
    'ENETUNREACH',
    'EAI_AGAIN',
    'ENOTFOUND',
    'HPE_INVALID_CONSTANT',
    '502',
  ])('%s', (code) => {
    expect(decide(look, connection(code))).toEqual(retryIn(1_000))
  })

  test.each([
    'CERT_HAS_EXPIRED',
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'EPROTO',
    '407',
    '403',
    'TOO_LARGE',
    'UNUSABLE',
    'UNKNOWN',
    'ERR_INVALID_CHAR',
  ])('not %s', (code) => {
    expect(decide(look, connection(code, true))).toEqual(stop('permanent'))
  })

  test('silence and unreadable answers', () => {
    expect(decide(look, silence)).toEqual(retryIn(1_000))
    expect(decide(look, unreadable)).toEqual(retryIn(1_000))
  })
})

describe('how often', () => {
  test.each([
    ['a bundle', bundle, status(502), 5],
    ['a refused start, never sent', start, connection('ECONNREFUSED'), 4],
    ['an unknown host', look, connection('ENOTFOUND'), 3],
    ['what is no HTTP', look, connection('HPE_INVALID_CONSTANT', true), 2],
    ['what is not JSON', look, unreadable, 3],
  ])('%s', (_, policy, fault, maxTries) => {
    expect(decide(policy, fault, { tries: maxTries - 1, unknownFates: 0 }).retry).toBe(true)
    expect(decide(policy, fault, { tries: maxTries, unknownFates: 0 })).toEqual(stop('enough'))
  })

  test('a look at a job is repeated for five minutes at least, and eight times at least', () => {
    expect(decide(look, status(500), { tries: 40, elapsedMs: 299_999 }).retry).toBe(true)
    expect(decide(look, status(500), { tries: 40, elapsedMs: 300_000 })).toEqual(stop('enough'))
    expect(decide(look, status(500), { tries: 7, elapsedMs: 900_000 }).retry).toBe(true)
  })

  test.each([
    ['silence', silence],
    ['a lost connection', connection('ECONNRESET', true)],
    ['HTTP 502', status(502)],
    ['HTTP 503 with a word on when', status(503, 1_000)],
    ['an unreadable answer', unreadable],
  ])('a start of unknown fate is repeated once: %s', (_, fault) => {
    expect(decide(start, fault, { unknownFates: 1 }).retry).toBe(true)
    expect(decide(start, fault, { tries: 2, unknownFates: 2 })).toEqual(stop('enough'))
    expect(decide(start, fault, { tries: 4, unknownFates: 2 })).toEqual(stop('enough'))
  })

  test('a limited start is tried twice, or as often as the service says when', () => {
    expect(decide(start, status(429)).retry).toBe(true)
    expect(decide(start, status(429), { tries: 2 })).toEqual(stop('enough'))
    expect(decide(start, status(429, 0), { tries: 2 })).toEqual(stop('enough'))
    expect(decide(start, status(429, 7_000), { tries: 3 })).toEqual(retryIn(20_000))
    expect(decide(start, status(429, 7_000), { tries: 4 })).toEqual(stop('enough'))
  })
})

describe('not yet', () => {
  test.each([
    ['404 soon after the start', firstLook, 404, 30_000],
    ['409 for a link', bundle, 409, 60_000],
  ])('%s is waited for', (_, policy, code, graceMs) => {
    expect(decide(policy, status(code), { tries: 20, elapsedMs: graceMs - 1 }).retry).toBe(true)
    expect(decide(policy, status(code), { elapsedMs: graceMs })).toEqual(stop('permanent'))
  })

  test('404 of an attached job is final', () => {
    expect(decide(look, status(404), { elapsedMs: 0 })).toEqual(stop('permanent'))
  })
})

describe('how long to wait', () => {
  test('twice as long each time, up to half a minute; half of it by chance', () => {
    const delays = (random: number) =>
      [1, 2, 3, 4, 5, 6, 7, 2_000].map((tries) => {
        const decision = decide(look, silence, { tries, random })
        return decision.retry && decision.delayMs
      })
    expect(delays(1)).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000])
    expect(delays(0)).toEqual([500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000, 15_000])
  })

  test('up to a minute when there are too many requests', () => {
    expect(decide(look, status(429), { tries: 9 })).toEqual(retryIn(60_000))
  })

  test('as long as the service asks, and not shorter than by itself', () => {
    expect(decide(look, status(429, 7_000))).toEqual(retryIn(7_000))
    expect(decide(look, status(503, 120_000))).toEqual(retryIn(120_000))
    expect(decide(look, status(429, 0))).toEqual(retryIn(5_000))
    expect(decide(look, status(500, 9_000))).toEqual(retryIn(9_000))
  })

  test('not at all beyond the end of the run', () => {
    expect(decide(look, status(429, 86_400_000))).toEqual(stop('asked-too-long'))
    expect(decide(look, status(429, 7_000), { remainingMs: 7_000 })).toEqual(stop('asked-too-long'))
    expect(decide(look, silence, { remainingMs: 1_000 })).toEqual(stop('deadline'))
    expect(decide(look, silence, { remainingMs: 1_001 })).toEqual(retryIn(1_000))
    expect(decide(look, silence, { remainingMs: 0 })).toEqual(stop('deadline'))
  })
})

describe('for every fault', () => {
  const anyFault: fc.Arbitrary<Fault> = fc.oneof(
    fc.record({
      kind: fc.constant('status' as const),
      status: fc.oneof(
        fc.integer({ min: 100, max: 999 }),
        fc.constantFrom(429, 500, 503, 404, 409),
      ),
      retryAfterMs: fc.option(fc.nat({ max: 1e12 }), { nil: undefined }),
    }),
    fc.record({
      kind: fc.constant('connection' as const),
      code: fc.constantFrom('ECONNRESET', 'ENOTFOUND', 'HPE_X', '407', '502', 'UNKNOWN'),
      delivered: fc.boolean(),
    }),
    fc.constantFrom(silence, unreadable),
  )
  const anyTry: fc.Arbitrary<FailedTry> = fc.record({
    fault: anyFault,
    tries: fc.integer({ min: 1, max: 5_000 }),
    unknownFates: fc.nat({ max: 5 }),
    elapsedMs: fc.double({ min: 0, max: 1e9, noNaN: true }),
    remainingMs: fc.double({ min: 0, max: 86_400_000, noNaN: true }),
    random: fc.double({ min: 0, max: 1, noNaN: true }),
  })
  const anyPolicy = fc.constantFrom(start, look, firstLook, bundle)

  test('a delay is long enough, within the time that is left, and as asked', () => {
    fc.assert(
      fc.property(anyPolicy, anyTry, (policy, failed) => {
        const decision = afterFailedTry(policy, failed)
        if (!decision.retry) return
        const asked = failed.fault.kind === 'status' ? (failed.fault.retryAfterMs ?? 0) : 0
        expect(decision.delayMs).toBeGreaterThanOrEqual(Math.max(500, asked))
        expect(decision.delayMs).toBeLessThan(failed.remainingMs)
        expect(decision.delayMs).toBeLessThanOrEqual(Math.max(60_000, asked))
      }),
      { numRuns: 2_000 },
    )
  })

  test('every operation ends: no request is repeated for ever', () => {
    fc.assert(
      fc.property(
        anyPolicy,
        fc.array(anyFault, { minLength: 1 }),
        fc.boolean(),
        (policy, faults, slow) => {
          let elapsedMs = 0
          let unknownFates = 0
          for (let tries = 1; ; tries += 1) {
            const fault = faults[tries % faults.length] ?? silence
            if (isFateUnknown(fault)) unknownFates += 1
            elapsedMs += slow ? 30_000 : 0
            const remainingMs = Math.max(0, 86_400_000 - elapsedMs)
            const decision = afterFailedTry(policy, { fault, tries, unknownFates, elapsedMs, remainingMs, random: 0 }) // prettier-ignore
            if (!decision.retry) break
            elapsedMs += decision.delayMs
            expect(tries).toBeLessThan(100)
            if (!policy.repeatable) expect(unknownFates).toBeLessThan(2)
          }
        },
      ),
      { numRuns: 1_000 },
    )
  })
})

describe('parseRetryAfterMs', () => {
  const now = Date.parse('2026-11-20T12:00:00Z')

  test.each([
    ['7', 7_000],
    [' 7 ', 7_000],
    ['0', 0],
    ['86400', 86_400_000],
    ['999999999', 999_999_999_000],
    ['Fri, 20 Nov 2026 12:00:30 GMT', 30_000],
    ['Fri, 20 Nov 2026 11:00:00 GMT', 0],
  ])('%j', (value, delayMs) => {
    expect(parseRetryAfterMs(value, now)).toBe(delayMs)
  })

  test.each([
    undefined,
    '',
    ' ',
    '-5',
    '+5',
    '1e9',
    '0x10',
    '5, 5',
    '5.5',
    '7s',
    '1763640000000',
    '٧',
    'soon',
    '2026-11-20T12:00:30Z',
    'Fri Nov 20 12:00:30 2026',
    'Friday, 20-Nov-26 12:00:30 GMT',
    'Fri, 20 Nov 2026 12:00:30 +0000',
    'Fri, 20 Nov 2026 12:00:30 UTC',
    'Fri, 99 Nov 2026 99:99:99 GMT',
  ])('%j counts as absent', (value) => {
    expect(parseRetryAfterMs(value, now)).toBeUndefined()
  })

  test('reads anything as a finite delay or nothing', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.integer().map(String), fc.date().map(String)),
        (value) => {
          const delayMs = parseRetryAfterMs(value, now)
          if (delayMs === undefined) return
          expect(delayMs).toBeGreaterThanOrEqual(0)
          expect(Number.isFinite(delayMs)).toBe(true)
        },
      ),
    )
  })
})

test.each([
  ['Fri, 20 Nov 2026 12:00:30 GMT', Date.parse('2026-11-20T12:00:30Z')],
  ['Sun, 06 Nov 1994 08:49:37 GMT', 784_111_777_000],
  ['2026-11-20', undefined],
  [undefined, undefined],
])('parseHttpDateMs: %j', (value, epochMs) => {
  expect(parseHttpDateMs(value)).toBe(epochMs)
})
