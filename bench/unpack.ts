/** Unpacks an archive as the action does, as a process of its own. Usage: unpack.ts ARCHIVE DIRECTORY */
import process from 'node:process'
import { unpack } from '../src/archive.ts'
import { systemDisk } from '../src/disk.ts'

const [, , archive = '', directory = ''] = process.argv
await unpack(archive, directory, {
  disk: systemDisk,
  signal: new AbortController().signal,
  warn: console.log,
  platform: process.platform,
})
