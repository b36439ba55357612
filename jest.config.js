/** @type {import('jest').Config} */
export default {
  testMatch: ['<rootDir>/__tests__/**/*.test.ts'],
  extensionsToTreatAsEsm: ['.ts'],
  transform: {
    '\\.ts$': [
      '@swc/jest',
      { jsc: { parser: { syntax: 'typescript' }, target: 'es2024' }, module: { type: 'es6' } },
    ],
  },
  // A bound for what hangs, not a measure: a busy machine may be slow.
  testTimeout: 60_000,
  setupFilesAfterEnv: ['<rootDir>/__tests__/support/network.ts'],
}
