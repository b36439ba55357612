/**
 * `npm run docs`: writes what the documentation takes from elsewhere, so that it cannot differ: the tables
 * of inputs, secrets and outputs from the actions and the reusable workflows, and the name of the repository from `package.json`. With
 * `--check` nothing is written; files that are not fresh are named, and the exit code is 1.
 */
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import process from 'node:process'
import { load } from 'js-yaml'

/** Of an action, or below `workflow_call` of a reusable workflow. */
interface Interface {
  readonly inputs?: Readonly<Record<string, Entry>>
  readonly secrets?: Readonly<Record<string, Entry>>
  readonly outputs?: Readonly<Record<string, Entry>>
}

interface Entry {
  readonly description: string
  readonly required?: boolean
  readonly default?: string | boolean
}

const root = path.resolve(import.meta.dirname, '..')
const { repository } = JSON.parse(readText('package.json')) as { repository: string }
const slug = repository.replace(/^github:/, '')

const check = process.argv.slice(2).includes('--check')
for (const file of documents()) {
  const before = readText(file)
  const after = withRepository(withTables(before))
  if (after === before) continue
  if (check) {
    console.error(`${file} is not fresh: run "npm run docs" and commit the result.`)
    process.exitCode = 1
  } else {
    writeFileSync(path.join(root, file), after)
    console.log(`${file} written`)
  }
}

/** The documents that name the repository. */
function documents(): string[] {
  const folders = ['.', 'docs'].filter((folder) => existsSync(path.join(root, folder)))
  return folders.flatMap((folder) =>
    readdirSync(path.join(root, folder))
      .filter((name) => name.endsWith('.md'))
      .map((name) => path.join(folder, name)),
  )
}

/** Fills what stands between `<!-- inputs of FILE: … -->` and `<!-- end -->`, as for secrets and outputs. */
function withTables(text: string): string {
  const region = /(<!-- (inputs|secrets|outputs) of (\S+): [^\n]*-->\n)[^]*?(<!-- end -->)/g
  return text.replace(
    region,
    (_, begin: string, kind: keyof Interface, file: string, end: string) => {
      const entries = Object.entries(interfaceOf(file)[kind] ?? {})
      return begin + (kind === 'outputs' ? outputTable(entries) : inputTable(kind, entries)) + end
    },
  )
}

function interfaceOf(file: string): Interface {
  const content = load(readText(file)) as Interface & { on?: { workflow_call: Interface } }
  return content.on?.workflow_call ?? content
}

function inputTable(
  kind: 'inputs' | 'secrets',
  entries: readonly (readonly [string, Entry])[],
): string {
  const isRequired = ({ required }: Entry) => (required ? 'yes' : 'no')
  if (kind === 'secrets') {
    return table(
      ['Secret', 'Required', 'Description'],
      entries.map(([name, secret]) => [code(name), isRequired(secret), secret.description]),
    )
  }
  return table(
    ['Input', 'Required', 'Default', 'Description'],
    entries.map(([name, input]) => [
      code(name),
      isRequired(input),
      // In a workflow every input has a default, and an empty one says nothing.
      input.default === undefined || input.default === '' ? '' : code(String(input.default)),
      input.description,
    ]),
  )
}

function outputTable(entries: readonly (readonly [string, Entry])[]): string {
  return table(
    ['Output', 'Description'],
    entries.map(([name, { description }]) => [code(name), description]),
  )
}

/** Whoever owned the repository when the text was written, it names the owner of today. */
function withRepository(text: string): string {
  const name = slug.split('/')[1] ?? ''
  return text.replace(new RegExp(`\\b[\\w-]+/${name}\\b`, 'g'), () => slug)
}

function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [header, header.map(() => '---'), ...rows.map((row) => row.map(cell))]
  return lines.map((line) => `| ${line.join(' | ')} |\n`).join('')
}

/** A bar would end the cell, also within code; a line end the table (GFM, section 4.10). */
function cell(text: string): string {
  return text.trim().replace(/\s+/g, ' ').replaceAll('|', '\\|')
}

function code(text: string): string {
  return `\`${text}\``
}

function readText(file: string): string {
  return readFileSync(path.join(root, file), 'utf8')
}
