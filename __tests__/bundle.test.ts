import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { mintBundle } from '../src/bundle.ts'
import { describeLink, isLoopback, linkProblem, parseTimestampMs, secretsOf } from '../src/link.ts'
import type { Client } from '../src/client.ts'
import { Failure } from '../src/errors.ts'
import type { BundleReply } from '../src/schemas.ts'
import { RecordingLog } from './support/recording-log.ts'

const now = Date.parse('2026-11-20T12:00:00Z')
const signature = '5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7'
const credential = 'ASIAIOSFODNN7EXAMPLE/20261120/eu-west-1/s3/aws4_request'
const s3Query = `X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=${encodeURIComponent(credential)}&X-Amz-Date=20261120T120000Z&X-Amz-Expires=3600&X-Amz-Security-Token=FwoGZXIvYXdzEA%2B%2Ftoken&X-Amz-Signature=${signature}&X-Amz-SignedHeaders=host`
const s3Link = `https://exports.s3.eu-west-1.amazonaws.com/se_1/site.tar.gz?${s3Query}`
const plainLink = 'https://storage.example/site.tar.gz'

/** Mints with a service that gives these answers, one after the other. */
async function mint(replies: Partial<BundleReply>[], baseUrl = 'https://api.example.com') {
  const log = new RecordingLog()
  const masked: string[] = []
  const asked: string[] = []
  const client = {
    createBundle(jobId: string) {
      asked.push(jobId)
      const reply = replies[asked.length - 1]
      if (!reply) throw new Error('asked too often')
      return Promise.resolve({ bundleUrl: s3Link, expiresAt: '2026-11-20T13:00:00Z', ...reply })
    },
    serverWallMs: () => now,
  } as unknown as Client
  const minted = mintBundle('se_1', {
    client,
    baseUrl: new URL(baseUrl),
    log,
    mask: (secret) => masked.push(secret),
  })
  const result = await minted.then(
    (bundle) => ({ bundle, failure: undefined }),
    (error: unknown) => {
      if (!(error instanceof Failure)) throw error
      return { bundle: undefined, failure: error }
    },
  )
  // Whatever happens, nothing of the query is told.
  const told = [log.text, result.failure?.message, result.failure?.advice].join('\n')
  expect(told).not.toContain(signature.slice(0, 8))
  expect(told).not.toContain('X-Amz')
  return { ...result, log, masked, asked }
}

describe('a link that can be used', () => {
  test('is handed over as the service says it', async () => {
    const { bundle, log, asked } = await mint([{ jobId: 'se_1', sizeBytes: 1_234 }])
    expect(bundle).toEqual({
      url: new URL(s3Link),
      expiresAt: '2026-11-20T13:00:00Z',
      expiresAtMs: Date.parse('2026-11-20T13:00:00Z'),
      sizeBytes: 1_234,
    })
    expect(log.lines).toEqual([])
    expect(asked).toEqual(['se_1'])
  })

  test.each([
    ['missing', undefined],
    ['null', null],
    ['a date only', '2026-11-20'],
    ['without a zone', '2026-11-20T13:00:00'],
    ['a day that does not exist', '2026-02-30T13:00:00Z'],
    ['a number', 1_795_179_600_000],
  ])('expiresAt %s: derived from the signature', async (_, expiresAt) => {
    const { bundle } = await mint([{ expiresAt }])
    expect(bundle).toMatchObject({
      expiresAt: '2026-11-20T13:00:00.000Z',
      expiresAtMs: Date.parse('2026-11-20T13:00:00Z'),
    })
  })

  test.each([
    ['Google Cloud Storage', 'X-Goog-Date=20261120T120000Z&X-Goog-Expires=3600'],
    ['Amazon S3', 'X-Amz-Expires=3600&X-Amz-Date=20261120T120000Z'],
  ])('the end of a signature of %s is understood', async (_, query) => {
    const { bundle } = await mint([{ bundleUrl: `${plainLink}?${query}`, expiresAt: null }])
    expect(bundle?.expiresAt).toBe('2026-11-20T13:00:00.000Z')
  })

  test.each([
    ['the service promises more', '2026-11-20T19:00:00Z', '2026-11-20T13:00:00Z', 1],
    ['the service promises less', '2026-11-20T12:30:00Z', '2026-11-20T12:30:00Z', 1],
    ['they differ by seconds', '2026-11-20T12:59:30Z', '2026-11-20T12:59:30Z', 0],
  ])('%s: its word is the output, the earlier counts', async (_, stated, trusted, warnings) => {
    const { bundle, log } = await mint([{ expiresAt: stated }])
    expect(bundle?.expiresAt).toBe(stated)
    expect(bundle?.expiresAtMs).toBe(Date.parse(trusted))
    expect(log.warnings).toHaveLength(warnings)
  })

  test('a short life is warned about', async () => {
    const { log } = await mint([{ expiresAt: '2026-11-20T12:05:00Z', bundleUrl: plainLink }])
    expect(log.warnings).toEqual([
      'The link works only for 5m 00s more. Use it at once, or mint a fresh one with `job-id`.',
    ])
  })

  test('a link that was dead on arrival is asked for once more', async () => {
    const { bundle, asked } = await mint([
      { expiresAt: '2026-11-20T11:59:00Z' },
      { expiresAt: '2026-11-20T13:00:00Z' },
    ])
    expect(bundle?.expiresAt).toBe('2026-11-20T13:00:00Z')
    expect(asked).toHaveLength(2)
  })
})

