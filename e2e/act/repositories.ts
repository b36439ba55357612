/** The two repositories of a run: this project, as far as act can read it, and the one of a user. */
import { spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { dump, load } from 'js-yaml'
import { withoutSelfReference } from '../../scripts/self-reference.ts'

const root = path.resolve(import.meta.dirname, '../..')
const { repository } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as {
  repository: string
}
const slug = repository.replace(/^github:/, '')
const tag = 'v1'

/** The name under which users know this project: `OWNER/static-export-action@v1`. */
export const actionName = `${slug}@${tag}`

/** The job that shows the outputs of a reusable workflow, in a copy of it: see `withOutputsJob`. */
export const outputsJob = 'outputs-of-the-workflow'

/** The step that saves what a job left on the disk: see `withLeftovers`. */
export const leftoversStep = 'What is left on the disk'

interface Workflow {
  on: { workflow_call?: { outputs?: Record<string, { value: string }> } }
  jobs: Record<string, { steps?: object[] }>
}

interface Manifest {
  readonly runs: { readonly pre?: string; readonly main?: string; readonly post?: string }
}

/** Copies the files of this project as they are on the disk, without what Git ignores, and adds others. */
export function copyProject(folder: string, files: Readonly<Record<string, string>>): void {
  // The owner of a clone need not be the one who tests it.
  const list = ['-c', 'safe.directory=*', 'ls-files', '-z', '--cached', '--others']
  const names = run('git', [...list, '--exclude-standard'], root).split('\0')
  for (const name of names) {
    const source = path.join(root, name)
    // What was removed and not yet committed is still in the list.
    if (name === '' || !existsSync(source)) continue
    const target = path.join(folder, name)
    mkdirSync(path.dirname(target), { recursive: true })
    cpSync(source, target)
  }
  expectBuilt(folder)
  writeFiles(folder, files)
  editWorkflows(folder, (text) =>
    withLeftovers(withOutputsJob(withoutSelfReference(text, slug, tag))),
  )
}

/** Throws, with what to do, unless all that the actions of a project run is there. */
export function expectBuilt(project: string): void {
  const missing = globSync('**/action.yml', { cwd: project, exclude: ['node_modules'] })
    .flatMap((manifest) => {
      const { runs } = load(readFileSync(path.join(project, manifest), 'utf8')) as Manifest
      return [runs.pre, runs.main, runs.post].map((file) => {
        return file && path.join(path.dirname(manifest), file)
      })
    })
    .filter((file) => file !== undefined && !existsSync(path.join(project, file)))
  if (missing.length === 0) return
  throw new Error(
    `Not built: ${missing.sort().join(', ')}. Run "npm run build" first, or wait for the end of a build that runs.`,
  )
}

/** Makes the repository of a user: workflows and values of `e2e/caller`, a chart, and other files. */
export function makeCaller(
  folder: string,
  chart: string,
  files: Readonly<Record<string, string>>,
): void {
  cpSync(path.join(root, 'e2e/caller'), folder, { recursive: true })
  cpSync(chart, path.join(folder, 'chart'), { recursive: true })
  writeFiles(folder, files)
  const ours = new RegExp(`\\b[\\w-]+/${path.basename(slug)}\\b`, 'g')
  editWorkflows(folder, (text) => withLeftovers(text.replace(ours, () => slug)))
  run('git', ['init', '--quiet', '--initial-branch', 'main'], folder)
  run('git', ['add', '--all'], folder)
  const author = ['-c', 'user.name=caller', '-c', 'user.email=caller@example.com']
  run(
    'git',
    [...author, 'commit', '--quiet', '--no-gpg-sign', '--message', 'Documentation'],
    folder,
  )
}

function writeFiles(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true })
    writeFileSync(path.join(folder, name), text)
  }
}

function editWorkflows(folder: string, edit: (text: string) => string): void {
  const workflows = path.join(folder, '.github/workflows')
  for (const name of readdirSync(workflows)) {
    const file = path.join(workflows, name)
    writeFileSync(file, edit(readFileSync(file, 'utf8')))
  }
}

/**
 * When a called workflow fails, act ends its caller, and nobody sees the outputs. So a last job in it evaluates the
 * expressions of the outputs. Those of a skipped job are empty for a runner; act would give the text of the expression.
 */
function withOutputsJob(text: string): string {
  const workflow = load(text) as Workflow
  const outputs = workflow.on.workflow_call?.outputs
  if (outputs === undefined) return text
  const names = Object.keys(outputs)
  const values = Object.entries(outputs).map(([name, { value }]) => [
    `OUTPUT_${name}`,
    value.replace(
      /\bjobs\.([\w-]+)(\.outputs\.\w+)/g,
      "(needs.$1.result != 'skipped' && needs.$1$2 || '')",
    ),
  ])
  const job = {
    needs: Object.keys(workflow.jobs),
    if: 'always()',
    'runs-on': 'ubuntu-24.04',
    steps: [
      {
        name: 'Outputs',
        env: Object.fromEntries(values) as object,
        run: names.map((name) => `echo "${name}=$OUTPUT_${name}" >> "$GITHUB_OUTPUT"\n`).join(''),
      },
    ],
  }
  return dump({ ...workflow, jobs: { ...workflow.jobs, [outputsJob]: job } })
}

/** act empties RUNNER_TEMP after each job, so that a last step has to save what the steps left there. */
function withLeftovers(text: string): string {
  const workflow = load(text) as Workflow
  for (const [id, job] of Object.entries(workflow.jobs)) {
    job.steps?.push({
      name: leftoversStep,
      if: 'always()',
      shell: 'bash',
      run: `mkdir -p "$E2E_LEFTOVERS"\ncp -a "$RUNNER_TEMP" "$E2E_LEFTOVERS/${id}"\n`,
    })
  }
  return dump(workflow)
}

function run(command: string, args: readonly string[], folder: string): string {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: folder, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stderr}`)
  return stdout
}
