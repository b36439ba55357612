/**
 * The shapes of what the service sends (admin-api.md, section 2). Only what the story cannot go on without
 * is demanded; unknown fields are ignored, and what may be absent or odd is read where it is used.
 * Loaded after the first reply: zod would delay the first request.
 */
import { z } from 'zod'

// Compiling a schema pays for thousands of values; a run reads about a hundred.
z.config({ jitless: true })

export const exportJob = z.object({
  jobId: z.unknown().optional(),
  status: z.string(),
  progress: z.unknown().optional(),
  pageCount: z.unknown().optional(),
  error: z.unknown().optional(),
})

export const startedExportJob = exportJob.extend({
  jobId: z.string(),
  // Only `jobId` is promised by the document (section 4.2).
  status: z.string().catch('queued'),
})

export const bundle = z.object({
  jobId: z.unknown().optional(),
  bundleUrl: z.string(),
  expiresAt: z.unknown().optional(),
  sizeBytes: z.unknown().optional(),
})

export const agentJob = z.object({
  status: z.string(),
  prLink: z.unknown().optional(),
})

export type ExportJobReply = z.infer<typeof exportJob>
export type StartedExportJobReply = z.infer<typeof startedExportJob>
export type BundleReply = z.infer<typeof bundle>
export type AgentJobReply = z.infer<typeof agentJob>
