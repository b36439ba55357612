import { Refusal } from './refusal.ts'

/** The keys that the emulator knows. They open nothing but the emulator, so they may be printed. */
export const keys = {
  /** May do everything. */
  good: 'mint_emulator_good_0123456789',
  /** Answers 401 everywhere. */
  expired: 'mint_emulator_expired_0123456789',
  /** Lacks the `write` scope: reads jobs, starts and bundles nothing. */
  readOnly: 'mint_emulator_read_only_0123456789',
  /** Belongs to an organisation without static export; agent jobs can be read. */
  noExport: 'mint_emulator_no_export_0123456789',
} as const

/** What a request is about to do, as far as a key may forbid it. */
export type Purpose = { writes: boolean; staticExport: boolean }

/**
 * Lets a request pass, or throws the Refusal (401 or 403) that says what is wrong with its
 * `Authorization` header (admin-api.md, section 5).
 */
export function authorise(authorization: string | undefined, purpose: Purpose): void {
  if (authorization === undefined) {
    throw new Refusal(401, 'No API key: send the header "Authorization: Bearer <ADMIN_API_KEY>".')
  }
  // RFC 9110, section 11.1: the name of the scheme is case-insensitive.
  const key = /^bearer +(\S+)$/i.exec(authorization.trim())?.[1]
  if (key === undefined) {
    throw new Refusal(401, 'The Authorization header is not of the form "Bearer <ADMIN_API_KEY>".')
  }
  switch (key) {
    case keys.good:
      return
    case keys.expired:
      throw new Refusal(401, 'This API key has expired: create a new one on the API keys page.')
    case keys.readOnly:
      if (purpose.writes) throw new Refusal(403, 'This API key lacks the "write" scope.')
      return
    case keys.noExport:
      if (purpose.staticExport) {
        throw new Refusal(
          403,
          'Static export is not enabled for this organisation: it needs an enterprise plan.',
        )
      }
      return
    default:
      throw new Refusal(401, 'This API key is not known.')
  }
}
