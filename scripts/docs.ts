/**
 * `npm run docs`: writes what the documentation takes from elsewhere, so that it cannot differ: the tables
 * of inputs and outputs from `action.yml`, and the name of the repository from `package.json`. With
 * `--check` nothing is written; files that are not fresh are named, and the exit code is 1.
 */
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import process from 'node:process'
import { parse } from 'yaml'

interface ActionManifest {
  readonly inputs: Record<string, Input>
  readonly outputs: Record<string, Output>
}

interface Input {
  readonly description: string
  readonly required?: boolean
  readonly default?: string
}

interface Output {
  readonly description: string
}

const root = path.resolve(import.meta.dirname, '..')
const manifest = parse(readText('action.yml')) as ActionManifest
const { repository } = JSON.parse(readText('package.json')) as { repository: string }
const slug = repository.replace(/^github:/, '')

const tables: Readonly<Record<string, string>> = {
  inputs: table(
    ['Input', 'Required', 'Default', 'Description'],
    Object.entries(manifest.inputs).map(([name, input]) => [
      code(name),
      input.required ? 'yes' : 'no',
      input.default === undefined ? '' : code(input.default),
      input.description,
    ]),
  ),
  outputs: table(
    ['Output', 'Description'],
    Object.entries(manifest.outputs).map(([name, output]) => [code(name), output.description]),
  ),
}

const check = process.argv.slice(2).includes('--check')
for (const file of documents()) {
  const before = readText(file)
  const after = withRepository(file === 'README.md' ? withTables(before) : before)
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

/** Replaces what stands between `<!-- name: … -->` and `<!-- name end -->`. */
function withTables(text: string): string {
  return Object.entries(tables).reduce((result, [name, content]) => {
    const region = new RegExp(`(<!-- ${name}: [^\\n]*-->\\n)[^]*?(<!-- ${name} end -->)`)
    if (!region.test(result)) throw new Error(`README.md has no place for the table of ${name}`)
    // By a function: in a replacement string, `$` would have a meaning.
    return result.replace(region, (_, begin: string, end: string) => begin + content + end)
  }, text)
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
