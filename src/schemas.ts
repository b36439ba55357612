/**
 * The shapes of what the service sends (admin-api.md, section 2). Only what the story cannot go on without
 * is demanded; unknown fields are ignored, and what may be absent or odd is read where it is used.
 * Loaded after the first reply: zod would delay the first request. Its small variant does the same with half the
 * code in the bundle.
 */
import * as z from 'zod/mini'

// Compiling a schema pays for thousands of values; a run reads about a hundred.
z.config({ jitless: true, ...z.locales.en() })

export const exportJob = z.object({
  jobId: z.optional(z.unknown()),
  status: z.string(),
  progress: z.optional(z.unknown()),
  pageCount: z.optional(z.unknown()),
  error: z.optional(z.unknown()),
})

export const startedExportJob = z.extend(exportJob, {
  jobId: z.string(),
  // Only `jobId` is promised by the document (section 4.2).
  status: z.catch(z.string(), 'queued'),
})

export const bundle = z.object({
  jobId: z.optional(z.unknown()),
  bundleUrl: z.string(),
  expiresAt: z.optional(z.unknown()),
  sizeBytes: z.optional(z.unknown()),
})

export const agentJob = z.object({
  status: z.string(),
  prLink: z.optional(z.unknown()),
})

export type ExportJobReply = z.infer<typeof exportJob>
export type StartedExportJobReply = z.infer<typeof startedExportJob>
export type BundleReply = z.infer<typeof bundle>
export type AgentJobReply = z.infer<typeof agentJob>
