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
  setupFilesAfterEnv: ['<rootDir>/__tests__/support/network.ts'],
}
