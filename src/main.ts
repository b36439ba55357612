/** The entry of the export action. */
import { enter } from './entry.ts'
import { createExportAction } from './export-action.ts'
import { readPullRequest } from './pull-request.ts'

/** There is nothing to take back: the job goes on at the service. */
const longestGoodbyeMs = 1_500

await enter(
  (dependencies) => createExportAction({ ...dependencies, readPullRequest }),
  longestGoodbyeMs,
)
