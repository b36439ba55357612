export const id = 538;
export const ids = [538];
export const modules = {

/***/ 4473:
/***/ ((__unused_webpack_module, __webpack_exports__, __webpack_require__) => {

/* harmony export */ __webpack_require__.d(__webpack_exports__, {
/* harmony export */   Bd: () => (/* binding */ createGzipCheck),
/* harmony export */   l1: () => (/* binding */ unpack)
/* harmony export */ });
/* unused harmony export defaultLimits */
/* harmony import */ var node_path__WEBPACK_IMPORTED_MODULE_0__ = __webpack_require__(6760);
/* harmony import */ var node_path__WEBPACK_IMPORTED_MODULE_0___default = /*#__PURE__*/__webpack_require__.n(node_path__WEBPACK_IMPORTED_MODULE_0__);
/* harmony import */ var node_stream__WEBPACK_IMPORTED_MODULE_1__ = __webpack_require__(7075);
/* harmony import */ var node_stream__WEBPACK_IMPORTED_MODULE_1___default = /*#__PURE__*/__webpack_require__.n(node_stream__WEBPACK_IMPORTED_MODULE_1__);
/* harmony import */ var node_stream_promises__WEBPACK_IMPORTED_MODULE_2__ = __webpack_require__(6466);
/* harmony import */ var node_stream_promises__WEBPACK_IMPORTED_MODULE_2___default = /*#__PURE__*/__webpack_require__.n(node_stream_promises__WEBPACK_IMPORTED_MODULE_2__);
/* harmony import */ var node_zlib__WEBPACK_IMPORTED_MODULE_3__ = __webpack_require__(8522);
/* harmony import */ var node_zlib__WEBPACK_IMPORTED_MODULE_3___default = /*#__PURE__*/__webpack_require__.n(node_zlib__WEBPACK_IMPORTED_MODULE_3__);
/* harmony import */ var tar_stream__WEBPACK_IMPORTED_MODULE_4__ = __webpack_require__(6118);
/* harmony import */ var _errors_js__WEBPACK_IMPORTED_MODULE_5__ = __webpack_require__(3916);
/* harmony import */ var _text_js__WEBPACK_IMPORTED_MODULE_6__ = __webpack_require__(8992);
/* harmony import */ var _units_js__WEBPACK_IMPORTED_MODULE_7__ = __webpack_require__(1996);
/**
 * Unpacking the archive: a static site has regular files and directories, and nothing else may come out of
 * it. Parsing is tar-stream's; what is allowed, and the writing, is ours.
 */








/** Fixed, and named in the error; a documentation site comes nowhere near them. */
const defaultLimits = {
    entries: 250_000,
    unpackedBytes: 8 * 1024 ** 3,
    /** Bytes out for each byte in, once `ratioFromBytes` are out. */
    ratio: 200,
    ratioFromBytes: 10 * 1024 ** 2,
};
const maxPathBytes = 1_024;
const maxPathParts = 64;
const maxNameBytes = 255;
const outputChunkBytes = 256 * 1024;
/** What zlib may unpack ahead in its thread while files are written. */
const aheadBytes = 4 * outputChunkBytes;
/**
 * Unpacks a `.tar.gz` into a new directory.
 *
 * @param archiveBytes its size, for the ratio
 * @param directory must not exist; after a failure it is left half filled
 * @throws Failure `unsafe-archive` naming the entry, `integrity`, `disk`, `timeout`, or the reason of the signal
 */
async function unpack(archiveFile, archiveBytes, directory, dependencies) {
    const { disk, clock, deadline, limits = defaultLimits } = dependencies;
    const late = new AbortController();
    const signal = AbortSignal.any([dependencies.signal, late.signal]);
    const admit = createRules(dependencies);
    const parser = (0,tar_stream__WEBPACK_IMPORTED_MODULE_4__.extract)();
    const made = new Set();
    let openFile;
    let fileCount = 0;
    let sizeBytes = 0;
    parser.on('entry', (header, body, next) => {
        // Thrown errors would be lost in the parser: whatever fails here ends it.
        const attempt = (work) => {
            try {
                work();
            }
            catch (error) {
                parser.destroy(error);
            }
        };
        body.on('error', () => { }); // the parser reports the same
        attempt(() => {
            const { parts, isFile } = admit(header);
            if (!isFile) {
                makeDirectory(node_path__WEBPACK_IMPORTED_MODULE_0___default().join(directory, ...parts));
            }
            else {
                const file = node_path__WEBPACK_IMPORTED_MODULE_0___default().join(directory, ...parts);
                makeDirectory(node_path__WEBPACK_IMPORTED_MODULE_0___default().dirname(file));
                openFile = disk.create(file, 0o644);
                fileCount += 1;
                sizeBytes += header.size;
            }
            body.on('data', (chunk) => {
                attempt(() => openFile?.write(chunk));
            });
            body.on('end', () => {
                attempt(() => openFile?.close());
                openFile = undefined;
                next();
            });
        });
    });
    makeDirectory(directory);
    const stopTimer = clock.timer(deadline.remainingMs(), () => {
        const what = 'The time of this step was over before the archive was unpacked.';
        late.abort(new _errors_js__WEBPACK_IMPORTED_MODULE_5__/* .Failure */ .HR('timeout', what));
    });
    try {
        const input = disk.read(archiveFile);
        const gunzip = (0,node_zlib__WEBPACK_IMPORTED_MODULE_3__.createGunzip)({ chunkSize: outputChunkBytes });
        await (0,node_stream_promises__WEBPACK_IMPORTED_MODULE_2__.pipeline)(input, gunzip, createGuard(limits, archiveBytes), parser, { signal });
        assertReadToEnd(gunzip.bytesWritten, archiveBytes);
    }
    catch (error) {
        signal.throwIfAborted();
        throw error instanceof _errors_js__WEBPACK_IMPORTED_MODULE_5__/* .Failure */ .HR ? error : broken(error);
    }
    finally {
        stopTimer();
        openFile?.close();
    }
    if (fileCount === 0)
        throw new _errors_js__WEBPACK_IMPORTED_MODULE_5__/* .Failure */ .HR('integrity', 'The archive holds no file.');
    return { fileCount, sizeBytes };
    function makeDirectory(target) {
        if (made.has(target))
            return;
        disk.makeDirectory(target);
        made.add(target);
    }
}
/** Node stops in silence at a zero byte behind the end of a gzip stream: what follows was not read. */
function assertReadToEnd(readBytes, archiveBytes) {
    if (readBytes !== archiveBytes)
        throw broken(new Error('something follows behind its end'));
}
/** Each way to the thread of zlib and back costs as much as many kilobytes of work. */
const checkedBatchBytes = 512 * 1024;
const checkedChunkBytes = 1024 * 1024;
/** Begins a check of the archive's checksums while it is downloaded; unpacking checks them by itself. */
function createGzipCheck() {
    const gunzip = (0,node_zlib__WEBPACK_IMPORTED_MODULE_3__.createGunzip)({ chunkSize: checkedChunkBytes });
    gunzip.on('data', (piece) => {
        // zlib takes a new buffer when one is full; the full one is given back now, not left to the collector.
        const isFull = piece.byteOffset + piece.length === piece.buffer.byteLength;
        if (isFull)
            piece.buffer.transfer(0);
    });
    const verdict = (0,node_stream_promises__WEBPACK_IMPORTED_MODULE_2__.finished)(gunzip);
    verdict.catch(() => { }); // told by finish
    // One batch is filled while the other is read.
    let [filling, reading] = [
        Buffer.allocUnsafe(checkedBatchBytes),
        Buffer.allocUnsafe(checkedBatchBytes),
    ];
    let filledBytes = 0;
    let addedBytes = 0;
    let written = Promise.resolve();
    async function pass() {
        await written;
        const batch = filling.subarray(0, filledBytes);
        // The callback comes in any case, also when the stream is broken.
        written = new Promise((resolve) => gunzip.write(batch, () => {
            resolve();
        }));
        [filling, reading] = [reading, filling];
        filledBytes = 0;
    }
    async function fill(chunk) {
        let rest = chunk;
        while (filledBytes + rest.length > checkedBatchBytes) {
            const room = checkedBatchBytes - filledBytes;
            filling.set(rest.subarray(0, room), filledBytes);
            filledBytes += room;
            rest = rest.subarray(room);
            await pass();
        }
        filling.set(rest, filledBytes);
        filledBytes += rest.length;
    }
    return {
        add(chunk) {
            addedBytes += chunk.length;
            if (gunzip.destroyed)
                return undefined;
            if (filledBytes + chunk.length > checkedBatchBytes)
                return fill(chunk);
            filling.set(chunk, filledBytes);
            filledBytes += chunk.length;
            return undefined;
        },
        async finish() {
            await pass();
            gunzip.end();
            await verdict.catch((error) => {
                throw broken(error);
            });
            assertReadToEnd(gunzip.bytesWritten, addedBytes);
        },
        stop() {
            gunzip.destroy();
        },
    };
}
function refusal(name, why) {
    return new _errors_js__WEBPACK_IMPORTED_MODULE_5__/* .Failure */ .HR('unsafe-archive', `The archive was refused at "${(0,_text_js__WEBPACK_IMPORTED_MODULE_6__/* .clean */ .uH)(name, 200)}": ${why}.`);
}
function broken(error) {
    // The parser's first sentence; the next one guesses.
    const [reason = ''] = (0,_text_js__WEBPACK_IMPORTED_MODULE_6__/* .clean */ .uH)(Error.isError(error) ? error.message : '', 200).split(/[.?!](?:\s|$)/);
    return new _errors_js__WEBPACK_IMPORTED_MODULE_5__/* .Failure */ .HR('integrity', `The archive cannot be read: ${reason}.`, { cause: error });
}
/** Windows keeps these names for devices, with any extension ("Naming Files", Microsoft). */
const deviceName = /^(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\.|$)/i;
/**
 * The rules of what may be unpacked, over the entries of one archive. Judges by the header alone, before a byte of the body is read.
 */
function createRules({ platform, warn, limits = defaultLimits, }) {
    // What was seen, by its name on a file system that ignores case and Unicode form.
    const seen = new Map();
    let entryCount = 0;
    let unpackedBytes = 0;
    let warned = false;
    return (header) => {
        const { name, size } = header;
        // The parser's types know no other, but what it does not know is null.
        const type = header.type;
        entryCount += 1;
        if (entryCount > limits.entries)
            throw tooMany(name);
        // The parser lets some sizes through that are none, and waits for ever for such a body.
        if (!Number.isSafeInteger(size) || size < 0)
            throw refusal(name, 'its size is not a number');
        // Old archives mark a directory by its name alone.
        const isFile = type === 'file' && !(size === 0 && name.endsWith('/'));
        if (type !== 'file' && type !== 'directory') {
            throw refusal(name, `it is neither a file nor a directory (${type ?? 'of unknown type'})`);
        }
        // The parser neither skips nor delivers the body of a directory, but takes it for further entries.
        if (!isFile && size > 0)
            throw refusal(name, 'it is a directory with a content');
        const extended = Object.keys(header.pax ?? {});
        if (extended.some((key) => key.startsWith('GNU.sparse.'))) {
            throw refusal(name, 'it is a sparse file');
        }
        // Only for more than 8 GiB; elsewhere a way to make two programs see two archives.
        if (extended.includes('size'))
            throw refusal(name, 'its size is given twice');
        unpackedBytes += size;
        if (unpackedBytes > limits.unpackedBytes) {
            throw refusal(name, `the archive holds more than ${(0,_units_js__WEBPACK_IMPORTED_MODULE_7__/* .formatBytes */ .z3)(limits.unpackedBytes)}`);
        }
        const parts = toParts(name, isFile);
        const portable = parts.every(isPortable);
        if (!portable && platform === 'win32')
            throw refusal(name, 'Windows cannot hold this name');
        if (!portable && !warned) {
            warned = true;
            warn(`The archive has names that Windows cannot hold, such as "${(0,_text_js__WEBPACK_IMPORTED_MODULE_6__/* .clean */ .uH)(name, 200)}".`);
        }
        register(name, parts, isFile);
        return { parts, isFile };
    };
    function tooMany(name) {
        return refusal(name, `it has more than ${limits.entries} entries`);
    }
    /** Two names for one place, or a file where a directory is needed, would overwrite in silence. */
    function register(name, parts, isFile) {
        parts.forEach((_part, index) => {
            const spelling = parts.slice(0, index + 1).join('/');
            const place = spelling.normalize('NFC').toLowerCase();
            const before = seen.get(place);
            const isLeafFile = isFile && index === parts.length - 1;
            if (before && (isLeafFile || before.isFile)) {
                throw refusal(name, `"${(0,_text_js__WEBPACK_IMPORTED_MODULE_6__/* .clean */ .uH)(before.spelling, 200)}" stands at the same place`);
            }
            if (before && before.spelling !== spelling) {
                throw refusal(name, `it differs only in case or Unicode form from "${(0,_text_js__WEBPACK_IMPORTED_MODULE_6__/* .clean */ .uH)(before.spelling, 200)}"`);
            }
            if (!before)
                seen.set(place, { spelling, isFile: isLeafFile });
            // Directories that no entry names are made all the same.
            if (seen.size > limits.entries)
                throw tooMany(name);
        });
    }
}
/** The parts of a relative path; `./` at the front and a slash at the end of a directory are common and fine. */
function toParts(name, isFile) {
    // eslint-disable-next-line no-control-regex
    if (/[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/.test(name)) {
        throw refusal(name, 'its name has a control character');
    }
    if (name.includes('\ufffd'))
        throw refusal(name, 'its name is not valid UTF-8');
    if (/^(?:[/\\]|[a-z]:)/i.test(name))
        throw refusal(name, 'its path is absolute');
    if (name.includes('\\'))
        throw refusal(name, 'its name has a backslash');
    if (Buffer.byteLength(name) > maxPathBytes) {
        throw refusal(name, `its path is longer than ${maxPathBytes} bytes`);
    }
    const parts = name.replace(/^(?:\.\/+)+/, '').split('/');
    if (!isFile && parts.at(-1) === '')
        parts.pop();
    if (!isFile && parts.length === 1 && parts[0] === '.')
        return [];
    if (parts.length > maxPathParts) {
        throw refusal(name, `its path has more than ${maxPathParts} parts`);
    }
    for (const part of parts) {
        if (part === '..')
            throw refusal(name, 'its path leads out of the archive');
        if (part === '' || part === '.')
            throw refusal(name, 'its path is not a plain one');
        if (Buffer.byteLength(part) > maxNameBytes) {
            throw refusal(name, `a part of its path is longer than ${maxNameBytes} bytes`);
        }
    }
    return parts;
}
function isPortable(part) {
    return !/[<>:"|?*]|[. ]$/.test(part) && !deviceName.test(part);
}
const blockBytes = 512;
/**
 * Watches the unpacked stream for what the parser does not: a bomb by its ratio, and whatever follows the
 * end of the archive (two blocks of zeros), which some programs read on and others do not.
 *
 */
function createGuard(limits, archiveBytes) {
    let bytesOut = 0;
    let skipBytes = 0;
    let zeroBlocks = 0;
    let rest = Buffer.alloc(0);
    return new node_stream__WEBPACK_IMPORTED_MODULE_1__.Transform({
        highWaterMark: aheadBytes,
        transform(chunk, _encoding, done) {
            bytesOut += chunk.length;
            try {
                if (bytesOut > limits.ratioFromBytes && bytesOut > limits.ratio * archiveBytes) {
                    throw new _errors_js__WEBPACK_IMPORTED_MODULE_5__/* .Failure */ .HR('unsafe-archive', `The archive was refused: it unpacks to more than ${limits.ratio} times its size.`);
                }
                follow(chunk);
                done(null, chunk);
            }
            catch (error) {
                done(error);
            }
        },
    });
    /** Goes from header to header; bodies are skipped by their size. */
    function follow(chunk) {
        let position = 0;
        while (position < chunk.length) {
            if (skipBytes > 0) {
                const step = Math.min(skipBytes, chunk.length - position);
                skipBytes -= step;
                position += step;
                continue;
            }
            const missing = blockBytes - rest.length;
            const piece = chunk.subarray(position, position + missing);
            position += piece.length;
            rest = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
            if (rest.length < blockBytes)
                return;
            readHeader(rest);
            rest = Buffer.alloc(0);
        }
    }
    function readHeader(block) {
        if (block.every((byte) => byte === 0)) {
            zeroBlocks += 1;
            return;
        }
        if (zeroBlocks > 0) {
            throw new _errors_js__WEBPACK_IMPORTED_MODULE_5__/* .Failure */ .HR('unsafe-archive', 'The archive was refused: something follows after its end, which programs read differently.');
        }
        const isDirectory = block[156] === 0x35;
        skipBytes = isDirectory ? 0 : Math.ceil(readSize(block) / blockBytes) * blockBytes;
    }
}
/** The size field of a tar header: octal digits, or base 256 when its first bit is set (GNU). */
function readSize(block) {
    if (((block[124] ?? 0) & 0x80) !== 0)
        return block.readUIntBE(130, 6);
    const digits = /^[ \0]*([0-7]*)/.exec(block.toString('latin1', 124, 136))?.[1] ?? '';
    return digits === '' ? 0 : Number.parseInt(digits, 8);
}


/***/ }),

/***/ 5538:
/***/ ((__unused_webpack_module, __webpack_exports__, __webpack_require__) => {

/* harmony export */ __webpack_require__.d(__webpack_exports__, {
/* harmony export */   createVerifier: () => (/* binding */ createVerifier)
/* harmony export */ });
/* unused harmony export pageCandidates */
/* harmony import */ var node_crypto__WEBPACK_IMPORTED_MODULE_0__ = __webpack_require__(7598);
/* harmony import */ var node_crypto__WEBPACK_IMPORTED_MODULE_0___default = /*#__PURE__*/__webpack_require__.n(node_crypto__WEBPACK_IMPORTED_MODULE_0__);
/* harmony import */ var node_path__WEBPACK_IMPORTED_MODULE_1__ = __webpack_require__(6760);
/* harmony import */ var node_path__WEBPACK_IMPORTED_MODULE_1___default = /*#__PURE__*/__webpack_require__.n(node_path__WEBPACK_IMPORTED_MODULE_1__);
/* harmony import */ var _archive_js__WEBPACK_IMPORTED_MODULE_2__ = __webpack_require__(4473);
/* harmony import */ var _clock_js__WEBPACK_IMPORTED_MODULE_3__ = __webpack_require__(9373);
/* harmony import */ var _errors_js__WEBPACK_IMPORTED_MODULE_4__ = __webpack_require__(3916);
/* harmony import */ var _link_js__WEBPACK_IMPORTED_MODULE_5__ = __webpack_require__(3299);
/* harmony import */ var _network_js__WEBPACK_IMPORTED_MODULE_6__ = __webpack_require__(9473);
/* harmony import */ var _poll_js__WEBPACK_IMPORTED_MODULE_8__ = __webpack_require__(9810);
/* harmony import */ var _text_js__WEBPACK_IMPORTED_MODULE_9__ = __webpack_require__(8992);
/* harmony import */ var _units_js__WEBPACK_IMPORTED_MODULE_7__ = __webpack_require__(1996);
/** Verifying a deployment: one page of the site, as visitors get it, must become that of the archive. */










const maxRedirects = 5;
/** A page that takes longer is looked at again. */
const maxLookMs = 15_000;
const maxPageBytes = 20_000_000;
/** Where a title stands, if there is one. */
const headBytes = 64 * 1024;
const longestSilenceMs = 60_000;
/**
 * Finds the page of a URL in the archive, and prepares to look for it on the site. Nothing is sent yet.
 *
 * @throws Failure `config` when the archive has no such page, with the paths that were looked for
 */
async function createVerifier(request, dependencies) {
    const { url, timeoutMs, timeoutInput } = request;
    const { storage, clock, log, random, signal } = dependencies;
    const shown = (0,_link_js__WEBPACK_IMPORTED_MODULE_5__/* .describeLink */ .Ex)(url);
    const page = await findPage(request, dependencies);
    let seenBefore;
    return {
        async before() {
            seenBefore = await look(Math.min(maxLookMs, timeoutMs));
            if (matches(seenBefore)) {
                log.info(`${shown} is ${describePage(page)} already: after the deployment it will prove only that the site can be reached.`);
                return;
            }
            log.details(`${shown} is to become ${describePage(page)}`, [
                `Before the deployment: ${seenBefore.what}`,
            ]);
        },
        after,
    };
    async function after() {
        const startedMs = clock.nowMs();
        const deadline = (0,_clock_js__WEBPACK_IMPORTED_MODULE_3__/* .deadlineIn */ ._5)(timeoutMs, clock);
        const matchedBefore = seenBefore !== undefined && matches(seenBefore);
        let logged;
        for (;;) {
            const remainingMs = deadline.remainingMs();
            const seen = await look(Math.min(maxLookMs, Math.max(remainingMs, 1_000)));
            const durationMs = clock.nowMs() - startedMs;
            // Once is enough: the pods are ready and the old ones gone before anyone looks, and what a cache in
            // front hands out next no number of looks from here would tell.
            if (matches(seen)) {
                const same = matchedBefore ? '; so it was before, and the site can be reached' : '';
                log.info(`Verified after ${(0,_units_js__WEBPACK_IMPORTED_MODULE_7__/* .formatDuration */ .a3)(durationMs)}: ${shown} is ${page.name}${same}`);
                return { page: page.name, matchedBefore };
            }
            if (remainingMs <= 0)
                throw notSeen(seen);
            const nowMs = clock.nowMs();
            if (seen.what !== logged?.what || nowMs - logged.atMs >= longestSilenceMs) {
                logged = { what: seen.what, atMs: nowMs };
                log.info(`${(0,_units_js__WEBPACK_IMPORTED_MODULE_7__/* .formatElapsed */ .C7)(durationMs)} Waiting for ${page.name}: ${seen.what}`);
            }
            const delayMs = (0,_poll_js__WEBPACK_IMPORTED_MODULE_8__/* .nextPollDelayMs */ .G)(durationMs, undefined, random());
            await clock.sleep(Math.min(delayMs, deadline.remainingMs()), signal);
        }
    }
    function matches(seen) {
        return seen.sha256 === page.sha256;
    }
    function notSeen(last) {
        const isOld = last.sha256 !== undefined && last.sha256 === seenBefore?.sha256;
        const origin = isOld ? ' It is the page from before the deployment.' : '';
        const what = `${shown} did not become ${describePage(page)} within ${(0,_units_js__WEBPACK_IMPORTED_MODULE_7__/* .formatDuration */ .a3)(timeoutMs)}. Seen last: ${last.what}${last.caches ?? ''}.${origin}`;
        const longer = timeoutInput === undefined ? '' : ` If it only takes longer, raise \`${timeoutInput}\`.`;
        return new _errors_js__WEBPACK_IMPORTED_MODULE_4__/* .Failure */ .HR('verify-failed', what, { advice: `${adviceFor(last, isOld)}${longer}` });
    }
    /** One look at the site, which never fails but by the signal. */
    async function look(patienceMs) {
        const patience = new AbortController();
        const stopTimer = clock.timer(patienceMs, () => {
            patience.abort();
        });
        let host = url.host;
        try {
            return await follow(AbortSignal.any([signal, patience.signal]));
        }
        catch (error) {
            signal.throwIfAborted();
            if (patience.signal.aborted) {
                const what = `no whole answer from ${(0,_text_js__WEBPACK_IMPORTED_MODULE_9__/* .clean */ .uH)(host, 100)} within ${(0,_units_js__WEBPACK_IMPORTED_MODULE_7__/* .formatDuration */ .a3)(patienceMs)}`;
                return { kind: 'fault', what };
            }
            if (!(error instanceof _network_js__WEBPACK_IMPORTED_MODULE_6__/* .NetworkFault */ .H6))
                throw error;
            return { kind: 'fault', what: `${error.message} (${(0,_text_js__WEBPACK_IMPORTED_MODULE_9__/* .clean */ .uH)(host, 100)}, ${error.code})` };
        }
        finally {
            stopTimer();
            patience.abort(); // what is left of the reply is not wanted
        }
        async function follow(within) {
            let at = url;
            for (let hops = 0;; hops += 1) {
                host = at.host;
                const reply = await storage(at, requestHeaders, within);
                const way = at.host === url.host ? '' : `, after a redirect to ${(0,_text_js__WEBPACK_IMPORTED_MODULE_9__/* .clean */ .uH)(at.host, 100)}`;
                const { status } = reply;
                if (![301, 302, 303, 307, 308].includes(status))
                    return judge(reply, way);
                const next = URL.parse(reply.headers.location ?? '', at.href);
                const problem = next ? (0,_link_js__WEBPACK_IMPORTED_MODULE_5__/* .linkProblem */ .kD)(next, anywhere) : 'it leads nowhere';
                if (!next || problem !== undefined || hops >= maxRedirects) {
                    const why = problem ?? `there are more than ${maxRedirects} in a row`;
                    const what = `HTTP ${status}, a redirect that is not followed: ${why}${way}`;
                    return { kind: 'status', status, what };
                }
                at = next;
            }
        }
    }
    async function judge(reply, way) {
        const { status, headers, chunks } = reply;
        if (status !== 200)
            return { kind: 'status', status, what: `HTTP ${status}${way}` };
        const hash = (0,node_crypto__WEBPACK_IMPORTED_MODULE_0__.createHash)('sha256');
        const head = [];
        let sizeBytes = 0;
        const mostBytes = Math.max(maxPageBytes, page.sizeBytes);
        for await (const chunk of chunks) {
            if (sizeBytes < headBytes)
                head.push(chunk);
            hash.update(chunk);
            sizeBytes += chunk.length;
            if (sizeBytes > mostBytes) {
                const what = `another page, of more than ${(0,_units_js__WEBPACK_IMPORTED_MODULE_7__/* .formatBytes */ .z3)(mostBytes)}${way}`;
                return { kind: 'page', what };
            }
        }
        const sha256 = hash.digest('hex');
        const facts = `${titleOf(head)} (${(0,_units_js__WEBPACK_IMPORTED_MODULE_7__/* .formatBytes */ .z3)(sizeBytes)}, sha256 ${shortHash(sha256)})`;
        const caches = describeCaches(headers);
        const encoding = headers['content-encoding'] ?? 'identity';
        if (encoding === 'identity') {
            return { kind: 'page', what: `another page: ${facts}${way}`, caches, sha256 };
        }
        const what = `something compressed (${(0,_text_js__WEBPACK_IMPORTED_MODULE_9__/* .clean */ .uH)(encoding, 20)}), although nobody asked for it${way}`;
        return { kind: 'page', what, caches };
    }
}
/** The site may be anywhere, also on this machine behind a port-forward; only link-local addresses are refused. */
const anywhere = new URL('http://localhost');
const requestHeaders = {
    accept: 'text/html, */*',
    // What comes is compared byte by byte.
    'accept-encoding': 'identity',
    'cache-control': 'no-cache',
};
function describePage({ name, sizeBytes, sha256 }) {
    return `${(0,_text_js__WEBPACK_IMPORTED_MODULE_9__/* .clean */ .uH)(name, 200)} of the archive (${(0,_units_js__WEBPACK_IMPORTED_MODULE_7__/* .formatBytes */ .z3)(sizeBytes)}, sha256 ${shortHash(sha256)})`;
}
function shortHash(sha256) {
    return sha256.slice(0, 12);
}
function titleOf(head) {
    const text = Buffer.concat(head).toString('utf8', 0, headBytes);
    const title = (0,_text_js__WEBPACK_IMPORTED_MODULE_9__/* .clean */ .uH)(/<title[^>]{0,200}>([^<]{1,500})/i.exec(text)?.[1] ?? '', 80);
    return title === '' ? 'without a title' : `"${title}"`;
}
function describeCaches(headers) {
    const facts = [
        ['Last-Modified', headers['last-modified']],
        ['Age', headers.age],
        ['ETag', headers.etag],
    ].flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${(0,_text_js__WEBPACK_IMPORTED_MODULE_9__/* .clean */ .uH)(value, 60)}`]));
    return facts.length === 0 ? '' : ` (${facts.join('; ')})`;
}
/** What to do about the last thing that was seen. */
function adviceFor({ kind, status = 0 }, isOld) {
    if (isOld) {
        return 'Is it the address of what was deployed, and does a cache stand in front of it? What was deployed stays.';
    }
    if (kind === 'page') {
        return 'Is it the address of this page? Where something on the way compresses pages or puts scripts into them (a CDN, an ingress), they never match: verify an address past it, or leave `verify-url` out. What was deployed stays.';
    }
    if (kind === 'fault') {
        return 'Can this runner reach the site? Check its name, certificate and firewall, and whether the runner needs a proxy (`HTTPS_PROXY`). What was deployed stays.';
    }
    if (status === 401 || status === 403) {
        return 'The page must open without a login, also for this runner. What was deployed stays.';
    }
    return 'Look at what serves this address, its ingress and its pods. What was deployed stays.';
}
/**
 * The files of an archive that a server may take for the page of a URL, best first: `/guides/start` is
 * `guides/start.html` or `guides/start/index.html`, or a file of that very name.
 *
 * @throws Failure `config` for a path that cannot be decoded
 */
function pageCandidates(url) {
    const parts = url.pathname.split('/').filter((part) => part !== '');
    const name = decodePath(parts.join('/'));
    if (name === '')
        return ['index.html'];
    if (name.endsWith('.html'))
        return [name];
    const pages = [`${name}.html`, `${name}/index.html`];
    return [...(url.pathname.endsWith('/') ? pages.reverse() : pages), name];
}
function decodePath(encoded) {
    try {
        return decodeURIComponent(encoded);
    }
    catch {
        throw new _errors_js__WEBPACK_IMPORTED_MODULE_4__/* .Failure */ .HR('config', '`verify-url` has a % that encodes nothing in its path.');
    }
}
/** The best candidate that the archive has, read without a file being written. */
async function findPage({ url, archiveFile, archiveBytes }, dependencies) {
    const candidates = pageCandidates(url);
    const pages = new Map();
    const hashing = {
        ...dependencies.disk,
        makeDirectory: () => undefined,
        create(file) {
            const name = file.split((node_path__WEBPACK_IMPORTED_MODULE_1___default().sep)).join('/').normalize('NFC');
            const wanted = candidates.find((candidate) => candidate.normalize('NFC') === name);
            if (wanted === undefined)
                return ignored;
            return hashed((sha256, sizeBytes) => pages.set(wanted, { name, sha256, sizeBytes }));
        },
    };
    // Judged by the rules for every archive; what Windows cannot hold does not matter here.
    await (0,_archive_js__WEBPACK_IMPORTED_MODULE_2__/* .unpack */ .l1)(archiveFile, archiveBytes, '', {
        ...dependencies,
        disk: hashing,
        warn: () => undefined,
        platform: 'linux',
    });
    const found = candidates.map((candidate) => pages.get(candidate)).find((page) => page);
    if (found)
        return found;
    const names = candidates.map((candidate) => (0,_text_js__WEBPACK_IMPORTED_MODULE_9__/* .clean */ .uH)(candidate, 200)).join(' nor ');
    const what = `The archive has no page for \`verify-url\` (${(0,_link_js__WEBPACK_IMPORTED_MODULE_5__/* .describeLink */ .Ex)(url)}): neither ${names} is in it.`;
    throw new _errors_js__WEBPACK_IMPORTED_MODULE_4__/* .Failure */ .HR('config', what, {
        advice: 'Name a page that the export holds, by the path that it has there. Nothing was deployed.',
    });
}
const ignored = {
    write: () => undefined,
    restart: () => undefined,
    close: () => undefined,
};
function hashed(onEnd) {
    const hash = (0,node_crypto__WEBPACK_IMPORTED_MODULE_0__.createHash)('sha256');
    let sizeBytes = 0;
    let isOpen = true;
    return {
        ...ignored,
        write(chunk) {
            hash.update(chunk);
            sizeBytes += chunk.length;
        },
        close() {
            if (!isOpen)
                return;
            isOpen = false;
            onEnd(hash.digest('hex'), sizeBytes);
        },
    };
}


/***/ })

};
