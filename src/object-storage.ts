/** Object storage that speaks the API of S3: one object at a time, with its retries, and refusals in plain words. */
import { Readable, Transform, type TransformCallback } from 'node:stream'
import type { Clock, Deadline } from './clock.ts'
import type { Disk } from './disk.ts'
import { Failure, type FailureCode, type FailureDetails } from './errors.ts'
import { InvalidInputs } from './input-reader.ts'
import type { Log } from './log.ts'
import { NetworkFault, type ObjectStorage, type StreamedReply } from './network.ts'
import { type Outcome, describeEnding } from './outcome.ts'
import { type Patience, createPatience } from './patience.ts'
import { type RetryPolicy, afterFailedTry, parseRetryAfterMs } from './retry.ts'
import { clean, shortestSecretLength } from './text.ts'
import { formatBytes, formatDuration } from './units.ts'

/** Where a bucket is, by the inputs. */
export interface StoreTarget {
  readonly bucket: string
  readonly region: string | undefined
  /** Of a storage other than AWS. */
  readonly endpointUrl: URL | undefined
  /** What the names of these inputs begin with: `mirror-`, or nothing. */
  readonly inputPrefix: string
}

/** A bucket with all that it takes to reach it. */
export interface StoreAccess extends StoreTarget {
  readonly region: string
  readonly credentials: StoreCredentials
}

export interface StoreCredentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /** Of temporary credentials. */
  readonly sessionToken: string | undefined
}

export interface StoreDependencies {
  readonly objectStorage: ObjectStorage
  readonly disk: Pick<Disk, 'read'>
  readonly clock: Clock
  /** From 0 to 1. */
  readonly random: () => number
  readonly log: Log
  readonly deadline: Deadline
  readonly signal: AbortSignal
}

/** What the storage said to one request, a refusal included. */
export interface Answer {
  readonly status: number
  readonly headers: StreamedReply['headers']
  /** Of the error document: `AccessDenied`; empty where there is none, as after HEAD. */
  readonly code: string
  readonly message: string
  /** Where the bucket is, when the storage says so. */
  readonly region: string | undefined
}

export interface Upload {
  readonly key: string
  readonly file: string
  readonly sizeBytes: number
  /** Lower-case hex; the storage refuses a body that has another. */
  readonly sha256: string
  readonly contentType: string
  readonly cacheControl: string
  /** Answers 412 when something is there. */
  readonly onlyIfAbsent: boolean
}

/**
 * One bucket. Requests resolve with every answer that no other try would change, and reject with a Failure
 * `storage-failed`, `timeout`, `disk`, or the reason of the signal.
 */
export interface Store {
  look(key: string): Promise<Answer>
  put(upload: Upload): Promise<Answer>
  /** A refusal as the end of the run. */
  refusal(intent: string, key: string, answer: Answer): Failure
}

/** An object for the log: `s3://bucket/key`. */
export function describeObject({ bucket }: StoreTarget, key: string): string {
  return clean(`s3://${bucket}/${key}`, 400)
}

/**
 * Completes a bucket with what the usual AWS variables say: the credentials, and where no input does, the region
 * (`AWS_REGION`, `AWS_DEFAULT_REGION`) and the endpoint (`AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`). Profiles,
 * token files and metadata services are not asked: a step before this one makes variables of them, and
 * nothing here waits for a service that is not there.
 *
 * @throws InvalidInputs with every problem found, each with its fix
 */