describe('a link that cannot be used', () => {
  test.each([
    ['twice dead', [{ expiresAt: '2026-11-20T11:59:00Z' }, { expiresAt: '2026-11-20T12:00:00Z' }], 'expired', /already expired, twice/],
    ['without an end', [{ bundleUrl: plainLink, expiresAt: 'soon' }], 'protocol', /until when the link works/],
    ['with a signature of the 30th of February', [{ bundleUrl: `${plainLink}?X-Amz-Date=20260230T120000Z&X-Amz-Expires=3600`, expiresAt: '' }], 'protocol', /until when/],
    ['of another job', [{ jobId: 'se_2' }], 'protocol', /bundle of job se_1, got that of another/],
    ['no URL', [{ bundleUrl: `//${s3Link}` }], 'protocol', /not a URL/],
    ['empty', [{ bundleUrl: '' }], 'protocol', /not a URL/],
    ['plain http', [{ bundleUrl: s3Link.replace('https', 'http') }], 'protocol', /not an https link/],
    ['a script', [{ bundleUrl: `javascript:alert(1)//?${s3Query}` }], 'protocol', /not an https link/],
    ['with a user name', [{ bundleUrl: s3Link.replace('//', '//me:secret@') }], 'protocol', /user name/],
    ['of the metadata service', [{ bundleUrl: `https://169.254.169.254/?${s3Query}` }], 'protocol', /link-local/],
    ['of this machine', [{ bundleUrl: `https://localhost/?${s3Query}` }], 'protocol', /this machine itself/],
    ['of size 0', [{ sizeBytes: 0 }], 'protocol', /impossible `sizeBytes`: 0\./],
    ['of size -1', [{ sizeBytes: -1 }], 'protocol', /impossible `sizeBytes`: -1\./],
    ['of size 1.5', [{ sizeBytes: 1.5 }], 'protocol', /impossible `sizeBytes`: 1.5\./],
    ['of size 2^53', [{ sizeBytes: 2 ** 53 }], 'protocol', /impossible `sizeBytes`: 9007199254740992\./],
    ['of size "1"', [{ sizeBytes: '1' }], 'protocol', /impossible `sizeBytes`: "1"\./],
    ['of a size in a deep hole', [{ sizeBytes: JSON.parse('['.repeat(100_000) + ']'.repeat(100_000)) as unknown }], 'protocol', /impossible `sizeBytes`: an object\./],
  ])('%s', async (_, replies, code, message) => {
    const { failure } = await mint(replies)
    expect(failure?.code).toBe(code)
    expect(failure?.message).toMatch(message)
    expect(failure?.message).not.toContain('secret')
  }) // prettier-ignore

  test('is masked all the same, before anything is said about it', async () => {
    const { masked, failure } = await mint([{ bundleUrl: s3Link.replace('https', 'http') }])
    expect(failure?.code).toBe('protocol')
    expect(masked).toContain(signature)
  })
})

