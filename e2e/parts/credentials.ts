import type { IncomingHttpHeaders } from 'node:http'

/** A user name and password, as basic authentication carries them. */
export interface Credentials {
  readonly username: string
  readonly password: string
}

/** Whether a request carries these. Without any, every request is welcome. */
export function mayPass(headers: IncomingHttpHeaders, credentials?: Credentials): boolean {
  if (credentials === undefined) return true
  const { username, password } = credentials
  const expected = Buffer.from(`${username}:${password}`).toString('base64')
  return headers.authorization === `Basic ${expected}`
}
