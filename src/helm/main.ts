/** The entry of the Helm action. */
import process from 'node:process'
import { enter } from '../entry.ts'
import { systemObjectStorage } from '../network.ts'
import { createHelmAction } from './action.ts'
import { systemCommand } from './process.ts'

/** Beyond what `upgrade.ts` allows itself, and before the runner kills. */
const longestGoodbyeMs = 9_000

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
