import { describe, expect, test } from '@jest/globals'
import { Failure, deployFailureCodes, failureCodes, toFailure } from '../src/errors.ts'
import { commandsIn } from './support/runner-parser.ts'

test.each([...failureCodes, ...deployFailureCodes])('%s says what to do', (code) => {
  const { advice } = new Failure(code, 'It failed.')
  expect(advice).toMatch(/^[A-Z].{20,}[.)?]$/)
})

test('advice of its own comes before the general one', () => {
  expect(new Failure('server', 'It failed.', { advice: 'Ring them up.' }).advice).toBe(
    'Ring them up.',
  )
})

describe('toFailure', () => {
  test('leaves a failure as it is', () => {
    const failure = new Failure('auth', 'No.')
    expect(toFailure(failure)).toBe(failure)
  })

  const unprintable = {
    toString(): string {
      throw new Error('never')
    },
  }
  test.each([
    [new TypeError('x is not a function'), 'TypeError: x is not a function'],
    [new Error(''), 'Error'],
    [new AggregateError([new Error('connect ECONNREFUSED ::1:80')], ''), 'AggregateError'],
    [
      new DOMException('This operation was aborted', 'AbortError'),
      'AbortError: This operation was aborted',
    ],
    ['a string', 'a string'],
    [undefined, 'undefined'],
    [null, 'null'],
    [7n, '7'],
    [Symbol('s'), 'Symbol(s)'],
    [Object.create(null), 'an unprintable value'],
    [unprintable, 'an unprintable value'],
  ])('%p is internal', (thrown: unknown, text) => {
    const failure = toFailure(thrown)
    expect(failure.code).toBe('internal')
    expect(failure.message).toBe(`Unexpected error: ${text}`)
    expect(failure.cause).toBe(thrown)
  })

  test('cleans what it repeats', () => {
    const { message } = toFailure(new Error('a\n::add-mask::b\r##[error]c\u001b[31m'))
    expect(commandsIn(message)).toEqual([])
    expect(message).not.toContain('\n')
  })
})
