export const id = 891;
export const ids = [891,290];
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

/***/ 7891:
/***/ ((__unused_webpack_module, __webpack_exports__, __webpack_require__) => {

__webpack_require__.r(__webpack_exports__);
/* harmony export */ __webpack_require__.d(__webpack_exports__, {
/* harmony export */   deliver: () => (/* binding */ deliver),
/* harmony export */   needsArchive: () => (/* binding */ needsArchive)
/* harmony export */ });
/* harmony import */ var node_crypto__WEBPACK_IMPORTED_MODULE_0__ = __webpack_require__(7598);
/* harmony import */ var node_crypto__WEBPACK_IMPORTED_MODULE_0___default = /*#__PURE__*/__webpack_require__.n(node_crypto__WEBPACK_IMPORTED_MODULE_0__);
/* harmony import */ var node_path__WEBPACK_IMPORTED_MODULE_1__ = __webpack_require__(6760);
/* harmony import */ var node_path__WEBPACK_IMPORTED_MODULE_1___default = /*#__PURE__*/__webpack_require__.n(node_path__WEBPACK_IMPORTED_MODULE_1__);
/* harmony import */ var _archive_js__WEBPACK_IMPORTED_MODULE_2__ = __webpack_require__(4473);
/* harmony import */ var _bundle_js__WEBPACK_IMPORTED_MODULE_3__ = __webpack_require__(7827);
/* harmony import */ var _chart_values_js__WEBPACK_IMPORTED_MODULE_9__ = __webpack_require__(638);
/* harmony import */ var _disk_js__WEBPACK_IMPORTED_MODULE_4__ = __webpack_require__(7310);
/* harmony import */ var _download_js__WEBPACK_IMPORTED_MODULE_5__ = __webpack_require__(1290);
/* harmony import */ var _errors_js__WEBPACK_IMPORTED_MODULE_6__ = __webpack_require__(3916);
/* harmony import */ var _text_js__WEBPACK_IMPORTED_MODULE_8__ = __webpack_require__(8992);
/* harmony import */ var _units_js__WEBPACK_IMPORTED_MODULE_7__ = __webpack_require__(1996);
/** Carrying the bundle to the disk: the archive, the unpacked site, the chart values, in one download. */










/** Whether the archive itself is needed, or only its link. */
function needsArchive({ bundleFile, siteDirectory, chartValues }) {
    return (bundleFile !== undefined ||
        siteDirectory !== undefined ||
        chartValues?.bundleUrl?.includes('{sha256}') === true);
}
/**
 * Delivers what was asked for. Everything is written beside its target and moved there when it is whole:
 * each target is either complete or untouched, and nothing temporary is left.
 *
 * @throws Failure, see errors.ts
 */
async function deliver(request, delivery, dependencies) {
    const { disk, log, timed } = dependencies;
    const { bundleFile, siteDirectory, chartValues } = request;
    const partial = [];
    const lifeAtStartMs = remainingLifeMs();
    try {
        if (needsArchive(request))
            await fetchArchive().catch(tellNeed);
        await renewIfSpent();
        if (chartValues)
            writeChartValues(chartValues);
    }
    finally {
        for (const leftover of partial)
            (0,_disk_js__WEBPACK_IMPORTED_MODULE_4__/* .removeQuietly */ .S2)(leftover, disk, log);
    }
    /** A long download may have used up the link that is about to be handed over. */
    async function renewIfSpent() {
        const lifeMs = remainingLifeMs();
        if (lifeMs >= _bundle_js__WEBPACK_IMPORTED_MODULE_3__/* .shortLifeMs */ .h || lifeMs >= lifeAtStartMs / 2)
            return;
        log.details('The link has come near its end; asking for a fresh one', []);
        await dependencies.renewLink();
    }
    function remainingLifeMs() {
        return dependencies.currentBundle().expiresAtMs - dependencies.serverWallMs();
    }
    async function fetchArchive() {
        let archiveBytes = 0;
        const archive = beside(bundleFile ?? node_path__WEBPACK_IMPORTED_MODULE_1___default().join(dependencies.temporaryDirectory, 'bundle.tar.gz'));
        const file = disk.create(archive, 0o644);
        try {
            const { sizeBytes, sha256 } = await timed('download', () => (0,_download_js__WEBPACK_IMPORTED_MODULE_5__.download)(dependencies.currentBundle(), file, { checkGzip: siteDirectory === undefined }, dependencies));
            archiveBytes = sizeBytes;
            delivery.sizeBytes = sizeBytes;
            delivery.bundleSha256 = sha256;
            log.info(`Downloaded ${(0,_units_js__WEBPACK_IMPORTED_MODULE_7__/* .formatBytes */ .z3)(sizeBytes)}, sha256 ${sha256}`);
        }
        finally {
            file.close();
        }
        const site = siteDirectory === undefined ? undefined : beside(siteDirectory);
        if (site !== undefined) {
            const { fileCount, sizeBytes } = await timed('unpack', () => (0,_archive_js__WEBPACK_IMPORTED_MODULE_2__/* .unpack */ .l1)(archive, archiveBytes, site, {
                ...dependencies,
                warn(message) {
                    log.warning(message);
                },
            }));
            delivery.fileCount = fileCount;
            delivery.unpackedBytes = sizeBytes;
        }
        if (bundleFile !== undefined) {
            disk.move(archive, bundleFile);
            delivery.bundleFile = bundleFile;
            log.info(`Archive: ${(0,_text_js__WEBPACK_IMPORTED_MODULE_8__/* .clean */ .uH)(bundleFile)}`);
        }
        if (siteDirectory !== undefined && site !== undefined) {
            disk.move(site, siteDirectory);
            delivery.siteDirectory = siteDirectory;
            const { fileCount = 0, unpackedBytes = 0 } = delivery;
            log.info(`Site: ${(0,_text_js__WEBPACK_IMPORTED_MODULE_8__/* .clean */ .uH)(siteDirectory)} (${(0,_units_js__WEBPACK_IMPORTED_MODULE_7__/* .count */ .U9)(fileCount, 'file')}, ${(0,_units_js__WEBPACK_IMPORTED_MODULE_7__/* .formatBytes */ .z3)(unpackedBytes)})`);
        }
    }
    /** A full disk, with the room that is needed. */
    function tellNeed(error) {
        const needed = dependencies.currentBundle().sizeBytes;
        if (!(0,_disk_js__WEBPACK_IMPORTED_MODULE_4__/* .isDiskFull */ .b$)(error) || needed === undefined)
            throw error;
        const more = siteDirectory === undefined ? '' : ', and its pages more';
        const what = `${error.message} The archive needs ${(0,_units_js__WEBPACK_IMPORTED_MODULE_7__/* .formatBytes */ .z3)(needed)}${more}.`;
        throw new _errors_js__WEBPACK_IMPORTED_MODULE_6__/* .Failure */ .HR('disk', what, { cause: error });
    }
    function writeChartValues({ file, key, version, bundleUrl }) {
        const { url, expiresAtMs } = dependencies.currentBundle();
        const link = bundleUrl?.replaceAll('{sha256}', delivery.bundleSha256 ?? '') ?? url.href;
        const written = beside(file);
        (0,_disk_js__WEBPACK_IMPORTED_MODULE_4__/* .writePrivateFile */ .Pl)(written, (0,_chart_values_js__WEBPACK_IMPORTED_MODULE_9__/* .toChartValues */ .W)({ key, bundleUrl: link, version }), disk);
        disk.move(written, file);
        delivery.valuesFile = file;
        log.info(`Chart values: ${(0,_text_js__WEBPACK_IMPORTED_MODULE_8__/* .clean */ .uH)(file)}`);
        if (bundleUrl === undefined) {
            log.info(`Pods that start after ${(0,_units_js__WEBPACK_IMPORTED_MODULE_7__/* .formatUtc */ .ay)(expiresAtMs)} cannot fetch this link any more: deploy again with a fresh one, or mirror the archive (\`values-bundle-url\`).`);
        }
    }
    /** A name in the same directory, so that the move is one step; removed at the end whatever happens. */
    function beside(target) {
        const directory = node_path__WEBPACK_IMPORTED_MODULE_1___default().dirname(target);
        disk.makeDirectory(directory);
        const sibling = node_path__WEBPACK_IMPORTED_MODULE_1___default().join(directory, `.static-export-${(0,node_crypto__WEBPACK_IMPORTED_MODULE_0__.randomBytes)(4).toString('hex')}`);
        partial.push(sibling);
        disk.removeAtExit(sibling);
        return sibling;
    }
}


/***/ }),

