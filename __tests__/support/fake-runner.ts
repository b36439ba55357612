/** A runner that writes down what it is told. */
import { Failure } from '../../src/errors.ts'
import type { Runner } from '../../src/runner.ts'

export interface FakeRunner extends Runner {
  /** The log as the run page shows it, groups indented. */
  readonly lines: readonly string[]
  /** Each write of an output, in order. */
  readonly writes: readonly (readonly [string, string])[]
  /** The outputs as other steps see them. */
  readonly outputs: ReadonlyMap<string, string>
  readonly masks: readonly string[]
  readonly markdown: string
}

export interface FakeRunnerOptions {
  readonly onLine?: (line: string) => void
  readonly unwritableOutput?: string | undefined
}

export function createFakeRunner(
  inputs: Readonly<Record<string, string>>,
  { onLine, unwritableOutput }: FakeRunnerOptions = {},
): FakeRunner {
  const lines: string[] = []
  const writes: (readonly [string, string])[] = []
  const masks: string[] = []
  let markdown = ''
  const show = (line: string) => {
    lines.push(line)
    onLine?.(line)
  }
  return {
    lines,
    writes,
    masks,
    get outputs() {
      return new Map(writes)
    },
    get markdown() {
      return markdown
    },
    input: (name) => inputs[name] ?? '',
    mask: (secret) => masks.push(secret),
    info: show,
    details(title, more) {
      show(more.length === 0 ? title : `▼ ${title}`)
      for (const line of more) show(`    ${line}`)
    },
    debug: () => undefined,
    warning(message) {
      if (!lines.includes(`Warning: ${message}`)) show(`Warning: ${message}`)
    },
    error(title, message) {
      show(`Error: [${title}] ${message}`)
    },
    checkOutputs: () => undefined,
    output(name, value) {
      if (name === unwritableOutput) {
        throw new Failure('environment', 'The file of GITHUB_OUTPUT cannot be written: ENOSPC')
      }
      writes.push([name, value])
    },
    summary(text) {
      markdown += text
    },
  }
}
