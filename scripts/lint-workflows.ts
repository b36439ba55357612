/**
 * Lints the workflows of this repository and of the caller in `e2e`, and the manifests of the actions: actionlint,
 * zizmor and GitHub's own parser must have nothing to say. The first two come from `.tools`.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { registerHooks } from 'node:module'
import path from 'node:path'
import process from 'node:process'
import { tools } from '../e2e/tools/tools.ts'

// The parser imports JSON without saying so, which Node refuses.
registerHooks({
  load: (url, context, nextLoad) =>
    nextLoad(
      url,
      url.endsWith('.json') ? { ...context, importAttributes: { type: 'json' } } : context,
    ),
})
const { convertWorkflowTemplate, NoOperationTraceWriter, parseWorkflow } =
  await import('@actions/workflow-parser')
const { parseAction } = await import('@actions/workflow-parser/actions/action-parser')

const root = path.resolve(import.meta.dirname, '..')
const workflows = ['.github/workflows', 'e2e/caller/.github/workflows'].flatMap((folder) =>
  readdirSync(path.join(root, folder)).map((name) => path.join(folder, name)),
)
const manifests = readdirSync(root, { withFileTypes: true })
  .map((entry) => (entry.isDirectory() ? `${entry.name}/action.yml` : entry.name))
  .filter((file) => path.basename(file) === 'action.yml' && existsSync(path.join(root, file)))

// actionlint 1.7.12 does not know `$/`. Nothing else is ignored; what else a machine has does not matter.
const unknownSelfReference =
  'specifying action "\\$/[^"]*" in invalid format because ref is missing'
runTool(tools.actionlint, [
  '-no-color',
  ...['-shellcheck', '', '-pyflakes', ''],
  ...['-ignore', unknownSelfReference],
  ...workflows,
])
runTool(tools.zizmor, [
  ...['--offline', '--persona=pedantic', '--no-progress', '--color=never'],
  ...[...workflows, ...manifests],
])
report('@actions/workflow-parser', await problemsOfParser())

function runTool(program: string, args: readonly string[]): void {
  const name = path.basename(program)
  if (!existsSync(program)) {
    report(name, [`It is not installed: run "node e2e/tools/install.ts ${name}".`])
    return
  }
  const { status, stdout, stderr } = spawnSync(program, args, { cwd: root, encoding: 'utf8' })
  report(name, status === 0 ? [] : [stdout, stderr])
}

/** GitHub's own schema of workflows and actions. A call is checked against the workflow that it calls. */
async function problemsOfParser(): Promise<string[]> {
  const trace = new NoOperationTraceWriter()
  const problems: string[] = []
  for (const file of workflows) {
    const { context, value } = parseWorkflow(read(file), trace)
    if (value !== undefined) {
      const provider = {
        getFileContent: (ref: { path: string }) => Promise.resolve(read(ref.path)),
      }
      await convertWorkflowTemplate(context, value, provider, { fetchReusableWorkflowDepth: 1 })
    }
    problems.push(...context.errors.getErrors().map(({ message }) => message))
  }
  for (const file of manifests) {
    const { context } = parseAction(read(file), trace)
    problems.push(...context.errors.getErrors().map(({ message }) => message))
  }
  return problems
}

function read(file: string): { name: string; content: string } {
  return { name: file, content: readFileSync(path.join(root, file), 'utf8') }
}

function report(name: string, problems: readonly string[]): void {
  const files = workflows.length + (name === 'actionlint' ? 0 : manifests.length)
  if (problems.length === 0) {
    console.log(`${name}: ${files} files, nothing to say`)
    return
  }
  console.error(`${name}:\n${problems.join('\n').trim()}`)
  process.exitCode = 1
}
