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
/* harmony import */ var zod__WEBPACK_IMPORTED_MODULE_0__ = __webpack_require__(8532);
/* harmony import */ var zod__WEBPACK_IMPORTED_MODULE_1__ = __webpack_require__(9691);
/**
 * The shapes of what the service sends (admin-api.md, section 2). Only what the story cannot go on without
 * is demanded; unknown fields are ignored, and what may be absent or odd is read where it is used.
 * Loaded after the first reply: zod would delay the first request.
 */

// Compiling a schema pays for thousands of values; a run reads about a hundred.
zod__WEBPACK_IMPORTED_MODULE_0__/* .config */ .$W({ jitless: true });
const exportJob = zod__WEBPACK_IMPORTED_MODULE_1__/* .object */ .Ikc({
    jobId: zod__WEBPACK_IMPORTED_MODULE_1__/* .unknown */ .L5J().optional(),
    status: zod__WEBPACK_IMPORTED_MODULE_1__/* .string */ .YjP(),
    progress: zod__WEBPACK_IMPORTED_MODULE_1__/* .unknown */ .L5J().optional(),
    pageCount: zod__WEBPACK_IMPORTED_MODULE_1__/* .unknown */ .L5J().optional(),
    error: zod__WEBPACK_IMPORTED_MODULE_1__/* .unknown */ .L5J().optional(),
});
const startedExportJob = exportJob.extend({
    jobId: zod__WEBPACK_IMPORTED_MODULE_1__/* .string */ .YjP(),
    // Only `jobId` is promised by the document (section 4.2).
    status: zod__WEBPACK_IMPORTED_MODULE_1__/* .string */ .YjP().catch('queued'),
});
const bundle = zod__WEBPACK_IMPORTED_MODULE_1__/* .object */ .Ikc({
    jobId: zod__WEBPACK_IMPORTED_MODULE_1__/* .unknown */ .L5J().optional(),
    bundleUrl: zod__WEBPACK_IMPORTED_MODULE_1__/* .string */ .YjP(),
    expiresAt: zod__WEBPACK_IMPORTED_MODULE_1__/* .unknown */ .L5J().optional(),
    sizeBytes: zod__WEBPACK_IMPORTED_MODULE_1__/* .unknown */ .L5J().optional(),
});
const agentJob = zod__WEBPACK_IMPORTED_MODULE_1__/* .object */ .Ikc({
    status: zod__WEBPACK_IMPORTED_MODULE_1__/* .string */ .YjP(),
    prLink: zod__WEBPACK_IMPORTED_MODULE_1__/* .unknown */ .L5J().optional(),
});


/***/ })

};
