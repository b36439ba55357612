/** What only a process that really ends can show of the disk. */
import { expect, test } from '@jest/globals'
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import process from 'node:process'

const module = new URL('../src/disk.ts', import.meta.url).href

test('what cannot be removed at the end changes neither how the run has ended nor what else is removed', () => {
  const directory = fs.mkdtempSync(path.join(tmpdir(), 'disk-'))
  try {
    const stubborn = path.join(directory, 'x'.repeat(5000)) // no system takes such a name
    const willing = path.join(directory, 'willing')
    fs.mkdirSync(willing)
    const source = `import { systemDisk } from ${JSON.stringify(module)}
      for (const target of ${JSON.stringify([stubborn, willing])}) systemDisk.removeAtExit(target)`
    const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', source])
    expect(stderr.toString()).toBe('')
    expect(status).toBe(0)
    expect(fs.readdirSync(directory)).toEqual([])
  } finally {
    fs.rmSync(directory, { recursive: true })
  }
})
