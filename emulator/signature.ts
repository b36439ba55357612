import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { AwsV4Signer } from 'aws4fetch'
import type { Request } from './message.ts'
import type { S3Error } from './s3-error.ts'

export type Credentials = { accessKeyId: string; secretAccessKey: string; region: string }

/** A week: the most that X-Amz-Expires may say (Amazon S3, "Authenticating requests: query"). */
export const maxLifetimeSeconds = 604_800

/**
 * A presigned link: anyone who has it may GET `url` until `lifetimeSeconds` after `nowMs`.
 * Signed by another hand than the check below, so that one misunderstanding cannot hide in both.
 */
export async function presign(
  url: string,
  credentials: Credentials,
  nowMs: number,
  lifetimeSeconds: number,
): Promise<string> {
  const unsigned = new URL(url)
  unsigned.searchParams.set('X-Amz-Expires', String(lifetimeSeconds))
  const signer = new AwsV4Signer({
    method: 'GET',
    url: unsigned.href,
    ...credentials,
    service: 's3',
    datetime: new Date(nowMs).toISOString().replace(/[:-]|\.\d{3}/g, ''),
    signQuery: true,
  })
  return (await signer.sign()).url.href
}

/**
 * What is wrong with a request to a presigned link, in the words and the order of S3; nothing when
 * it may pass. Follows "Authenticating requests: using query parameters (AWS Signature Version 4)".
 */
export function problemWithLink(
  request: Request,
  credentials: Credentials,
  nowMs: number,
): S3Error | undefined {
  const [path = '', search = ''] = request.target.split('?', 2)
  const query = new URLSearchParams(search)
  const signature = query.get('X-Amz-Signature')
  const { authorization } = request.headers

  if (signature === null) {
    // Also with an Authorization header: the emulator's storage knows no other way in than a link.
    return { status: 403, code: 'AccessDenied', message: 'Access Denied' }
  }
  if (authorization !== undefined) {
    return {
      status: 400,
      code: 'InvalidArgument',
      message:
        'Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter, ' +
        'Signature query string parameter or the Authorization header should be specified',
      // S3 repeats the header: whoever prints this body prints the key that was sent by mistake.
      details: { ArgumentName: 'Authorization', ArgumentValue: authorization },
    }
  }

  const issuedAt = query.get('X-Amz-Date') ?? ''
  const issuedAtMs = Date.parse(
    issuedAt.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'),
  )
  const lifetimeSeconds = Number(query.get('X-Amz-Expires') ?? NaN)
  const [accessKeyId, ...scope] = (query.get('X-Amz-Credential') ?? '').split('/')
  const expectedScope = [issuedAt.slice(0, 8), credentials.region, 's3', 'aws4_request']
  const signedHeaders = (query.get('X-Amz-SignedHeaders') ?? '').split(';')
  if (
    query.get('X-Amz-Algorithm') !== 'AWS4-HMAC-SHA256' ||
    Number.isNaN(issuedAtMs) ||
    !(lifetimeSeconds >= 1 && lifetimeSeconds <= maxLifetimeSeconds) ||
    scope.join('/') !== expectedScope.join('/') ||
    !signedHeaders.includes('host')
  ) {
    return {
      status: 400,
      code: 'AuthorizationQueryParametersError',
      message:
        'Query-string authentication version 4 requires the X-Amz-Algorithm, X-Amz-Credential, ' +
        'X-Amz-Signature, X-Amz-Date, X-Amz-SignedHeaders, and X-Amz-Expires parameters.',
    }
  }
  if (accessKeyId !== credentials.accessKeyId) {
    return {
      status: 403,
      code: 'InvalidAccessKeyId',
      message: 'The AWS Access Key Id you provided does not exist in our records.',
    }
  }

  const expiresAtMs = issuedAtMs + lifetimeSeconds * 1000
  if (nowMs >= expiresAtMs) {
    return {
      status: 403,
      code: 'AccessDenied',
      message: 'Request has expired',
      details: {
        'X-Amz-Expires': String(lifetimeSeconds),
        Expires: seconds(expiresAtMs),
        ServerTime: seconds(nowMs),
      },
    }
  }

  const unsigned = Object.keys(request.headers).filter(
    (name) => name.startsWith('x-amz-') && !signedHeaders.includes(name),
  )
  if (unsigned.length > 0) {
    return {
      status: 403,
      code: 'AccessDenied',
      message: 'There were headers present in the request which were not signed',
      details: { HeadersNotSigned: unsigned.join(', ') },
    }
  }

  const canonicalRequest = [
    request.method,
    canonicalPath(path),
    canonicalQuery(query),
    ...signedHeaders.map((name) => `${name}:${headerValue(request, name)}`),
    '',
    signedHeaders.join(';'),
    'UNSIGNED-PAYLOAD',
  ].join('\n')
  const stringToSign = [
    'AWS4-HMAC-SHA256',
    issuedAt,
    scope.join('/'),
    createHash('sha256').update(canonicalRequest).digest('hex'),
  ].join('\n')
  const signingKey = scope.reduce<string | Buffer>(
    (key, part) => createHmac('sha256', key).update(part).digest(),
    `AWS4${credentials.secretAccessKey}`,
  )
  const expected = createHmac('sha256', signingKey).update(stringToSign).digest()
  const given = Buffer.from(signature, 'hex')
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
    return {
      status: 403,
      code: 'SignatureDoesNotMatch',
      message:
        'The request signature we calculated does not match the signature you provided. ' +
        'Check your key and signing method.',
      details: { StringToSign: stringToSign, CanonicalRequest: canonicalRequest },
    }
  }
  return undefined
}

/** S3 encodes a path once, slashes excepted, and unlike other services does not normalise it. */
function canonicalPath(path: string): string {
  return encode(decodeURIComponent(path)).replaceAll('%2F', '/')
}

function canonicalQuery(query: URLSearchParams): string {
  return [...query]
    .filter(([name]) => name !== 'X-Amz-Signature')
    .map(([name, value]) => [encode(name), encode(value)] as const)
    .sort(([a, x], [b, y]) => (a === b ? compare(x, y) : compare(a, b)))
    .map((pair) => pair.join('='))
    .join('&')
}

/** By code unit, as the order of a signature must not depend on a language. */
function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function headerValue(request: Request, name: string): string {
  const value = request.headers[name] ?? ''
  return String(value).trim().replace(/\s+/g, ' ')
}

/** RFC 3986: encodeURIComponent leaves five characters alone that a signature must not. */
function encode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

function seconds(timeMs: number): string {
  return new Date(timeMs).toISOString().replace(/\.\d{3}/, '')
}
