export const id = 721;
export const ids = [721];
export const modules = {

/***/ 2721:
/***/ ((__unused_webpack_module, __webpack_exports__, __webpack_require__) => {


// EXPORTS
__webpack_require__.d(__webpack_exports__, {
  mirrorAccess: () => (/* binding */ mirrorAccess),
  mirrorArchive: () => (/* binding */ mirrorArchive),
  mirrorUrl: () => (/* binding */ mirrorUrl)
});

// EXTERNAL MODULE: ./src/errors.ts
var errors = __webpack_require__(3916);
// EXTERNAL MODULE: external "node:stream"
var external_node_stream_ = __webpack_require__(7075);
// EXTERNAL MODULE: ./src/input-reader.ts
var input_reader = __webpack_require__(8915);
// EXTERNAL MODULE: ./src/network.ts
var network = __webpack_require__(9473);
// EXTERNAL MODULE: ./src/outcome.ts
var src_outcome = __webpack_require__(4671);
// EXTERNAL MODULE: ./src/patience.ts
var src_patience = __webpack_require__(1748);
// EXTERNAL MODULE: ./src/retry.ts
var retry = __webpack_require__(9809);
// EXTERNAL MODULE: ./src/text.ts
var src_text = __webpack_require__(8992);
// EXTERNAL MODULE: ./src/units.ts
var units = __webpack_require__(1996);
;// CONCATENATED MODULE: ./src/object-storage.ts
/** Object storage that speaks the API of S3: one object at a time, with its retries, and refusals in plain words. */









/** An object for the log: `s3://bucket/key`. */
function describeObject({ bucket }, key) {
    return (0,src_text/* clean */.uH)(`s3://${bucket}/${key}`, 400);
}
/**
 * Completes a bucket with what the usual AWS variables say: the credentials, and where no input does, the region
 * (`AWS_REGION`, `AWS_DEFAULT_REGION`) and the endpoint (`AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`). Profiles,
 * token files and metadata services are not asked: a step before this one makes variables of them, and
 * nothing here waits for a service that is not there.
 *
 * @throws InvalidInputs with every problem found, each with its fix
 */
function storeAccess(target, environment) {
    // A pasted newline is no part of a key.
    const read = (name) => environment[name]?.trim() || undefined;
    const problems = [];
    const accessKeyId = read('AWS_ACCESS_KEY_ID');
    const secretAccessKey = read('AWS_SECRET_ACCESS_KEY');
    if (accessKeyId === undefined || secretAccessKey === undefined) {
        problems.push(describeMissing(read));
    }
    let { endpointUrl } = target;
    const endpointName = ['AWS_ENDPOINT_URL_S3', 'AWS_ENDPOINT_URL'].find(read);
    if (!endpointUrl && endpointName !== undefined) {
        endpointUrl = URL.parse(read(endpointName) ?? '') ?? undefined;
        if (!/^https?:$/.test(endpointUrl?.protocol ?? '')) {
            problems.push(`${endpointName} is set, but it is not an http address.`);
        }
    }
    const region = target.region ??
        read('AWS_REGION') ??
        read('AWS_DEFAULT_REGION') ??
        // Storages other than AWS have no regions, and take the name of the oldest one for their own.
        (endpointUrl && 'us-east-1');
    if (region === undefined) {
        problems.push(`\`${target.inputPrefix}region\` is missing: the region of the bucket, such as eu-west-1. (AWS_REGION will do, too.)`);
    }
    if (!accessKeyId || !secretAccessKey || !region || problems.length > 0) {
        throw new input_reader/* InvalidInputs */.hS(problems);
    }
    const credentials = { accessKeyId, secretAccessKey, sessionToken: read('AWS_SESSION_TOKEN') };
    return { ...target, region, endpointUrl, credentials };
}
function describeMissing(read) {
    const missing = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'].filter((name) => !read(name));
    const unread = ['AWS_PROFILE', 'AWS_WEB_IDENTITY_TOKEN_FILE'].find(read);
    return [
        `The storage needs credentials, and ${missing.join(' and ')} ${missing.length > 1 ? 'are' : 'is'} not set.`,
        'Set both (and AWS_SESSION_TOKEN for temporary ones) in the `env` of this step, or log in before it, for example with aws-actions/configure-aws-credentials.',
        ...(unread === undefined ? [] : [`(${unread} is set, but not read here.)`]),
    ].join(' ');
}
const retryPolicy = {
    maxTries: 3,
    minPersistenceMs: 0,
    repeatable: true,
    // ConditionalRequestConflict: someone else is storing the same object, and S3 asks to try again.
    notYet: { status: 409, graceMs: 30_000 },
};
/** No byte taken and no answer for so long is a lost connection. The system buffers megabytes on the way. */
const maxSilenceMs = 120_000;
const maxAnswerBytes = 64 * 1024;
const reportEveryMs = 10_000;
/** What arrived was not what was signed. */
const corruptionCodes = new Set(['BadDigest', 'IncompleteBody', 'XAmzContentSHA256Mismatch']);
/** Errors that heal although their status does not look like it: after a wrong time, the client knows the right one. */
const transientS3Codes = new Set([...corruptionCodes, 'RequestTimeout', 'RequestTimeTooSkewed']);
/** Opens a bucket; nothing is sent yet. */
async function openStore(access, dependencies) {
    const { objectStorage, disk, clock, log, deadline, signal } = dependencies;
    const { bucket, region, endpointUrl, credentials } = access;
    // Loaded only now: it is as large as all the rest of an action.
    const { HeadObjectCommand, PutObjectCommand, S3Client } = await __webpack_require__.e(/* import() */ 711).then(__webpack_require__.t.bind(__webpack_require__, 3711, 19));
    let host = '';
    let answer;
    const lastAnswer = () => answer;
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
    });
    return {
        look: (key) => ask('look for', key, (patience) => client.send(new HeadObjectCommand({ Bucket: bucket, Key: key }), {
            abortSignal: patience.signal,
        })),
        put,
        refusal: (intent, key, refused) => failure(intent, key, {
            reason: describeAnswer(refused),
            serverSaid: (0,src_text/* clean */.uH)(refused.message, 300) || undefined,
            advice: adviceFor(refused, access),
        }),
    };
    /** Carries a request of the client over our network, and keeps what came back. */
    async function exchange(request, { abortSignal = signal } = {}) {
        const url = toUrl(request);
        host = url.host;
        const { method, headers } = request;
        const body = request.body instanceof external_node_stream_.Readable ? request.body : undefined;
        const reply = await objectStorage({ method, url, headers, body }, abortSignal);
        const text = await readText(reply.chunks);
        answer = toAnswer(reply, text);
        return {
            response: {
                statusCode: reply.status,
                headers: reply.headers,
                body: external_node_stream_.Readable.from([Buffer.from(text)]),
            },
        };
    }
    function put(upload) {
        const { key, file, sizeBytes } = upload;
        const report = createReport(sizeBytes, clock, log);
        return ask('store', key, async (patience) => {
            const source = disk.read(file);
            source.once('error', (error) => {
                const reason = 'code' in error ? String(error.code) : error.message;
                const what = `The file to be stored could not be read: ${(0,src_text/* clean */.uH)(reason, 100)}.`;
                patience.end(new errors/* Failure */.HR('disk', what, { cause: error }));
            });
            let sentBytes = 0;
            const body = new external_node_stream_.Transform({
                transform(chunk, _encoding, done) {
                    patience.renew();
                    sentBytes += chunk.length;
                    report(sentBytes);
                    done(null, chunk);
                },
            });
            const command = new PutObjectCommand({
                Bucket: bucket,
                Key: key,
                Body: source.pipe(body),
                ContentLength: sizeBytes,
                ContentType: upload.contentType,
                CacheControl: upload.cacheControl,
                ...(upload.onlyIfAbsent && { IfNoneMatch: '*' }),
            });
            command.middlewareStack.add((next) => (args) => {
                const { headers } = args.request;
                headers['x-amz-content-sha256'] = upload.sha256;
                return next(args);
            }, { step: 'build' });
            try {
                await client.send(command, { abortSignal: patience.signal });
            }
            finally {
                source.destroy();
                body.destroy();
            }
        });
    }
    /** Sends a request until there is an answer, as persistently as the policy says. */
    async function ask(intent, key, send) {
        const startedMs = clock.nowMs();
        for (let tries = 1;; tries += 1) {
            const outcome = await attempt(send);
            if (outcome.ok)
                return outcome.value;
            const { fault, reason } = outcome;
            const remainingMs = deadline.remainingMs();
            const elapsedMs = clock.nowMs() - startedMs;
            const decision = (0,retry/* afterFailedTry */.RS)(retryPolicy, {
                fault,
                tries,
                unknownFates: 0,
                elapsedMs,
                remainingMs,
                random: dependencies.random(),
            });
            if (!decision.retry) {
                throw failure(intent, key, {
                    ...outcome,
                    ending: (0,src_outcome/* describeEnding */.be)(decision.why, fault, remainingMs),
                    tried: tries > 1 ? `${tries} tries in ${(0,units/* formatDuration */.a3)(elapsedMs)}` : undefined,
                });
            }
            log.details(`${describeObject(access, key)}: ${hide(reason)}; next try in ${(0,units/* formatDuration */.a3)(decision.delayMs)}`, []);
            await clock.sleep(decision.delayMs, signal);
        }
    }
    /** One try: an answer, which may be a refusal, or a fault. */
    async function attempt(send) {
        const patience = (0,src_patience/* createPatience */.s)(maxSilenceMs, dependencies);
        answer = undefined;
        try {
            await send(patience);
        }
        catch (error) {
            signal.throwIfAborted();
            if (patience.reason instanceof errors/* Failure */.HR)
                throw patience.reason;
            if (patience.hasEnded)
                return outcomeOfSilence(patience);
            // The client makes an error of a refusal, too.
            if (lastAnswer() === undefined)
                return outcomeOfError(error);
        }
        finally {
            patience.end(); // what is left of the request is not wanted
        }
        const given = lastAnswer();
        return given ? judge(given) : outcomeOfError(new Error('the client sent nothing'));
    }
    function outcomeOfSilence(patience) {
        const isOver = deadline.remainingMs() <= 0;
        return {
            ok: false,
            fault: { kind: 'silence' },
            code: isOver ? 'timeout' : 'storage-failed',
            reason: patience.describeEnd(host),
            advice: isOver ? 'Raise `timeout-minutes`, and run again.' : unreachableAdvice(access),
        };
    }
    function outcomeOfError(cause) {
        if (!(cause instanceof network/* NetworkFault */.H6)) {
            // The client refuses to send this, say for a name that no bucket can have.
            const reason = (0,src_text/* clean */.uH)(Error.isError(cause) ? cause.message : String(cause), 300);
            const fault = { kind: 'hopeless', delivered: false };
            return { ok: false, fault, code: 'storage-failed', reason, cause };
        }
        const { kind, code, delivered, message } = cause;
        return {
            ok: false,
            fault: { kind: 'connection', code, delivered },
            code: 'storage-failed',
            reason: `${message} (${kind === 'proxy' ? `on the way to ${host}` : host}, ${code})`,
            advice: kind === 'tls' ? tlsAdvice : kind === 'proxy' ? proxyAdvice : unreachableAdvice(access),
            cause,
        };
    }
    function judge(given) {
        const { status, code } = given;
        const retryAfterMs = (0,retry/* parseRetryAfterMs */.oR)(given.headers['retry-after'], clock.wallMs());
        const isFaulty = status >= 500 ? status !== 501 : [408, 409, 425, 429].includes(status);
        if (!isFaulty && !transientS3Codes.has(code))
            return { ok: true, value: given };
        return {
            ok: false,
            fault: isFaulty ? { kind: 'status', status, retryAfterMs } : { kind: 'silence' },
            code: 'storage-failed',
            reason: describeAnswer(given),
            serverSaid: (0,src_text/* clean */.uH)(given.message, 300) || undefined,
            advice: adviceFor(given, access),
        };
    }
    function failure(intent, key, { code = 'storage-failed', reason, ending = '', ...details }) {
        const what = `Could not ${intent} ${describeObject(access, key)}: ${hide(reason)}.${ending}`;
        const serverSaid = details.serverSaid && hide(details.serverSaid);
        return new errors/* Failure */.HR(code, what, { ...details, serverSaid });
    }
    /** Storages quote what they were sent. */
    function hide(text) {
        return [credentials.secretAccessKey, credentials.sessionToken ?? '', credentials.accessKeyId]
            .filter(({ length }) => length >= src_text/* shortestSecretLength */.hX)
            .reduce((hidden, secret) => hidden.replaceAll(secret, '***'), text);
    }
}
const ignore = () => undefined;
function toUrl({ protocol, hostname, port, path, query = {} }) {
    const parameters = Object.entries(query).flatMap(([name, value]) => [value ?? ''].flat().map((one) => `${encode(name)}=${encode(one)}`));
    const url = new URL(`${protocol}//${hostname}${port === undefined ? '' : `:${port}`}${path}`);
    url.search = parameters.join('&');
    return url;
}
/** As the signature encodes (SigV4, "canonical query string"): all but the unreserved characters of RFC 3986. */
function encode(text) {
    return encodeURIComponent(text).replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
}
async function readText(chunks) {
    const parts = [];
    let sizeBytes = 0;
    for await (const chunk of chunks) {
        parts.push(chunk);
        sizeBytes += chunk.length;
        if (sizeBytes > maxAnswerBytes)
            break;
    }
    return Buffer.concat(parts).toString('utf8');
}
/** Reads an error document of S3, whoever wrote it: a proxy answers with a page of its own. */
function toAnswer({ status, headers }, text) {
    const element = (name) => status < 300 ? '' : (new RegExp(`<${name}>([^<]{1,2000})</${name}>`).exec(text)?.[1] ?? '');
    const regions = [headers['x-amz-bucket-region'], element('Region')];
    return {
        status,
        headers,
        code: (0,src_text/* clean */.uH)(element('Code'), 60),
        message: decodeEntities(element('Message')),
        region: regions.flat().find((region) => region && /^[a-z0-9-]{2,40}$/.test(region)),
    };
}
const entities = {
    quot: '"',
    apos: "'",
    lt: '<',
    gt: '>',
    amp: '&',
};
function decodeEntities(text) {
    return text.replace(/&(?:#(\d{1,6})|(\w{1,5}));/g, (entity, digits, name) => digits === undefined ? (entities[name ?? ''] ?? entity) : String.fromCodePoint(Number(digits)));
}
function describeAnswer({ status, code }) {
    return `HTTP ${status}${code && `, ${code}`}`;
}
const tlsAdvice = 'On a runner behind a TLS proxy, or with a private certificate authority, set NODE_EXTRA_CA_CERTS to its certificate file.';
const proxyAdvice = 'Check `HTTPS_PROXY` and `NO_PROXY` on the runner, and the credentials in them.';
function unreachableAdvice({ inputPrefix, endpointUrl }) {
    const inputs = endpointUrl ? `\`${inputPrefix}endpoint-url\`` : `\`${inputPrefix}region\``;
    return `Can this runner reach the storage? Check ${inputs}, its DNS and firewall, and whether it needs a proxy (\`HTTPS_PROXY\`).`;
}
/** What to do when something answers that does not speak the API of S3. */
function otherThanS3Advice({ inputPrefix }) {
    return `Is \`${inputPrefix}endpoint-url\` the address of an S3 API, and not that of a console or a login page?`;
}
const credentialCodes = new Set([
    'ExpiredToken',
    'InvalidAccessKeyId',
    'InvalidToken',
    'SignatureDoesNotMatch',
    'TokenRefreshRequired',
]);
const regionCodes = new Set([
    'AuthorizationHeaderMalformed',
    'IllegalLocationConstraintException',
    'PermanentRedirect',
    'TemporaryRedirect',
]);
/** What to do about an answer of S3 ("Error responses" in its API reference). */
function adviceFor({ status, code, region }, access) {
    const { inputPrefix, bucket } = access;
    if (credentialCodes.has(code)) {
        return 'Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN: are they whole, of one login, not expired, and of this storage?';
    }
    if (regionCodes.has(code) || (status >= 300 && status < 400)) {
        return region === undefined
            ? `Set \`${inputPrefix}region\` to the region of the bucket, now ${access.region}.`
            : `The bucket is in ${region}, not in ${access.region}: set \`${inputPrefix}region\` to ${region}.`;
    }
    if (code === 'NoSuchBucket' || (code === '' && status === 404)) {
        return `Create the bucket "${(0,src_text/* clean */.uH)(bucket, 100)}", or correct \`${inputPrefix}bucket\` or \`${inputPrefix}endpoint-url\`.`;
    }
    if (corruptionCodes.has(code)) {
        return 'Run again. If it happens again, something between this runner and the storage changes what is sent.';
    }
    if (code === 'RequestTimeTooSkewed')
        return 'Check the clock of the runner.';
    if (status === 401 || status === 403) {
        return `Allow these credentials \`s3:GetObject\` and \`s3:PutObject\` on the objects of the bucket, also in its own policy.`;
    }
    if (status >= 500 || status === 429 || status === 409) {
        return 'The storage is busy or has a problem of its own. Run again later.';
    }
    return code === ''
        ? otherThanS3Advice(access)
        : 'Check the bucket, its region and its policy; the answer of the storage tells why.';
}
/** Lines about an upload that takes its time; a short one gets none. */
function createReport(totalBytes, clock, log) {
    let loggedMs = clock.nowMs();
    return (sentBytes) => {
        if (clock.nowMs() - loggedMs < reportEveryMs)
            return;
        loggedMs = clock.nowMs();
        const percent = Math.floor((100 * sentBytes) / totalBytes);
        log.info(`Stored ${(0,units/* formatBytes */.z3)(sentBytes)} of ${(0,units/* formatBytes */.z3)(totalBytes)} (${percent} %)`);
    };
}

;// CONCATENATED MODULE: ./src/mirror.ts
/** The mirror: the archive kept on object storage under its own hash, where pods find it when the link has long expired. */



/** The URL under which pods find an archive, below a base URL that includes the prefix. */
function mirrorUrl(baseUrl, sha256) {
    return `${baseUrl.href.replace(/\/+$/, '')}/${objectName(sha256)}`;
}
function objectName(sha256) {
    return `${sha256}.tar.gz`;
}
/**
 * Completes a mirror with what the usual AWS variables say, see {@link storeAccess}.
 *
 * @throws InvalidInputs with every problem found, each with its fix; nothing was sent
 */
function mirrorAccess(target, environment) {
    const access = storeAccess({ ...target, inputPrefix: 'mirror-' }, environment);
    return { ...access, prefix: target.prefix };
}
/** The most that one PutObject may carry (Amazon S3 user guide, "Uploading objects"). */
const longestPutBytes = 5 * 1024 ** 3;
/**
 * Stores the archive as `<prefix>/<sha256>.tar.gz`, unless it is there already. What is there is never
 * overwritten, and nothing is removed.
 *
 * @throws Failure `storage-failed` with what the storage said, `timeout`, `disk`, or the reason of the signal
 */
async function mirrorArchive(request, dependencies) {
    const { access, archiveFile, sizeBytes, sha256 } = request;
    const { log } = dependencies;
    const parts = access.prefix.split('/').filter((part) => part !== '');
    const key = [...parts, objectName(sha256)].join('/');
    const place = describeObject(access, key);
    const size = (0,units/* formatBytes */.z3)(sizeBytes);
    if (sizeBytes > longestPutBytes) {
        const limit = (0,units/* formatBytes */.z3)(longestPutBytes);
        const what = `The archive is too large for the mirror: it has ${size}, and ${limit} is the most that S3 stores at once.`;
        const advice = 'Leave the mirror out, or upload the archive in parts in a step of your own.';
        throw new errors/* Failure */.HR('storage-failed', what, { advice });
    }
    const store = await openStore(access, dependencies);
    const found = await store.look(key);
    if (found.status === 200)
        return alreadyThere(found);
    // Without s3:ListBucket a missing object is forbidden, and no answer to HEAD gives a reason: the upload gets one.
    const isAbsent = found.status === 404;
    if (!isAbsent)
        log.debug(`HTTP ${found.status} on looking for ${place}; the upload will tell.`);
    const upload = { key, file: archiveFile, sizeBytes, sha256, ...kept };
    let stored = await store.put({ ...upload, onlyIfAbsent: true });
    if (isAbsent && (stored.status === 501 || stored.code === 'NotImplemented')) {
        log.debug('This storage knows no conditional upload. Nothing was there a moment ago.');
        stored = await store.put({ ...upload, onlyIfAbsent: false });
    }
    // Another run was faster, or looking was forbidden.
    if (stored.status === 412)
        return alreadyThere(await store.look(key));
    if (stored.status !== 200)
        throw store.refusal('store', key, stored);
    if (stored.headers.etag === undefined) {
        const what = `Could not store ${place}: HTTP 200 came without an ETag, and so not from S3.`;
        throw new errors/* Failure */.HR('storage-failed', what, { advice: otherThanS3Advice(access) });
    }
    log.info(`Mirrored ${size} to ${place}`);
    return { uploaded: true };
    function alreadyThere({ status, headers }) {
        const thereBytes = headers['content-length'];
        if (status !== 200) {
            log.debug(`HTTP ${status} on looking at ${place}: its size stays unknown.`);
        }
        else if (thereBytes !== sizeBytes.toString()) {
            const what = `${place} is there, but it is not the archive: it has ${thereBytes ?? 'an unknown number of'} bytes instead of ${sizeBytes}.`;
            const advice = `What is there is never overwritten. Remove it, or choose another \`mirror-prefix\`. ${otherThanS3Advice(access)}`;
            throw new errors/* Failure */.HR('storage-failed', what, { advice });
        }
        log.info(`Already mirrored: ${place} (${size})`);
        return { uploaded: false };
    }
}
/** A name that holds the hash of its content is good for ever. */
const kept = {
    contentType: 'application/gzip',
    cacheControl: 'public, max-age=31536000, immutable',
};


/***/ })

};
