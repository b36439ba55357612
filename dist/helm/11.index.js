export const id = 11;
export const ids = [11];
export const modules = {

/***/ 9011:
/***/ ((__unused_webpack_module, __webpack_exports__, __webpack_require__) => {

__webpack_require__.r(__webpack_exports__);
/* harmony export */ __webpack_require__.d(__webpack_exports__, {
/* harmony export */   agentJob: () => (/* binding */ agentJob),
/* harmony export */   bundle: () => (/* binding */ bundle),
/* harmony export */   exportJob: () => (/* binding */ exportJob),
/* harmony export */   startedExportJob: () => (/* binding */ startedExportJob)
/* harmony export */ });
/* harmony import */ var zod_mini__WEBPACK_IMPORTED_MODULE_0__ = __webpack_require__(8532);
/* harmony import */ var zod_mini__WEBPACK_IMPORTED_MODULE_1__ = __webpack_require__(252);
/* harmony import */ var zod_mini__WEBPACK_IMPORTED_MODULE_2__ = __webpack_require__(4539);
/**
 * The shapes of what the service sends (admin-api.md, section 2). Only what the story cannot go on without
 * is demanded; unknown fields are ignored, and what may be absent or odd is read where it is used.
 * Loaded after the first reply: zod would delay the first request. Its small variant does the same with half the
 * code in the bundle.
 */

// Compiling a schema pays for thousands of values; a run reads about a hundred.
zod_mini__WEBPACK_IMPORTED_MODULE_0__/* .config */ .$W({ jitless: true, ...zod_mini__WEBPACK_IMPORTED_MODULE_1__/* ["default"] */ .A() });
const exportJob = zod_mini__WEBPACK_IMPORTED_MODULE_2__/* .object */ .Ikc({
    jobId: zod_mini__WEBPACK_IMPORTED_MODULE_2__/* .optional */ .lqM(zod_mini__WEBPACK_IMPORTED_MODULE_2__/* .unknown */ .L5J()),
    status: zod_mini__WEBPACK_IMPORTED_MODULE_2__/* .string */ .YjP(),
    progress: zod_mini__WEBPACK_IMPORTED_MODULE_2__/* .optional */ .lqM(zod_mini__WEBPACK_IMPORTED_MODULE_2__/* .unknown */ .L5J()),
    pageCount: zod_mini__WEBPACK_IMPORTED_MODULE_2__/* .optional */ .lqM(zod_mini__WEBPACK_IMPORTED_MODULE_2__/* .unknown */ .L5J()),
    error: zod_mini__WEBPACK_IMPORTED_MODULE_2__/* .optional */ .lqM(zod_mini__WEBPACK_IMPORTED_MODULE_2__/* .unknown */ .L5J()),
});
const startedExportJob = zod_mini__WEBPACK_IMPORTED_MODULE_2__/* .extend */ .X$i(exportJob, {
    jobId: zod_mini__WEBPACK_IMPORTED_MODULE_2__/* .string */ .YjP(),
    // Only `jobId` is promised by the document (section 4.2).
    status: zod_mini__WEBPACK_IMPORTED_MODULE_2__/* ["catch"] */ .MfU(zod_mini__WEBPACK_IMPORTED_MODULE_2__/* .string */ .YjP(), 'queued'),
});
const bundle = zod_mini__WEBPACK_IMPORTED_MODULE_2__/* .object */ .Ikc({
    jobId: zod_mini__WEBPACK_IMPORTED_MODULE_2__/* .optional */ .lqM(zod_mini__WEBPACK_IMPORTED_MODULE_2__/* .unknown */ .L5J()),
    bundleUrl: zod_mini__WEBPACK_IMPORTED_MODULE_2__/* .string */ .YjP(),
    expiresAt: zod_mini__WEBPACK_IMPORTED_MODULE_2__/* .optional */ .lqM(zod_mini__WEBPACK_IMPORTED_MODULE_2__/* .unknown */ .L5J()),
    sizeBytes: zod_mini__WEBPACK_IMPORTED_MODULE_2__/* .optional */ .lqM(zod_mini__WEBPACK_IMPORTED_MODULE_2__/* .unknown */ .L5J()),
});
const agentJob = zod_mini__WEBPACK_IMPORTED_MODULE_2__/* .object */ .Ikc({
    status: zod_mini__WEBPACK_IMPORTED_MODULE_2__/* .string */ .YjP(),
    prLink: zod_mini__WEBPACK_IMPORTED_MODULE_2__/* .optional */ .lqM(zod_mini__WEBPACK_IMPORTED_MODULE_2__/* .unknown */ .L5J()),
});


/***/ })

};