describe('linkProblem: whose link do we fetch', () => {
  const api = 'https://api.example.com'
  const local = 'http://127.0.0.1:4000'
  const fine = undefined
  const linkLocal = 'it leads to a link-local address'
  const thisMachine = 'it leads to this machine itself'
  const noHttps = 'it is not an https link'

  test.each([
    ['https://exports.s3.amazonaws.com/x', api, fine],
    ['https://storage.internal:9000/x', api, fine],
    // Private networks are legitimate.
    ['https://10.1.2.3/x', api, fine],
    ['https://192.168.0.4:9000/x', api, fine],
    ['https://172.16.0.1/x', api, fine],
    ['https://100.64.0.1/x', api, fine],
    ['https://[fd12:3456::1]/x', api, fine],
    ['https://169.255.0.1/x', api, fine],
    ['https://localhost.example.com/x', api, fine],
    ['https://notlocalhost/x', api, fine],
    // Cloud metadata, in every spelling that the URL parser reads as an address.
    ['https://169.254.169.254/x', api, linkLocal],
    ['https://169.254.169.254./x', api, linkLocal],
    ['https://2852039166/x', api, linkLocal],
    ['https://0xA9FEA9FE/x', api, linkLocal],
    ['https://0251.0376.0251.0376/x', api, linkLocal],
    ['https://169.254.43518/x', api, linkLocal],
    ['https://①⑥⑨.254.169.254/x', api, linkLocal],
    ['https://[::ffff:169.254.169.254]/x', api, linkLocal],
    ['https://[::ffff:a9fe:a9fe]/x', api, linkLocal],
    ['https://[64:ff9b::169.254.169.254]/x', api, linkLocal],
    ['https://[fe80::1]/x', api, linkLocal],
    ['https://[febf::1]/x', api, linkLocal],
    ['https://[fd00:ec2::254]/x', api, linkLocal],
    ['http://169.254.169.254/x', local, linkLocal],
    // This machine.
    ['https://localhost/x', api, thisMachine],
    ['https://LOCALHOST./x', api, thisMachine],
    ['https://a.localhost/x', api, thisMachine],
    ['https://127.0.0.1/x', api, thisMachine],
    ['https://127.1/x', api, thisMachine],
    ['https://2130706433/x', api, thisMachine],
    ['https://0x7f.1/x', api, thisMachine],
    ['https://0.0.0.0/x', api, thisMachine],
    ['https://0/x', api, thisMachine],
    ['https://[::1]/x', api, thisMachine],
    ['https://[::]/x', api, thisMachine],
    ['https://[::ffff:127.0.0.1]/x', api, thisMachine],
    ['https://[0:0:0:0:0:ffff:7f00:1]/x', api, thisMachine],
    // An API on this machine may hand out links to it.
    ['http://127.0.0.1:5000/x', local, fine],
    ['https://localhost:5000/x', local, fine],
    ['http://[::1]:5000/x', 'http://localhost:4000', fine],
    ['http://0.0.0.0:5000/x', local, fine],
    ['http://storage.example/x', local, fine],
    // The scheme.
    ['http://exports.s3.amazonaws.com/x', api, noHttps],
    ['ftp://exports.s3.amazonaws.com/x', local, noHttps],
    ['file:///etc/passwd', local, noHttps],
    ['data:text/plain,x', local, noHttps],
  ])('%s from %s: %s', (link, baseUrl, problem) => {
    expect(linkProblem(new URL(link), new URL(baseUrl))).toBe(problem)
  })
})

test.each([
  ['localhost', true],
  ['localhost.', true],
  ['docs.localhost', true],
  ['127.0.0.1', true],
  ['127.255.255.254', true],
  ['[::1]', true],
  ['0.0.0.0', false],
  ['[::]', false],
  ['128.0.0.1', false],
  ['127.evil.example', false],
  ['localhost.evil.example', false],
])('isLoopback is literal: %s %s', (hostname, expected) => {
  expect(isLoopback(hostname)).toBe(expected)
})