/***/ 1290:
/***/ ((__unused_webpack_module, __webpack_exports__, __webpack_require__) => {


// EXPORTS
__webpack_require__.d(__webpack_exports__, {
  download: () => (/* binding */ download)
});

// EXTERNAL MODULE: external "node:crypto"
var external_node_crypto_ = __webpack_require__(7598);
// EXTERNAL MODULE: ./src/archive.ts
var archive = __webpack_require__(4473);
// EXTERNAL MODULE: ./src/errors.ts
var errors = __webpack_require__(3916);
// EXTERNAL MODULE: ./src/link.ts
var src_link = __webpack_require__(3299);
// EXTERNAL MODULE: ./src/outcome.ts
var outcome = __webpack_require__(4671);
// EXTERNAL MODULE: ./src/network.ts
var network = __webpack_require__(9473);
// EXTERNAL MODULE: ./src/units.ts
var units = __webpack_require__(1996);
;// CONCATENATED MODULE: ./src/patience.ts


/**
 * Begins to count at once.
 *
 * @param maxSilenceMs no byte for so long is a lost connection
 */
function createPatience(maxSilenceMs, { clock, deadline, overWords, signal }) {
    const ending = new AbortController();
    const stopDeadline = clock.timer(deadline.remainingMs(), end);
    let stopSilence = clock.timer(maxSilenceMs, end);
    return {
        signal: AbortSignal.any([signal, ending.signal]),
        get hasEnded() {
            return ending.signal.aborted;
        },
        get reason() {
            return ending.signal.reason;
        },
        renew() {
            stopSilence();
            stopSilence = clock.timer(maxSilenceMs, end);
        },
        end,
        describeEnd: (host) => deadline.remainingMs() <= 0
            ? (overWords ?? 'the time of this step (`timeout-minutes`) is over')
            : `no byte for ${(0,units/* formatDuration */.a3)(maxSilenceMs)} (${host})`,
    };
    function end(reason) {
        stopSilence();
        stopDeadline();
        ending.abort(reason);
    }
}
/** Why a download was interrupted: by our patience, or by the network. @throws the error when it is neither */
function lostConnection(error, patience, host) {
    if (patience.hasEnded) {
        return { fault: { kind: 'silence' }, code: 'timeout', reason: patience.describeEnd(host) };
    }
    if (!(error instanceof network/* NetworkFault */.H6))
        throw error;
    const { kind, code, delivered, message } = error;
    return {
        fault: { kind: 'connection', code, delivered },
        code: kind === 'tls' || kind === 'proxy' ? kind : 'network',
        reason: `${message} (${host})`,
    };
}

// EXTERNAL MODULE: ./src/retry.ts
var retry = __webpack_require__(9809);
// EXTERNAL MODULE: ./src/text.ts
var src_text = __webpack_require__(8992);
;// CONCATENATED MODULE: ./src/download.ts
/** Downloading the archive: whole, checked, and resumed where the connection was lost. */









const retryPolicy = { maxTries: 5, minPersistenceMs: 0, repeatable: true };
/** No byte for so long is a lost connection. */
const maxSilenceMs = 30_000;
const maxRedirects = 3;
const maxRenewals = 2;
/** A server that sends another archive with each reply must come to an end. */
const maxRestarts = 5;
/** A link is not used in the last moments of its life. */
const lastMomentsMs = 10_000;
const reportEveryMs = 5_000;
const maxErrorBytes = 64 * 1024;
/**
 * Downloads the archive into a new file. A lost connection is resumed with `Range` and `If-Match` (RFC 9110,
 * sections 13.1.1 and 14.2), a link that has expired or is refused is renewed, at most twice.
 *
 * @throws Failure `integrity` when the bytes are not those of the archive, `disk`, `expired`, and whatever
 *   the network ends in
 */
async function download(first, file, { checkGzip }, dependencies) {
    const { clock, log, deadline, signal } = dependencies;
    const startedMs = clock.nowMs();
    const transfer = createTransfer(file, first.sizeBytes, checkGzip);
    const progress = createReport(log, clock);
    let bundle = first;
    let renewals = 0;
    let restarts = 0;
    let tries = 0;
    let reached = 0;
    let host = first.url.host;
    try {
        for (;;) {
            const lifeMs = bundle.expiresAtMs - dependencies.serverWallMs();
            // One that was just minted is as good as it gets.
            if (transfer.requests > 0 && lifeMs < lastMomentsMs && renewals < maxRenewals) {
                await renew('The link is about to expire');
            }
            const setback = await receive();
            if (setback === undefined)
                return await transfer.finish();
            // A connection that brought something new starts the count of failures again.
            tries = transfer.sizeBytes > reached ? 1 : tries + 1;
            reached = Math.max(reached, transfer.sizeBytes);
            switch (setback.kind) {
                case 'refused':
                    if (renewals >= maxRenewals)
                        throw failure(setback);
                    await renew(`Storage refused the link (${setback.reason})`);
                    break;
                case 'restart':
                    restarts += 1;
                    if (restarts > maxRestarts) {
                        throw failure({ code: 'integrity', reason: `${setback.reason}, again and again` });
                    }
                    log.details('The download starts again from the beginning', [setback.reason]);
                    transfer.restart();
                    break;
                case 'lost':
                    await backOff(setback);
                    break;
            }
        }
    }
    finally {
        transfer.stop();
    }
    async function renew(reason) {
        renewals += 1;
        log.details(`${reason}; asking for a fresh one`, []);
        bundle = await dependencies.renewLink();
        transfer.expect(bundle.sizeBytes);
    }
    async function backOff(setback) {
        const decision = (0,retry/* afterFailedTry */.RS)(retryPolicy, {
            fault: setback.fault,
            tries,
            unknownFates: 0,
            elapsedMs: clock.nowMs() - startedMs,
            remainingMs: deadline.remainingMs(),
            random: dependencies.random(),
        });
        if (!decision.retry) {
            const ending = (0,outcome/* describeEnding */.be)(decision.why, setback.fault, deadline.remainingMs());
            throw failure({ code: setback.code, reason: setback.reason, ending });
        }
        log.details(`The download was interrupted at ${(0,units/* formatBytes */.z3)(transfer.sizeBytes)}: ${setback.reason}; it goes on in ${(0,units/* formatDuration */.a3)(decision.delayMs)}`, []);
        await clock.sleep(decision.delayMs, signal);
    }
    function failure(what) {
        const { code, reason, ending = '' } = what;
        return new errors/* Failure */.HR(code, `Could not download the archive: ${reason}.${ending}`, {
            tried: tries > 1 ? `${tries} tries in ${(0,units/* formatDuration */.a3)(clock.nowMs() - startedMs)}` : undefined,
            advice: storageAdvice[code],
        });
    }
    /** One request, and as much of the archive as it brings; undefined when that is all of it. */
    async function receive() {
        const patience = createPatience(maxSilenceMs, dependencies);
        try {
            const reply = await open(bundle.url, patience.signal);
            const setback = judge(reply, await errorCode(reply));
            if (setback)
                return setback;
            for await (const chunk of reply.chunks) {
                patience.renew();
                await transfer.add(chunk);
                progress.see(transfer.sizeBytes, bundle.sizeBytes);
            }
            if (transfer.isWhole)
                return undefined;
            // Without a length the end of the connection looks like the end of the archive.
            const fault = { kind: 'connection', code: 'ECONNRESET', delivered: true };
            return { kind: 'lost', fault, code: 'integrity', reason: `it ended too early (${host})` };
        }
        catch (error) {
            signal.throwIfAborted();
            return { kind: 'lost', ...lostConnection(error, patience, host) };
        }
        finally {
            patience.end(); // what is left of the reply is not wanted
        }
    }
    /** Follows redirects to where the rules for links allow it; there is no key in these requests to lose. */
    async function open(link, within) {
        let url = link;
        for (let hops = 0;; hops += 1) {
            host = url.host;
            const reply = await dependencies.storage(url, transfer.requestHeaders(), within);
            if (reply.status < 300 || reply.status >= 400 || reply.status === 304)
                return reply;
            const { location } = reply.headers;
            const next = location ? URL.parse(location, url.href) : null;
            const problem = next ? (0,src_link/* linkProblem */.kD)(next, dependencies.baseUrl) : 'it leads nowhere';
            if (!next || problem !== undefined || hops >= maxRedirects) {
                const why = problem ?? `there are more than ${maxRedirects} in a row`;
                throw new errors/* Failure */.HR('protocol', `Storage answered with a redirect that is not followed: ${why}.`, { advice: storageAdvice.protocol });
            }
            url = next;
        }
    }
    /** What a reply means before its body is read. */
    function judge(reply, s3Code) {
        const { status, headers } = reply;
        const reason = `HTTP ${status} from ${host}${s3Code && `, ${s3Code}`}`;
        if (status === 200)
            return transfer.begin(headers);
        if (status === 206)
            return transfer.resume(headers);
        if (status === 412 || status === 416) {
            return { kind: 'restart', reason: `the archive is not the same any more, ${reason}` };
        }
        if (status === 401 || status === 403 || (status === 400 && s3Code === 'ExpiredToken')) {
            const expired = s3Code === 'ExpiredToken' || s3Code === 'Request has expired';
            return { kind: 'refused', code: expired ? 'expired' : 'forbidden', reason };
        }
        if (status === 404)
            return { kind: 'refused', code: 'not-found', reason };
        const retryAfterMs = (0,retry/* parseRetryAfterMs */.oR)(headers['retry-after'], dependencies.serverWallMs());
        const code = codeOfStorageStatus[status] ?? (status >= 500 ? 'server' : 'protocol');
        return { kind: 'lost', fault: { kind: 'status', status, retryAfterMs }, code, reason };
    }
}
const codeOfStorageStatus = {
    408: 'server',
    425: 'server',
    429: 'rate-limited',
};
const refusedAdvice = 'The storage refused the link, also a fresh one. Is something between this runner and the storage changing requests, or is the archive gone?';
/** What to do about a storage is not what to do about the API. */
const storageAdvice = {
    forbidden: refusedAdvice,
    'not-found': refusedAdvice,
    'rate-limited': 'The storage is busy. Run again with `job-id` later.',
    network: 'Can this runner reach the storage? Check its DNS and firewall, and whether it needs a proxy (`HTTPS_PROXY`).',
    protocol: 'Is a proxy or a login page between this runner and the storage?',
    server: 'The storage has a problem of its own. Run again with `job-id` later.',
    timeout: 'Raise `timeout-minutes`, and run again with `job-id`.',
};
/** The code of an S3 error document, or its message where the code alone says little. */
async function errorCode({ status, chunks }) {
    if (status < 400)
        return '';
    let text = '';
    try {
        for await (const chunk of chunks) {
            text += Buffer.from(chunk).toString('latin1');
            if (text.length > maxErrorBytes)
                break;
        }
    }
    catch {
        // The status is what counts; its text may end where it likes.
    }
    const code = /<Code>([^<]{1,100})<\/Code>/.exec(text)?.[1] ?? '';
    const expired = code === 'AccessDenied' && /<Message>Request has expired/.test(text);
    return expired ? 'Request has expired' : (0,src_text/* clean */.uH)(code, 60);
}
/** The archive as far as it has come. */
function createTransfer(file, statedBytes, checkGzip) {
    const startCheck = () => (checkGzip ? (0,archive/* createGzipCheck */.Bd)() : undefined);
    let check = startCheck();
    let hash = (0,external_node_crypto_.createHash)('sha256');
    let sizeBytes = 0;
    let etag;
    let expectedBytes = statedBytes;
    let announcedBytes;
    let requests = 0;
    return {
        get sizeBytes() {
            return sizeBytes;
        },
        expect(bytes) {
            expectedBytes = bytes ?? expectedBytes;
        },
        get requests() {
            return requests;
        },
        get isWhole() {
            const whole = expectedBytes ?? announcedBytes;
            return whole === undefined || sizeBytes >= whole;
        },
        requestHeaders() {
            requests += 1;
            // `identity`: what comes is the archive itself, byte for byte.
            const plain = { 'accept-encoding': 'identity' };
            if (sizeBytes === 0 || etag === undefined)
                return plain;
            return { ...plain, range: `bytes=${sizeBytes}-`, 'if-match': etag };
        },
        restart() {
            file.restart();
            check?.stop();
            check = startCheck();
            hash = (0,external_node_crypto_.createHash)('sha256');
            sizeBytes = 0;
            etag = undefined;
        },
        /** A whole archive begins. */
        begin(headers) {
            if (sizeBytes > 0)
                this.restart();
            // A weak tag may stay the same when bytes change (RFC 9110, section 8.8.1).
            etag = headers.etag?.startsWith('"') ? headers.etag : undefined;
            announcedBytes = readLength(headers['content-length']);
            if (announcedBytes === undefined && expectedBytes === undefined) {
                throw integrity('neither the service nor the storage says how long it is');
            }
            return undefined;
        },
        /** The rest of the archive begins, if it is what was asked for. */
        resume(headers) {
            const range = /^bytes (\d{1,15})-\d{1,15}\/(\d{1,15}|\*)$/.exec(headers['content-range'] ?? '');
            const same = headers.etag === undefined || headers.etag === etag;
            const total = Number(range?.[2]);
            const sameSize = Number.isNaN(total) || total === (expectedBytes ?? total);
            if (sizeBytes > 0 && same && sameSize && Number(range?.[1]) === sizeBytes)
                return undefined;
            return {
                kind: 'restart',
                reason: 'the storage answered with another part than was asked for',
            };
        },
        /** Resolves when there is room for more. */
        add(chunk) {
            if (sizeBytes === 0) {
                assertGzip(chunk);
                assertSameSize(expectedBytes, announcedBytes);
            }
            sizeBytes += chunk.length;
            const most = expectedBytes ?? announcedBytes;
            if (most !== undefined && sizeBytes > most)
                throw integrity(`it is longer than ${most} bytes`);
            hash.update(chunk);
            file.write(chunk);
            return check?.add(chunk);
        },
        stop() {
            check?.stop();
        },
        async finish() {
            const whole = expectedBytes ?? announcedBytes;
            if (sizeBytes !== whole)
                throw integrity(`it has ${sizeBytes} of ${whole ?? 0} bytes`);
            await check?.finish();
            file.close();
            return { sizeBytes, sha256: hash.digest('hex') };
        },
    };
}
function integrity(why) {
    return new errors/* Failure */.HR('integrity', `The downloaded archive is not whole: ${why}.`);
}
/** The first bytes of every gzip file (RFC 1952, section 2.3.1). */
function assertGzip(chunk) {
    if (chunk[0] === 0x1f && (chunk[1] === 0x8b || chunk.length === 1))
        return;
    const start = Buffer.from(chunk.subarray(0, 200)).toString('latin1').trimStart().toLowerCase();
    const what = /^<(?:!doctype html|html)/.test(start)
        ? 'an HTML page'
        : start.startsWith('<')
            ? 'an XML document'
            : 'something else';
    throw new errors/* Failure */.HR('integrity', `The storage sent no gzip archive, but ${what}.`);
}
function assertSameSize(statedBytes, announcedBytes) {
    if (statedBytes === undefined || announcedBytes === undefined)
        return;
    if (statedBytes === announcedBytes)
        return;
    throw integrity(`the service speaks of ${statedBytes} bytes, the storage of ${announcedBytes}`);
}
function readLength(value) {
    return value !== undefined && /^\d{1,15}$/.test(value) ? Number(value) : undefined;
}
/** Lines about a download that takes its time; a short one gets none. */
function createReport(log, clock) {
    const startedMs = clock.nowMs();
    let loggedMs = startedMs;
    return {
        see(sizeBytes, totalBytes) {
            const nowMs = clock.nowMs();
            if (nowMs - loggedMs < reportEveryMs)
                return;
            loggedMs = nowMs;
            const bytesPerMs = sizeBytes / (nowMs - startedMs);
            const facts = [
                totalBytes === undefined
                    ? (0,units/* formatBytes */.z3)(sizeBytes)
                    : `${(0,units/* formatBytes */.z3)(sizeBytes)} of ${(0,units/* formatBytes */.z3)(totalBytes)} (${Math.floor((100 * sizeBytes) / totalBytes)} %)`,
                `${(0,units/* formatBytes */.z3)(bytesPerMs * 1000)}/s`,
                ...(totalBytes === undefined
                    ? []
                    : [`about ${(0,units/* formatDuration */.a3)((totalBytes - sizeBytes) / bytesPerMs)} left`]),
            ];
            log.info(`Downloaded ${facts.join(' · ')}`);
        },
    };
}


/***/ })

};
