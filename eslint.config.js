import js from '@eslint/js'
import tseslint from 'typescript-eslint'

/** Who may reach the runner: everything below these files takes what it needs as an argument. */
const runnerFiles = ['src/runner.ts', 'src/pull-request.ts', 'src/network.ts']
const restrict = (...patterns) => ({ 'no-restricted-imports': ['error', { patterns }] })

export default tseslint.config(
  { ignores: ['dist/', 'node_modules/', 'demo-output/', '.tools/'] },
  js.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
    },
  },
  {
    files: ['**/*.{js,mjs}'],
    languageOptions: { globals: { console: 'readonly', process: 'readonly' } },
  },
  {
    files: ['src/**/*.ts'],
    ignores: runnerFiles,
    rules: restrict(
      { group: ['@actions/*'], message: 'Only the files that exist for the runner import this.' },
      { group: ['**/emulator/**'], message: 'The emulator shares no code with src.' },
    ),
  },
  {
    files: ['emulator/**/*.ts'],
    rules: restrict({
      group: ['**/src/**', '@actions/*'],
      message: 'The emulator shares no code with src.',
    }),
  },
)
