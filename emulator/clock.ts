/** The only source of time of the emulator. Tests share one with the program they drive. */
export type Clock = {
  /** Milliseconds since the epoch. */
  now(): number
}

/** A clock that runs like another one, moved forward by what was asked for so far. */
export class MovableClock implements Clock {
  readonly #base: Clock
  #offsetMs = 0

  constructor(base: Clock = Date) {
    this.#base = base
  }

  now(): number {
    return this.#base.now() + this.#offsetMs
  }

  get offsetSeconds(): number {
    return this.#offsetMs / 1000
  }

  /** Time only goes forward: a negative number of seconds is a RangeError. */
  advance(seconds: number): void {
    if (!Number.isFinite(seconds) || seconds < 0) {
      throw new RangeError(`a clock advances by 0 seconds or more, not by ${seconds}`)
    }
    this.#offsetMs += seconds * 1000
  }
}