export function storeAccess(
  target: StoreTarget,
  environment: Readonly<Record<string, string | undefined>>,
): StoreAccess {
  // A pasted newline is no part of a key.
  const read = (name: string) => environment[name]?.trim() || undefined
  const problems: string[] = []

  const accessKeyId = read('AWS_ACCESS_KEY_ID')
  const secretAccessKey = read('AWS_SECRET_ACCESS_KEY')
  if (accessKeyId === undefined || secretAccessKey === undefined) {
    problems.push(describeMissing(read))
  }

  let { endpointUrl } = target
  const endpointName = ['AWS_ENDPOINT_URL_S3', 'AWS_ENDPOINT_URL'].find(read)
  if (!endpointUrl && endpointName !== undefined) {
    endpointUrl = URL.parse(read(endpointName) ?? '') ?? undefined
    if (!/^https?:$/.test(endpointUrl?.protocol ?? '')) {
      problems.push(`${endpointName} is set, but it is not an http address.`)
    }
  }

  const region =
    target.region ??
    read('AWS_REGION') ??
    read('AWS_DEFAULT_REGION') ??
    // Storages other than AWS have no regions, and take the name of the oldest one for their own.
    (endpointUrl && 'us-east-1')
  if (region === undefined) {
    problems.push(
      `\`${target.inputPrefix}region\` is missing: the region of the bucket, such as eu-west-1. (AWS_REGION will do, too.)`,
    )
  }

  if (!accessKeyId || !secretAccessKey || !region || problems.length > 0) {
    throw new InvalidInputs(problems)
  }
  const credentials = { accessKeyId, secretAccessKey, sessionToken: read('AWS_SESSION_TOKEN') }
  return { ...target, region, endpointUrl, credentials }
}

function describeMissing(read: (name: string) => string | undefined): string {
  const missing = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'].filter((name) => !read(name))
  const unread = ['AWS_PROFILE', 'AWS_WEB_IDENTITY_TOKEN_FILE'].find(read)
  return [
    `The storage needs credentials, and ${missing.join(' and ')} ${missing.length > 1 ? 'are' : 'is'} not set.`,
    'Set both (and AWS_SESSION_TOKEN for temporary ones) in the `env` of this step, or log in before it, for example with aws-actions/configure-aws-credentials.',
    ...(unread === undefined ? [] : [`(${unread} is set, but not read here.)`]),
  ].join(' ')
}

const retryPolicy: RetryPolicy = {
  maxTries: 3,
  minPersistenceMs: 0,
  repeatable: true,
  // ConditionalRequestConflict: someone else is storing the same object, and S3 asks to try again.
  notYet: { status: 409, graceMs: 30_000 },
}
/** No byte taken and no answer for so long is a lost connection. The system buffers megabytes on the way. */
const maxSilenceMs = 120_000
const maxAnswerBytes = 64 * 1024
const reportEveryMs = 10_000

/** What arrived was not what was signed. */
const corruptionCodes = new Set(['BadDigest', 'IncompleteBody', 'XAmzContentSHA256Mismatch'])
/** Errors that heal although their status does not look like it: after a wrong time, the client knows the right one. */
const transientS3Codes = new Set([...corruptionCodes, 'RequestTimeout', 'RequestTimeTooSkewed'])

/** A request as the client of S3 signs it. */
interface SignedRequest {
  readonly method: string
  readonly protocol: string
  readonly hostname: string
  readonly port?: number
  /** Already encoded, as it was signed. */
  readonly path: string
  readonly query?: Readonly<Record<string, string | string[] | null>>
  readonly headers: Record<string, string>
  readonly body?: unknown
}

