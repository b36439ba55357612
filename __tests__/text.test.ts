import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { marked } from 'marked'
import { clean, escapeMarkdown } from '../src/text.ts'
import { commandsIn } from './support/runner-parser.ts'

/** Pieces of which commands, and disguises of commands, are made. */
const piece = fc.constantFrom(
  '::', ':', '##[', '#', '#[', '[', ']', ' ', '\t', '\n', '\r', '\r\n', '\u0085', '\u00a0', '\u2028',
  '\u001b', '\u001b[31m', '\u001b[0m', '\u001b]0;', '\u0007', '\u001b\\', '\u009b', '\0', '\u200b',
  '\u200d', '\u034f', '\ufe0f', '\u{e0020}', '\u3164', '\ufeff', '\u00ad', '\u180e', '\u2003', '\ud800', '\udc00',
  'add-mask', 'ADD-MASK', 'error', 'set-output name=jobId', 'stop-commands', 'file=a:b', 'x',
) // prettier-ignore
/** A command with something invisible between its characters. */
const disguised = fc
  .tuple(
    fc.constantFrom('::error::x', '##[error]x', '::add-mask::x', '##[add-mask]x'),
    fc.array(
      fc.constantFrom('', '', '\u200b', '\u034f', '\ufe0f', '\u3164', '\u{e0020}', '\u2065'),
    ),
  )
  .map(([command, between]) => Array.from(command, (c, at) => c + (between[at] ?? '')).join(''))
const hostile = fc.oneof(
  disguised,
  fc.array(piece, { maxLength: 24 }).map((pieces) => pieces.join('')),
  fc.string({ unit: 'binary' }),
)

describe('the port of the parser, so that the properties below can fail', () => {
  test.each([
    ['::add-mask::x', ['add-mask']],
    ['\u00a0\u0085 ::ERROR file=a:b,line=1::text', ['error']],
    ['words ##[group]title', ['group']],
    ['words\r::debug::x\n::warning::y', ['debug', 'warning']],
    ['#\u200b#[error]x', ['error']],
    ['words ::error::x', []],
    ['::unknown::x', []],
    ['::error', []],
  ])('%j', (text, commands) => {
    expect(commandsIn(text)).toEqual(commands)
  })

  test('most of the hostile strings hold a command', () => {
    const samples = fc.sample(
      fc.tuple(hostile, hostile).map(([a, b]) => `${a}\n::error::${b}`),
      50,
    )
    expect(samples.filter((text) => commandsIn(text).length > 0)).toHaveLength(50)
  })
})

describe('clean', () => {
  test.each([
    ['Invalid API key', 'Invalid API key'],
    ['a\nb\r\nc\td', 'a b c d'],
    ['\u001b[1;31mred\u001b[0m and \u001b]8;;https://evil.example\u0007link\u001b]8;;\u001b\\', 'red and link'],
    ['::add-mask::x', ': :add-mask::x'],
    [' \u00a0::error::x', ': :error::x'],
    ['see ##[error]x', 'see ## [error]x'],
    ['#\u200b[error]', '# [error]'],
    ['#\ufe0f#\u034f[error]', '# # [error]'],
    ['abc\u202etxt.exe', 'abc txt.exe'],
    ['Seite nicht gefunden: München 日本 🎉', 'Seite nicht gefunden: München 日本 🎉'],
    ['\ud800 broken', '\ufffd broken'],
    ['', ''],
    ['\u0000\u0007', ''],
  ])('%j reads %j', (text, cleaned) => {
    expect(clean(text)).toBe(cleaned)
  }) // prettier-ignore

  test('cuts long text at the limit, visibly, and not through a character', () => {
    expect(clean('x'.repeat(600))).toBe(`${'x'.repeat(499)}…`)
    expect(clean('x'.repeat(500))).toBe('x'.repeat(500))
    expect(clean('abc🎉🎉', 6)).toBe('abc🎉…')
    expect(clean('ab🎉🎉🎉', 4).isWellFormed()).toBe(true)
  })

  test('reads only the beginning of what may be megabytes', () => {
    expect(clean(`${'\0'.repeat(9_999)}x`)).toBe('x')
    expect(clean(`${'\0'.repeat(10_000)}x`)).toBe('')
  })

  test('no text holds a command afterwards, alone or behind words of ours', () => {
    fc.assert(
      fc.property(hostile, (text) => {
        const cleaned = clean(text)
        expect(commandsIn(cleaned)).toEqual([])
        expect(commandsIn(`words: ${cleaned}`)).toEqual([])
        expect(cleaned.isWellFormed()).toBe(true)
        // eslint-disable-next-line no-control-regex
        expect(cleaned).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/)
        expect(clean(cleaned)).toBe(cleaned)
      }),
      { numRuns: 4_000 },
    )
  })
})

describe('escapeMarkdown', () => {
  const pieces = fc.constantFrom(
    '<', '>', '&', '"', "'", '`', '``', '```', '|', '[', ']', '(', ')', '*', '**', '_', '#', '!', '\\', '~~',
    '@', ':', '$', '{', '}', '-', '+', '=', '.', '1.', '\n', '\n\n', ' ', '  ', '<script>', '<b>', '</td>',
    '&lt;', '&#60;', '[a](https://evil.example)', '![x](https://evil.example/x.png)', 'https://evil.example',
    'www.evil.example', 'a@evil.example', '<!--', '[!NOTE]', 'x', '\t', '    ',
  ) // prettier-ignore
  const markdown = fc.oneof(
    fc.array(pieces, { maxLength: 16 }).map((parts) => parts.join('')),
    fc.string({ unit: 'binary' }),
  )

  /** What a reader sees of HTML without elements. */
  const decode = (html: string) =>
    html
      .replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)))
      .replace(/&(lt|gt|quot|amp);/g, (_, name: 'lt' | 'gt' | 'quot' | 'amp') => ({ lt: '<', gt: '>', quot: '"', amp: '&' })[name]) // prettier-ignore

  test('renders as plain text in a paragraph', async () => {
    await fc.assert(
      fc.asyncProperty(markdown, async (text) => {
        const html = await marked.parse(`Words: ${escapeMarkdown(text)} end`)
        const [, inner] = /^<p>([^<>]*)<\/p>\n$/.exec(html) ?? []
        expect(inner === undefined ? html : decode(inner)).toBe(`Words: ${clean(text)} end`)
      }),
      { numRuns: 2_000 },
    )
  })

  test('renders as plain text in a cell of a table', async () => {
    await fc.assert(
      fc.asyncProperty(markdown, async (text) => {
        const html = await marked.parse(`| a | b |\n| - | - |\n| ${escapeMarkdown(text)} | end |\n`)
        const [, inner] =
          /<tbody><tr>\n<td>([^<>]*)<\/td>\n<td>end<\/td>\n<\/tr>\n<\/tbody>/.exec(html) ?? []
        expect(inner === undefined ? html : decode(inner)).toBe(clean(text))
      }),
      { numRuns: 2_000 },
    )
  })
})
