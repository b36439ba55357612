/** Unpacks an archive as the action does, as a process of its own. Usage: unpack.ts ARCHIVE DIRECTORY */
import { statSync } from 'node:fs'
import process from 'node:process'
import { unpack } from '../src/archive.ts'
import { deadlineIn, systemClock } from '../src/clock.ts'
import { systemDisk } from '../src/disk.ts'

const [, , archive = '', directory = ''] = process.argv
await unpack(archive, statSync(archive).size, directory, {
  disk: systemDisk,
  clock: systemClock,
  deadline: deadlineIn(600_000, systemClock),
  signal: new AbortController().signal,
  warn: console.log,
  platform: process.platform,
})