describe('parseTimestampMs', () => {
  test.each([
    ['2026-11-20T13:00:00Z', '2026-11-20T13:00:00.000Z'],
    ['2026-11-20T13:00:00.123456789Z', '2026-11-20T13:00:00.123Z'],
    ['2026-11-20T14:00:00+01:00', '2026-11-20T13:00:00.000Z'],
    ['2026-11-20T07:30:00-05:30', '2026-11-20T13:00:00.000Z'],
    ['2028-02-29T00:00:00Z', '2028-02-29T00:00:00.000Z'],
  ])('%s', (text, iso) => {
    expect(new Date(parseTimestampMs(text) ?? NaN).toISOString()).toBe(iso)
  })

  test.each([
    '2026-02-30T00:00:00Z',
    '2026-02-29T00:00:00Z',
    '2026-04-31T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-00-10T00:00:00Z',
    '2026-11-00T00:00:00Z',
    '2026-11-20T24:00:00Z',
    '2026-11-20T25:00:00Z',
    '2026-11-20T12:60:00Z',
    '2026-11-20T13:00:00+25:00',
    '2026-11-20T13:00:00',
    '2026-11-20T13:00Z',
    '2026-11-20',
    '2026-11-20 13:00:00Z',
    ' 2026-11-20T13:00:00Z',
    '2026-11-20T13:00:00Z\n',
    '20261120T130000Z',
    '+012026-11-20T13:00:00Z',
    'Fri, 20 Nov 2026 13:00:00 GMT',
    'export 7',
    '1',
    '',
    1_795_179_600,
    null,
    undefined,
    {},
  ])('not %j', (value) => {
    expect(parseTimestampMs(value)).toBeUndefined()
  })
})

describe('secretsOf', () => {
  test('the telling values of an S3 link, raw and decoded, and the whole query; no constants', () => {
    expect(secretsOf(new URL(s3Link)).sort()).toEqual(
      [
        s3Query,
        signature,
        credential,
        encodeURIComponent(credential),
        'FwoGZXIvYXdzEA%2B%2Ftoken',
        'FwoGZXIvYXdzEA+/token',
      ].sort(),
    )
  })

  test.each([
    ['Signature=abcdefgh12&Expires=1795179600&AWSAccessKeyId=AKIAIOSFODNN7EXAMPLE', ['abcdefgh12', 'AKIAIOSFODNN7EXAMPLE']],
    ['sv=2026-01-01&se=2026-11-20T13%3A00%3A00Z&st=2026-11-20T12:00:00.0000000Z&sp=r&sig=abc%2Bdef%3D', ['abc%2Bdef%3D', 'abc+def=']],
    ['token=12345678', ['12345678']],
    ['TOKEN=12345678', ['12345678']],
    ['token=1234567', []],
    ['sig=short', []],
    ['x-id=GetObject', []],
    ['response=12345678901234567890', ['12345678901234567890']],
    ['response=1234567890123456789', []],
    ['x-amz-date=20261120T120000Z&X-AMZ-SIGNEDHEADERS=host%3Bx-amz-content-sha256%3Bx-amz-date', []],
    ['X-Goog-Algorithm=GOOG4-RSA-SHA256-AND-SOME-MORE&X-Goog-Expires=3600', []],
    ['X-Oss-Algorithm=OSS4-HMAC-SHA256-AND-MORE&x-oss-date=20261120T120000Z', []],
    ['Expires=00000000000000001795179600', []],
    ['flag&=&a=', []],
  ])('%s', (query, secrets) => {
    const expected = query.length >= 8 ? [query, ...secrets] : secrets
    expect(secretsOf(new URL(`https://storage.example/x?${query}`)).sort()).toEqual(expected.sort())
  }) // prettier-ignore

  test('nothing without a query', () => {
    expect(secretsOf(new URL('https://storage.example/a-long-path-that-is-not-secret'))).toEqual([])
  })

  test('of any query: nothing short, and the whole of it', () => {
    fc.assert(
      fc.property(fc.webQueryParameters(), (query) => {
        const secrets = secretsOf(new URL(`https://storage.example/x?${query}`))
        for (const secret of secrets) expect(secret.length).toBeGreaterThanOrEqual(8)
        if (query.length >= 8)
          expect(secrets).toContain(new URL(`https://x/?${query}`).search.slice(1))
      }),
    )
  })
})

test('describeLink shows host and path, never the query, and nothing hostile', () => {
  expect(describeLink(new URL(s3Link))).toBe('exports.s3.eu-west-1.amazonaws.com/se_1/site.tar.gz')
  expect(describeLink(new URL('https://s.example/##[error]x?sig=y#frag'))).toBe('s.example/')
})
