/** `npm run demo`: the whole job on this machine, with the emulator as the Admin API. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import process from 'node:process'
import { marked } from 'marked'
import { startEmulator } from '../emulator/index.ts'
import { createLogView, runStep } from './local-runner.ts'

const root = path.resolve(import.meta.dirname, '..')
const output = path.join(root, 'demo-output')

// What a site directory holds already, a run does not touch.
rmSync(output, { recursive: true, force: true })
mkdirSync(output)

await using emulator = await startEmulator({ jobSeconds: 12, queueSeconds: 2 })
const inputs = {
  'base-url': emulator.apiUrl,
  domain: emulator.domains[0] ?? '',
  version: '2026.11',
  'bundle-file': path.join(output, 'site.tar.gz'),
  'site-directory': path.join(output, 'site'),
  'values-file': path.join(output, 'values.yaml'),
  'agent-project-id': emulator.agentProject,
  'agent-job-id': emulator.agentJobs.find((id) => id.includes('completed')) ?? '',
}

heading('The step')
for (const [name, value] of Object.entries(inputs)) console.log(`  ${name}: ${value}`)
heading('Its log, as the run page shows it')
const step = await runStep({
  action: root,
  inputs: { ...inputs, 'api-key': emulator.keys.good },
  onLine: createLogView((line) => {
    console.log(`  ${line}`)
  }),
})
heading(`Its outputs (exit code ${String(step.exitCode)})`)
for (const [name, value] of step.outputs) console.log(`  ${name}: ${value || '(empty)'}`)

const page = path.join(output, 'summary.html')
writeFileSync(page, renderSummary(step.summary))
writeFileSync(path.join(output, 'summary.md'), step.summary)
heading('Its chart values')
console.log(readFileSync(inputs['values-file'], 'utf8').replace(/^/gm, '  ').trimEnd())
heading('The site that it unpacked')
console.log(`  ${path.relative(process.cwd(), path.join(output, 'site/index.html'))}`)
heading('Its run summary')
console.log(`  ${path.relative(process.cwd(), page)} (open it in a browser)\n`)
process.exitCode = step.exitCode ?? 1

function heading(text: string): void {
  console.log(`\n${text}\n`)
}

function renderSummary(markdown: string): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="color-scheme" content="light dark">
<title>Run summary</title>
<style>
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 55rem; margin: 2rem auto; padding: 0 1rem }
  table { border-collapse: collapse }
  td, th { text-align: left; border: 1px solid #8886; padding: .4rem .8rem; vertical-align: top }
  pre { background: #8882; padding: 1rem; overflow: auto } code { font-size: 85% }
  blockquote { border-left: .25rem solid #d33; margin: 1rem 0; padding: 0 1rem }
</style>
${marked.parse(markdown, { async: false })}
</html>
`
}
