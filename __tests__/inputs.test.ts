import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { InvalidInputs } from '../src/input-reader.ts'
import { type InputName, inputNames, readInputs } from '../src/inputs.ts'
import { places } from './support/places.ts'
import { commandsIn } from './support/runner-parser.ts'

type Given = Partial<Record<InputName, string>>

const key = 'mint_0123456789abcdef'
const good: Given = {
  'api-key': key,
  'base-url': 'https://api.example.com',
  domain: 'docs.example.com',
}

function read(given: Given) {
  const warnings: string[] = []
  const inputs = readInputs(
    (name) => given[name] ?? '',
    (message) => warnings.push(message),
    places,
  )
  return { inputs, warnings }
}

const accept = (given: Given) => read({ ...good, ...given }).inputs
const warningsOf = (given: Given) => read({ ...good, ...given }).warnings

function problemsOf(given: Given): readonly string[] {
  try {
    read(given)
  } catch (error) {
    if (error instanceof InvalidInputs) return error.problems
    throw error
  }
  throw new Error('the inputs were accepted')
}

/** The one problem with otherwise good inputs. */
function problemOf(given: Given): string {
  const problems = problemsOf({ ...good, ...given })
  expect(problems).toHaveLength(1)
  return problems[0] ?? ''
}

test('the least that is needed, and the defaults', () => {
  expect(read(good)).toEqual({
    warnings: [],
    inputs: {
      apiKey: key,
      baseUrl: new URL('https://api.example.com'),
      domain: 'docs.example.com',
      jobId: undefined,
      version: undefined,
      paths: [],
      timeoutMs: 1_800_000,
      pollIntervalMs: undefined,
      delivery: { bundleFile: undefined, siteDirectory: undefined, chartValues: undefined },
      maskBundleUrl: false,
      agentJob: undefined,
      githubToken: '',
      summary: true,
    },
  })
})

test('everything', () => {
  const inputs = accept({
    'job-id': 'se_01HF-x',
    version: 'v1.2 {{ x }}',
    'timeout-minutes': '0.5',
    'poll-interval-seconds': '0.1',
    'mask-bundle-url': 'True',
    'agent-project-id': 'p1',
    'agent-job-id': 'aj_1',
    'wait-for-agent': 'true',
    'github-token': ' ghs_x ',
    summary: 'FALSE',
  })
  expect(inputs).toMatchObject({
    domain: 'docs.example.com',
    jobId: 'se_01HF-x',
    version: 'v1.2 {{ x }}',
    timeoutMs: 30_000,
    pollIntervalMs: 100,
    maskBundleUrl: true,
    agentJob: { projectId: 'p1', jobId: 'aj_1', wait: true },
    githubToken: 'ghs_x',
    summary: false,
  })
})

test('white space counts as absent, and is trimmed', () => {
  expect(accept({ domain: ' docs.example.com\n', version: ' \n', 'job-id': ' ' })).toMatchObject({
    domain: 'docs.example.com',
    version: undefined,
    jobId: undefined,
  })
})

describe('api-key', () => {
  test.each([
    ['', /empty.*secret defined.*forks/],
    [' \n', /empty.*secret defined.*forks/],
    [`Bearer ${key}`, /begins with the word Bearer/],
    [`bearer\t${key}`, /begins with the word Bearer/],
    [`${key}\n${key}`, /holds a character that no key has/],
    [`${key}…`, /holds a character that no key has/],
    [`mint_\u00a0${key}`, /holds a character that no key has/],
    [`mint_\u200b${key}`, /holds a character that no key has/],
    [`mint_ключ_0123456789`, /holds a character that no key has/],
  ])('%j is refused, and not repeated', (apiKey, problem) => {
    const text = problemOf({ 'api-key': apiKey })
    expect(text).toMatch(problem)
    expect(text).not.toContain(key)
  })

  test('may be surrounded by white space', () => {
    expect(accept({ 'api-key': `\n ${key}\r\n` }).apiKey).toBe(key)
  })

  test.each([
    ['mint_0123456789', /shorter than any admin key/],
    ['0123456789abcdef0123', /does not begin with a name and an underscore/],
    ['sk-0123456789abcdef', /does not begin with a name and an underscore/],
  ])('%s is a warning', (apiKey, warning) => {
    const warnings = warningsOf({ 'api-key': apiKey })
    expect(warnings).toEqual([expect.stringMatching(warning)])
    expect(warnings.join()).not.toContain(apiKey)
  })

  test('pasted into another input is not repeated there', () => {
    for (const name of ['domain', 'base-url', 'job-id', 'timeout-minutes', 'summary'] as const) {
      const [problem = ''] = problemsOf({ ...good, [name]: `x ${key} y` })
      expect(problem).toContain(`\`${name}\``)
      expect(problem).toContain('holds the API key')
      expect(problem).not.toContain(key.slice(0, 12))
    }
  })
})

