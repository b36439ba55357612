/** The entry of the Helm action. */
import process from 'node:process'
import { enter } from '../entry.ts'
import { systemObjectStorage } from '../network.ts'
import { createHelmAction } from './action.ts'
import { systemCommand } from './process.ts'

/** Helm ends at once and a rollback without waiting takes less than a second; then the runner still waits. */
const longestGoodbyeMs = 7_000

await enter(
  (dependencies) =>
    createHelmAction({
      ...dependencies,
      runCommand: systemCommand,
      architecture: process.arch,
      objectStorage: systemObjectStorage,
    }),
  longestGoodbyeMs,
)