/** Opens a bucket; nothing is sent yet. */
export async function openStore(
  access: StoreAccess,
  dependencies: StoreDependencies,
): Promise<Store> {
  const { objectStorage, disk, clock, log, deadline, signal } = dependencies
  const { bucket, region, endpointUrl, credentials } = access
  // Loaded only now: it is as large as all the rest of an action.
  const { HeadObjectCommand, PutObjectCommand, S3Client } = await import('@aws-sdk/client-s3')
  let host = ''
  let answer: Answer | undefined
  const lastAnswer = () => answer
  const client = new S3Client({
    region,
    credentials: {
      accessKeyId: credentials.accessKeyId,
      secretAccessKey: credentials.secretAccessKey,
      ...(credentials.sessionToken !== undefined && { sessionToken: credentials.sessionToken }),
    },
    // Few other storages give each bucket a host name of its own.
    ...(endpointUrl && { endpoint: endpointUrl.href, forcePathStyle: true }),
    // Not all know the newer checksums, and the signature holds the hash of the whole body anyway.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    // A stream that was read cannot be sent again: each try below has its own.
    maxAttempts: 1,
    // Without one, it warns on the console that a stream cannot be sent again.
    logger: { debug: ignore, info: ignore, warn: ignore, error: ignore },
    // The client's own drops the agent of a proxy without a word.
    requestHandler: { metadata: { handlerProtocol: 'http/1.1' }, handle: exchange },
  })

  return {
    look: (key) =>
      ask('look for', key, (patience) =>
        client.send(new HeadObjectCommand({ Bucket: bucket, Key: key }), {
          abortSignal: patience.signal,
        }),
      ),
    put,
    refusal: (intent, key, refused) =>
      failure(intent, key, {
        reason: describeAnswer(refused),
        serverSaid: clean(refused.message, 300) || undefined,
        advice: adviceFor(refused, access),
      }),
  }

  /** Carries a request of the client over our network, and keeps what came back. */
  async function exchange(
    request: SignedRequest,
    { abortSignal = signal }: { readonly abortSignal?: AbortSignal } = {},
  ) {
    const url = toUrl(request)
    host = url.host
    const { method, headers } = request
    const body = request.body instanceof Readable ? request.body : undefined
    const reply = await objectStorage({ method, url, headers, body }, abortSignal)
    const text = await readText(reply.chunks)
    answer = toAnswer(reply, text)
    return {
      response: {
        statusCode: reply.status,
        headers: reply.headers,
        body: Readable.from([Buffer.from(text)]),
      },
    }
  }

  function put(upload: Upload): Promise<Answer> {
    const { key, file, sizeBytes } = upload
    const report = createReport(sizeBytes, clock, log)
    return ask('store', key, async (patience) => {
      const source = disk.read(file)
      source.once('error', (error) => {
        const reason = 'code' in error ? String(error.code) : error.message
        const what = `The file to be stored could not be read: ${clean(reason, 100)}.`
        patience.end(new Failure('disk', what, { cause: error }))
      })
      let sentBytes = 0
      const body = new Transform({
        transform(chunk: Buffer, _encoding, done: TransformCallback) {
          patience.renew()
          sentBytes += chunk.length
          report(sentBytes)
          done(null, chunk)
        },
      })
      const command = new PutObjectCommand({
        Bucket: bucket,
        Key: key,
        Body: source.pipe(body),
        ContentLength: sizeBytes,
        ContentType: upload.contentType,
        CacheControl: upload.cacheControl,
        ...(upload.onlyIfAbsent && { IfNoneMatch: '*' }),
      })
      command.middlewareStack.add(
        (next) => (args) => {
          const { headers } = args.request as SignedRequest
          headers['x-amz-content-sha256'] = upload.sha256
          return next(args)
        },
        { step: 'build' },
      )
      try {
        await client.send(command, { abortSignal: patience.signal })
      } finally {
        source.destroy()
        body.destroy()
      }
    })
  }

  /** Sends a request until there is an answer, as persistently as the policy says. */
  async function ask(
    intent: string,
    key: string,
    send: (patience: Patience) => Promise<unknown>,
  ): Promise<Answer> {
    const startedMs = clock.nowMs()
    for (let tries = 1; ; tries += 1) {
      const outcome = await attempt(send)
      if (outcome.ok) return outcome.value
      const { fault, reason } = outcome
      const remainingMs = deadline.remainingMs()
      const elapsedMs = clock.nowMs() - startedMs
      const decision = afterFailedTry(retryPolicy, {
        fault,
        tries,
        unknownFates: 0,
        elapsedMs,
        remainingMs,
        random: dependencies.random(),
      })
      if (!decision.retry) {
        throw failure(intent, key, {
          ...outcome,
          ending: describeEnding(decision.why, fault, remainingMs),
          tried: tries > 1 ? `${tries} tries in ${formatDuration(elapsedMs)}` : undefined,
        })
      }
      log.details(
        `${describeObject(access, key)}: ${hide(reason)}; next try in ${formatDuration(decision.delayMs)}`,
        [],
      )
      await clock.sleep(decision.delayMs, signal)
    }
  }

  /** One try: an answer, which may be a refusal, or a fault. */
  async function attempt(send: (patience: Patience) => Promise<unknown>): Promise<Outcome<Answer>> {
    const patience = createPatience(maxSilenceMs, dependencies)
    answer = undefined
    try {
      await send(patience)
    } catch (error) {
      signal.throwIfAborted()
      if (patience.reason instanceof Failure) throw patience.reason
      if (patience.hasEnded) return outcomeOfSilence(patience)
      // The client makes an error of a refusal, too.
      if (lastAnswer() === undefined) return outcomeOfError(error)
    } finally {
      patience.end() // what is left of the request is not wanted
    }
    const given = lastAnswer()
    return given ? judge(given) : outcomeOfError(new Error('the client sent nothing'))
  }

  function outcomeOfSilence(patience: Patience): Outcome<never> {
    const isOver = deadline.remainingMs() <= 0
    return {
      ok: false,
      fault: { kind: 'silence' },
      code: isOver ? 'timeout' : 'storage-failed',
      reason: patience.describeEnd(host),
      advice: isOver ? 'Raise `timeout-minutes`, and run again.' : unreachableAdvice(access),
    }
  }

  function outcomeOfError(cause: unknown): Outcome<never> {
    if (!(cause instanceof NetworkFault)) {
      // The client refuses to send this, say for a name that no bucket can have.
      const reason = clean(Error.isError(cause) ? cause.message : String(cause), 300)
      const fault = { kind: 'hopeless', delivered: false } as const
      return { ok: false, fault, code: 'storage-failed', reason, cause }
    }
    const { kind, code, delivered, message } = cause
    return {
      ok: false,
      fault: { kind: 'connection', code, delivered },
      code: 'storage-failed',
      reason: `${message} (${kind === 'proxy' ? `on the way to ${host}` : host}, ${code})`,
      advice:
        kind === 'tls' ? tlsAdvice : kind === 'proxy' ? proxyAdvice : unreachableAdvice(access),
      cause,
    }
  }

  function judge(given: Answer): Outcome<Answer> {
    const { status, code } = given
    const retryAfterMs = parseRetryAfterMs(given.headers['retry-after'], clock.wallMs())
    const isFaulty = status >= 500 ? status !== 501 : [408, 409, 425, 429].includes(status)
    if (!isFaulty && !transientS3Codes.has(code)) return { ok: true, value: given }
    return {
      ok: false,
      fault: isFaulty ? { kind: 'status', status, retryAfterMs } : { kind: 'silence' },
      code: 'storage-failed',
      reason: describeAnswer(given),
      serverSaid: clean(given.message, 300) || undefined,
      advice: adviceFor(given, access),
    }
  }

  function failure(
    intent: string,
    key: string,
    { code = 'storage-failed', reason, ending = '', ...details }: Ending,
  ): Failure {
    const what = `Could not ${intent} ${describeObject(access, key)}: ${hide(reason)}.${ending}`
    const serverSaid = details.serverSaid && hide(details.serverSaid)
    return new Failure(code, what, { ...details, serverSaid })
  }

  /** Storages quote what they were sent. */
  function hide(text: string): string {
    return [credentials.secretAccessKey, credentials.sessionToken ?? '', credentials.accessKeyId]
      .filter(({ length }) => length >= shortestSecretLength)
      .reduce((hidden, secret) => hidden.replaceAll(secret, '***'), text)
  }
}