describe('base-url', () => {
  test.each([
    ['https://api.example.com/', 'https://api.example.com/'],
    ['HTTPS://API.Example.com:8443/admin//', 'https://api.example.com:8443/admin'],
    ['https://10.0.0.1', 'https://10.0.0.1/'],
    ['https://[2001:db8::1]:444/', 'https://[2001:db8::1]:444/'],
    ['http://localhost:4000', 'http://localhost:4000/'],
    ['http://api.localhost', 'http://api.localhost/'],
    ['http://127.0.0.1:4000', 'http://127.0.0.1:4000/'],
    ['http://127.8.9.10', 'http://127.8.9.10/'],
    ['http://[::1]:4000', 'http://[::1]:4000/'],
    ['https://api.example.com/?', 'https://api.example.com/'],
    ['https://api.example.com/#', 'https://api.example.com/'],
  ])('%s', (given, href) => {
    expect(accept({ 'base-url': given }).baseUrl.href).toBe(href)
  })

  test.each([
    ['', /missing: the root address/],
    ['api.example.com', /not an https address.*did you mean https:\/\/api\.example\.com\?$/],
    ['api.example.com:8443/x', /did you mean https:\/\/api\.example\.com:8443\/x\?$/],
    ['//api.example.com', /did you mean https:\/\/api\.example\.com\?$/],
    ['ftp://api.example.com', /not an https address \("ftp:\/\/api.example.com"\)\.$/],
    ['file:///etc/passwd', /not an https address/],
    ['javascript:alert(1)', /not an https address/],
    ['nonsense', /not an https address \("nonsense"\)\.$/],
    ['https://', /not an https address/],
    ['https://api.exa\nmple.com', /white space/],
    ['https://api.example.com https://b.example', /white space/],
    ['http://api.example.com', /must be https/],
    ['http://10.0.0.1', /must be https/],
    ['http://0.0.0.0:4000', /must be https/],
    ['http://localhost.example.com', /must be https/],
    ['http://127.evil.example', /must be https/],
    ['https://me:pass-w@api.example.com', /user name or password/],
    ['ftp://me:pass-w@api.example.com', /user name or password/],
    ['me:pass-w@api.example.com', /user name or password/],
    ['http://pass-w@api.example.com', /user name or password/],
    ['https://api.example.com/?token=pass-w', /query or a fragment/],
    ['https://api.example.com/#pass-w', /query or a fragment/],
  ])('%j is refused', (given, problem) => {
    const text = problemOf({ 'base-url': given })
    expect(text).toMatch(problem)
    expect(text).not.toContain('pass-w')
  })

  test.each(['https://api.example.com/v1', 'https://api.example.com/api/v2/'])(
    '%s is a warning',
    (given) => {
      expect(warningsOf({ 'base-url': given })).toEqual([expect.stringMatching(/without \/v1 or \/v2/)]) // prettier-ignore
    },
  )

  test('/v10 is not', () => {
    expect(warningsOf({ 'base-url': 'https://api.example.com/v10' })).toEqual([])
  })
})

