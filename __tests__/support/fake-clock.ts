// Virtual time: it stands still while anything happens and jumps to the next due moment when nothing does.
import type { Clock } from '../../src/clock.ts'

export interface FakeClockOptions {
  /** The wall clock at the start, in epoch milliseconds. */
  readonly wallMs?: number
  /** Time is held while this is true, for example while a request is in flight. */
  readonly isBusy?: () => boolean
}

interface Waiter {
  readonly dueMs: number
  /** Whether time moves by itself to reach it; timers only fire when something else moves time past them. */
  readonly movesTime: boolean
  readonly elapse: () => void
}

/** Turns of the event loop without a change before time moves on: promises and cached imports settle within. */
const quietTurns = 20

/** A sleeper that nobody ends would spin for ever; no run takes this long. */
const horizonMs = 7 * 24 * 60 * 60_000

/**
 * A clock whose `sleep` costs no time. Several sleepers wake in the order in which they are due, each only
 * after what the one before set off has come to rest. It is a clock for the emulator too (`now`).
 */
export class FakeClock implements Clock {
  /** Every delay that was asked of `sleep`, in order. */
  readonly sleeps: number[] = []
  /** Moves the wall clock alone, as an administrator would. */
  wallOffsetMs = 0

  readonly #startWallMs: number
  readonly #isBusy: () => boolean
  #nowMs = 0
  #held = 0
  #waiters: Waiter[] = []
  #moving = false

  constructor(options: FakeClockOptions = {}) {
    this.#startWallMs = options.wallMs ?? Date.parse('2026-11-20T12:00:00Z')
    this.#isBusy = options.isBusy ?? (() => false)
  }

  nowMs(): number {
    return this.#nowMs
  }

  wallMs(): number {
    return this.#startWallMs + this.#nowMs + this.wallOffsetMs
  }

  /** The true time, as another machine has it; the clock of the emulator. */
  now(): number {
    return this.#startWallMs + this.#nowMs
  }

  /** Sleepers and timers that have neither elapsed nor been stopped. */
  get pending(): number {
    return this.#waiters.length
  }

  sleep(delayMs: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted()
      this.sleeps.push(delayMs)
      const stop = this.#wait(delayMs, true, () => {
        signal.removeEventListener('abort', onAbort)
        resolve()
      })
      const onAbort = () => {
        stop()
        reject(signal.reason as Error)
      }
      signal.addEventListener('abort', onAbort, { once: true })
      void this.#move()
    })
  }

  timer(delayMs: number, onElapsed: () => void): () => void {
    return this.#wait(delayMs, false, onElapsed)
  }

  /** Moves time by hand, also while it is held, past every sleeper and timer that is due until then. */
  async advance(durationMs: number): Promise<void> {
    const endMs = this.#nowMs + durationMs
    for (;;) {
      await this.#rest(() => false)
      const next = this.#next()
      if (!next || next.dueMs > endMs) break
      this.#elapse(next)
    }
    this.#nowMs = Math.max(this.#nowMs, endMs)
  }

  /** The same function; time is held while one of its promises is pending. */
  holdDuring<A extends unknown[], T>(work: (...args: A) => Promise<T>): (...args: A) => Promise<T> {
    return async (...args) => {
      this.#held += 1
      try {
        return await work(...args)
      } finally {
        this.#held -= 1
      }
    }
  }

  #wait(delayMs: number, movesTime: boolean, elapse: () => void): () => void {
    if (!Number.isFinite(delayMs)) throw new RangeError(`a delay of ${delayMs} ms`)
    const waiter: Waiter = { dueMs: this.#nowMs + Math.max(0, delayMs), movesTime, elapse }
    this.#waiters.push(waiter)
    return () => {
      this.#waiters = this.#waiters.filter((other) => other !== waiter)
    }
  }

  /** The first of those that are due first. */
  #next(): Waiter | undefined {
    return this.#waiters.reduce<Waiter | undefined>(
      (next, waiter) => (next && next.dueMs <= waiter.dueMs ? next : waiter),
      undefined,
    )
  }

  #hasSleeper(): boolean {
    return this.#waiters.some(({ movesTime }) => movesTime)
  }

  #elapse(waiter: Waiter): void {
    this.#waiters = this.#waiters.filter((other) => other !== waiter)
    this.#nowMs = Math.max(this.#nowMs, waiter.dueMs)
    waiter.elapse()
  }

  /** Moves from one due moment to the next for as long as anybody sleeps. */
  async #move(): Promise<void> {
    if (this.#moving) return
    this.#moving = true
    try {
      for (;;) {
        await this.#rest(() => this.#hasSleeper() && (this.#held > 0 || this.#isBusy()))
        if (!this.#hasSleeper()) return
        const next = this.#next()
        if (next && next.dueMs > horizonMs) throw new Error('somebody sleeps for ever')
        if (next) this.#elapse(next)
      }
    } finally {
      this.#moving = false
    }
  }

  /** Waits until a while has passed without work. */
  async #rest(isBusy: () => boolean): Promise<void> {
    for (let quiet = 0; quiet < quietTurns; quiet = isBusy() ? 0 : quiet + 1) {
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
}