const ignore = () => undefined

interface Ending extends FailureDetails {
  readonly code?: FailureCode
  readonly reason: string
  readonly ending?: string
}

function toUrl({ protocol, hostname, port, path, query = {} }: SignedRequest): URL {
  const parameters = Object.entries(query).flatMap(([name, value]) =>
    [value ?? ''].flat().map((one) => `${encode(name)}=${encode(one)}`),
  )
  const url = new URL(`${protocol}//${hostname}${port === undefined ? '' : `:${port}`}${path}`)
  url.search = parameters.join('&')
  return url
}

/** As the signature encodes (SigV4, "canonical query string"): all but the unreserved characters of RFC 3986. */
function encode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

async function readText(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = []
  let sizeBytes = 0
  for await (const chunk of chunks) {
    parts.push(chunk)
    sizeBytes += chunk.length
    if (sizeBytes > maxAnswerBytes) break
  }
  return Buffer.concat(parts).toString('utf8')
}

/** Reads an error document of S3, whoever wrote it: a proxy answers with a page of its own. */
function toAnswer({ status, headers }: StreamedReply, text: string): Answer {
  const element = (name: string) =>
    status < 300 ? '' : (new RegExp(`<${name}>([^<]{1,2000})</${name}>`).exec(text)?.[1] ?? '')
  const regions = [headers['x-amz-bucket-region'], element('Region')]
  return {
    status,
    headers,
    code: clean(element('Code'), 60),
    message: decodeEntities(element('Message')),
    region: regions.flat().find((region) => region && /^[a-z0-9-]{2,40}$/.test(region)),
  }
}