describe('domain', () => {
  const label = 'a'.repeat(63)

  test.each([
    ['docs.acme.dev', 'docs.acme.dev'],
    ['DOCS.Acme.DEV', 'docs.acme.dev'],
    ['docs.acme.dev.', 'docs.acme.dev'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['日本語.jp', 'xn--wgv71a119e.jp'],
    ['xn--bcher-kva.example', 'xn--bcher-kva.example'],
    ['my_site.example.com', 'my_site.example.com'],
    ['intranet', 'intranet'],
    ['0x.example', '0x.example'],
    ['1.example', '1.example'],
    [`${label}.example`, `${label}.example`],
  ])('%s is sent as %s', (given, sent) => {
    expect(accept({ domain: given }).domain).toBe(sent)
  })

  test.each([
    ['https://docs.acme.dev', 'did you mean docs.acme.dev?'],
    ['https://docs.acme.dev/guides', 'did you mean docs.acme.dev?'],
    ['HTTP://Docs.Acme.dev:8080/guides?x=y#z', 'did you mean docs.acme.dev?'],
    ['https:docs.acme.dev', 'did you mean docs.acme.dev?'],
    ['https:/docs.acme.dev', 'did you mean docs.acme.dev?'],
    ['//docs.acme.dev', 'did you mean docs.acme.dev?'],
    ['docs.acme.dev/guides', 'did you mean docs.acme.dev?'],
    ['docs.acme.dev/', 'did you mean docs.acme.dev?'],
    ['docs.acme.dev:443', 'did you mean docs.acme.dev?'],
    ['bücher.example/guides', 'did you mean xn--bcher-kva.example?'],
    ['docs acme.dev', 'for example docs.example.com.'],
    ['docs.acme.dev\nblog.acme.dev', 'for example docs.example.com.'],
    ['*.acme.dev', 'for example docs.example.com.'],
    ['192.168.0.1', 'for example docs.example.com.'],
    ['https://192.168.0.1/x', 'for example docs.example.com.'],
    ['0xC0A80001', 'for example docs.example.com.'],
    ['3232235521', 'for example docs.example.com.'],
    ['[::1]', 'for example docs.example.com.'],
    ['::1', 'for example docs.example.com.'],
    ['.acme.dev', 'for example docs.example.com.'],
    ['docs..acme.dev', 'for example docs.example.com.'],
    ['-docs.acme.dev', 'for example docs.example.com.'],
    ['docs.acme.dev..', 'for example docs.example.com.'],
    [`${label}a.example`, 'for example docs.example.com.'],
    [`${label}.`.repeat(4), 'for example docs.example.com.'],
    ['docs%2eacme.dev', 'did you mean docs.acme.dev?'],
    ['${{ inputs.domain }}', 'for example docs.example.com.'],
  ])('%j is refused: %s', (given, hint) => {
    const text = problemOf({ domain: given })
    expect(text).toMatch(/^`domain` is the host name of the site, without scheme, port or path/)
    expect(text.endsWith(hint)).toBe(true)
  })

  test('is needed, unless there is a job to attach to', () => {
    expect(problemOf({ domain: '' })).toMatch(/`domain` is missing.*`job-id`/)
    expect(accept({ domain: '', 'job-id': 'se_1' })).toMatchObject({ domain: undefined, jobId: 'se_1' }) // prettier-ignore
  })
})

describe.each(['job-id', 'agent-project-id', 'agent-job-id'] as const)('%s', (name) => {
  const both = { 'agent-project-id': 'p1', 'agent-job-id': 'aj_1' }

  test.each(['a', 'se_01HF', '0-9', 'x'.repeat(128)])('may be %s', (id) => {
    expect(() => accept({ ...both, [name]: id })).not.toThrow()
  })

  test.each([
    '..',
    '.',
    '%2e%2e',
    'a/b',
    'a b',
    '_a',
    '-a',
    'a\nb',
    'é',
    '\ud800',
    'x'.repeat(129),
    'x'.repeat(10_000),
    '../../v2/agent/p/job',
  ])('may not be %j', (id) => {
    const text = problemOf({ ...both, [name]: id })
    expect(text).toContain(`\`${name}\` is not an id: letters, digits, - and _, at most 128`)
    expect(text.length).toBeLessThan(200)
  })
})

describe('numbers', () => {
  test.each([
    ['1', 60_000],
    ['0.5', 30_000],
    ['1440', 86_400_000],
    ['1440.0', 86_400_000],
    ['0.001', 60],
  ])('timeout-minutes %s', (given, timeoutMs) => {
    expect(accept({ 'timeout-minutes': given }).timeoutMs).toBe(timeoutMs)
  })

  const odd = ['0', '-1', '+1', 'NaN', 'Infinity', '1e3', '0x10', '10m', '1,5', '1 0', '.5', '5.', '٣', '1_0', '9'.repeat(400)] // prettier-ignore
  test.each([...odd, '1440.1', '0.0', `0.${'0'.repeat(400)}1`])(
    'not timeout-minutes %s',
    (given) => {
      expect(problemOf({ 'timeout-minutes': given })).toMatch(
        /^`timeout-minutes` is a number of minutes above 0 and at most 1440, without a unit \("/,
      )
    },
  )

  test.each([
    ['0.1', 100],
    ['10', 10_000],
    ['600', 600_000],
  ])('poll-interval-seconds %s', (given, pollIntervalMs) => {
    expect(accept({ 'poll-interval-seconds': given }).pollIntervalMs).toBe(pollIntervalMs)
  })

  test.each([...odd, '0.09', '600.1'])('not poll-interval-seconds %s', (given) => {
    expect(problemOf({ 'poll-interval-seconds': given })).toMatch(
      /^`poll-interval-seconds` is a number of seconds from 0\.1 to 600, without a unit \("/,
    )
  })
})

describe.each([
  ['mask-bundle-url', 'maskBundleUrl'],
  ['summary', 'summary'],
] as const)('%s', (name, property) => {
  test.each(['true', 'True', 'TRUE', 'false', 'False', 'FALSE'])('%s', (given) => {
    expect(accept({ [name]: given })[property]).toBe(given.toLowerCase() === 'true')
  })

  test.each(['yes', 'no', '1', '0', 'on', 'tRUE', 'null'])('not %s', (given) => {
    expect(problemOf({ [name]: given })).toBe(`\`${name}\` is true or false ("${given}").`)
  })
})

describe('version', () => {
  test.each(['1', '2026-11-20', 'v1.2 {{ x }}', 'x'.repeat(128)])('%s', (version) => {
    expect(accept({ version }).version).toBe(version)
  })

  test.each(['x'.repeat(129), 'a\nb', 'é', '🎉', 'a\tb', 'a\u007fb'])('not %j', (version) => {
    expect(problemOf({ version })).toMatch(/1 to 128 printable ASCII characters/)
  })
})

describe('paths', () => {
  test('one a line; blank lines and repetitions are dropped, the rest is sent as written', () => {
    const paths = '\r\n guides/start \r\n\n/api/%7Bid%7D\nguides/start\nä b\n'
    expect(accept({ paths }).paths).toEqual(['guides/start', '/api/%7Bid%7D', 'ä b'])
  })

  test.each(['se_1', '..'])('not together with job-id %s, said at once', (jobId) => {
    expect(problemsOf({ ...good, paths: 'a', 'job-id': jobId })).toContain(
      '`paths` cannot be combined with `job-id`: what a job exports was decided when it was started.',
    )
  })
})

describe('the agent job', () => {
  test.each([
    [{ 'agent-project-id': 'p1' }, /belong together/],
    [{ 'agent-job-id': 'aj_1' }, /belong together/],
    [{ 'agent-job-id': 'aj_1', 'wait-for-agent': 'true' }, /belong together/],
    [{ 'wait-for-agent': 'true' }, /`wait-for-agent` needs/],
  ])('%j', (given, problem) => {
    expect(problemOf(given)).toMatch(problem)
  })
})

test('all problems are told at once, each with its fix, on lines of their own', () => {
  const given: Given = {
    'api-key': 'Bearer x',
    'base-url': 'api.example.com',
    domain: 'https://docs.acme.dev/guides',
    'job-id': '..',
    version: 'é',
    paths: 'a',
    'timeout-minutes': '10m',
    'poll-interval-seconds': '0',
    'mask-bundle-url': 'yes',
    'wait-for-agent': 'yes',
    'agent-project-id': '..',
    summary: 'yes',
  }
  expect(problemsOf(given)).toHaveLength(13)
  expect(() => read(given)).toThrow(/^13 inputs need to be corrected:\n- `api-key` begins/)
  expect(problemsOf({})).toHaveLength(3)
})

test('whatever the inputs hold: they are read or refused, and no problem has the key or a command', () => {
  const text = fc.oneof(
    fc.string(),
    fc.string({ unit: 'binary' }),
    fc.webUrl(),
    fc.domain(),
    fc.constantFrom('', '\r::error::x', 'x\n##[add-mask]y', 'https://u:p@h', 'true', '1', 'se_1'),
  )
  const suffix = fc.stringMatching(/^[0-9a-zA-Z]{8,20}$/)
  const given = fc.record(
    Object.fromEntries(inputNames.map((name) => [name, text])) as Record<
      InputName,
      fc.Arbitrary<string>
    >,
  )
  fc.assert(
    fc.property(given, suffix, fc.option(fc.constantFrom(...inputNames)), (all, end, pasted) => {
      const secret = `mint_${end}`
      const inputs = { ...all, 'api-key': secret }
      if (pasted && pasted !== 'api-key') inputs[pasted] = `${all[pasted]}${secret}${all.paths}`
      const warnings: string[] = []
      try {
        readInputs(
          (name) => inputs[name],
          (message) => warnings.push(message),
          places,
        )
      } catch (error) {
        if (!(error instanceof InvalidInputs)) throw error
        expect(error.problems.length).toBeGreaterThan(0)
        warnings.push(error.message, ...error.problems)
      }
      for (const message of warnings) {
        expect(commandsIn(message)).toEqual([])
        expect(message).not.toContain(secret)
        expect(message.toLowerCase()).not.toContain(secret.toLowerCase())
      }
    }),
    { numRuns: 500 },
  )
})
