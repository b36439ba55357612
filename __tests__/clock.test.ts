import { describe, expect, test } from '@jest/globals'
import { deadlineIn, systemClock } from '../src/clock.ts'
import { FakeClock } from './support/fake-clock.ts'

const never = new AbortController().signal

describe('the real clock', () => {
  test('a sleep ends at once, with the reason, when its signal is aborted', async () => {
    const controller = new AbortController()
    const reason = new Error('cancelled')
    const sleep = systemClock.sleep(2 ** 40, controller.signal)
    controller.abort(reason)
    await expect(sleep).rejects.toBe(reason)
  })

  test('a sleep does not begin after an abort', async () => {
    const reason = new Error('cancelled before')
    await expect(systemClock.sleep(2 ** 40, AbortSignal.abort(reason))).rejects.toBe(reason)
  })

  test('a delay that setTimeout cannot hold, or below zero, is bounded', async () => {
    const elapsed: string[] = []
    const stop = systemClock.timer(2 ** 40, () => elapsed.push('too long'))
    await systemClock.sleep(-5, never)
    stop()
    expect(elapsed).toEqual([])
  })

  test('a timer that was stopped stays silent', async () => {
    const elapsed: string[] = []
    const stop = systemClock.timer(0, () => elapsed.push('stopped'))
    stop()
    await systemClock.sleep(1, never)
    expect(elapsed).toEqual([])
  })
})

describe('the deadline', () => {
  test('runs down to zero by the monotonic clock, whatever the wall clock does', async () => {
    const clock = new FakeClock()
    const deadline = deadlineIn(10_000, clock)
    clock.wallOffsetMs = 3_600_000
    expect(deadline.remainingMs()).toBe(10_000)
    await clock.advance(4_000)
    expect(deadline.remainingMs()).toBe(6_000)
    await clock.advance(60_000)
    expect(deadline.remainingMs()).toBe(0)
  })
})

describe('the fake clock of these tests', () => {
  test('wakes several sleepers in due order, each after the other has come to rest', async () => {
    const clock = new FakeClock()
    const seen: string[] = []
    async function ring(name: string, everyMs: number, times: number) {
      for (let time = 1; time <= times; time += 1) {
        await clock.sleep(everyMs, never)
        seen.push(`${name} ${clock.nowMs()}`)
      }
    }
    await Promise.all([ring('a', 30, 2), ring('b', 20, 2)])
    expect(seen).toEqual(['b 20', 'a 30', 'b 40', 'a 60'])
  })

  test('fires a timer only when a sleeper or a hand moves time past it', async () => {
    const clock = new FakeClock()
    const fired: number[] = []
    clock.timer(50, () => fired.push(clock.nowMs()))
    await clock.sleep(40, never)
    expect(fired).toEqual([])
    await clock.sleep(20, never)
    expect(fired).toEqual([50])
    clock.timer(10, () => fired.push(clock.nowMs()))
    await clock.advance(15)
    expect(fired).toEqual([50, 70])
    expect(clock.nowMs()).toBe(75)
  })

  test('holds time while work is in flight', async () => {
    const clock = new FakeClock()
    const work = Promise.withResolvers<undefined>()
    const held = clock.holdDuring(() => work.promise)()
    const slept = clock.sleep(10, never)
    await new Promise((resolve) => setTimeout(resolve, 5))
    expect(clock.nowMs()).toBe(0)
    work.resolve(undefined)
    await Promise.all([held, slept])
    expect(clock.nowMs()).toBe(10)
  })

  test('forgets a sleeper that was aborted', async () => {
    const clock = new FakeClock({ isBusy: () => true })
    const controller = new AbortController()
    const sleep = clock.sleep(10, controller.signal)
    controller.abort(new Error('enough'))
    await expect(sleep).rejects.toThrow('enough')
    expect(clock.pending).toBe(0)
  })
})