const entities: Partial<Record<string, string>> = {
  quot: '"',
  apos: "'",
  lt: '<',
  gt: '>',
  amp: '&',
}

function decodeEntities(text: string): string {
  return text.replace(/&(?:#(\d{1,6})|(\w{1,5}));/g, (entity, digits?: string, name?: string) =>
    digits === undefined ? (entities[name ?? ''] ?? entity) : String.fromCodePoint(Number(digits)),
  )
}

function describeAnswer({ status, code }: Answer): string {
  return `HTTP ${status}${code && `, ${code}`}`
}

const tlsAdvice =
  'On a runner behind a TLS proxy, or with a private certificate authority, set NODE_EXTRA_CA_CERTS to its certificate file.'
const proxyAdvice = 'Check `HTTPS_PROXY` and `NO_PROXY` on the runner, and the credentials in them.'

function unreachableAdvice({ inputPrefix, endpointUrl }: StoreAccess): string {
  const inputs = endpointUrl ? `\`${inputPrefix}endpoint-url\`` : `\`${inputPrefix}region\``
  return `Can this runner reach the storage? Check ${inputs}, its DNS and firewall, and whether it needs a proxy (\`HTTPS_PROXY\`).`
}

/** What to do when something answers that does not speak the API of S3. */
export function otherThanS3Advice({ inputPrefix }: StoreTarget): string {
  return `Is \`${inputPrefix}endpoint-url\` the address of an S3 API, and not that of a console or a login page?`
}

const credentialCodes = new Set([
  'ExpiredToken',
  'InvalidAccessKeyId',
  'InvalidToken',
  'SignatureDoesNotMatch',
  'TokenRefreshRequired',
])
const regionCodes = new Set([
  'AuthorizationHeaderMalformed',
  'IllegalLocationConstraintException',
  'PermanentRedirect',
  'TemporaryRedirect',
])

/** What to do about an answer of S3 ("Error responses" in its API reference). */
function adviceFor({ status, code, region }: Answer, access: StoreAccess): string {
  const { inputPrefix, bucket } = access
  if (credentialCodes.has(code)) {
    return 'Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN: are they whole, of one login, not expired, and of this storage?'
  }
  if (regionCodes.has(code) || (status >= 300 && status < 400)) {
    return region === undefined
      ? `Set \`${inputPrefix}region\` to the region of the bucket, now ${access.region}.`
      : `The bucket is in ${region}, not in ${access.region}: set \`${inputPrefix}region\` to ${region}.`
  }
  if (code === 'NoSuchBucket' || (code === '' && status === 404)) {
    return `Create the bucket "${clean(bucket, 100)}", or correct \`${inputPrefix}bucket\` or \`${inputPrefix}endpoint-url\`.`
  }
  if (corruptionCodes.has(code)) {
    return 'Run again. If it happens again, something between this runner and the storage changes what is sent.'
  }
  if (code === 'RequestTimeTooSkewed') return 'Check the clock of the runner.'
  if (status === 401 || status === 403) {
    return `Allow these credentials \`s3:GetObject\` and \`s3:PutObject\` on the objects of the bucket, also in its own policy.`
  }
  if (status >= 500 || status === 429 || status === 409) {
    return 'The storage is busy or has a problem of its own. Run again later.'
  }
  return code === ''
    ? otherThanS3Advice(access)
    : 'Check the bucket, its region and its policy; the answer of the storage tells why.'
}

/** Lines about an upload that takes its time; a short one gets none. */
function createReport(totalBytes: number, clock: Clock, log: Log): (sentBytes: number) => void {
  let loggedMs = clock.nowMs()
  return (sentBytes) => {
    if (clock.nowMs() - loggedMs < reportEveryMs) return
    loggedMs = clock.nowMs()
    const percent = Math.floor((100 * sentBytes) / totalBytes)
    log.info(`Stored ${formatBytes(sentBytes)} of ${formatBytes(totalBytes)} (${percent} %)`)
  }
}
