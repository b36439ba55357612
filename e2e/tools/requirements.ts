/** What the machine must have before anything is built, and what to do when it has not. */
import { spawnSync } from 'node:child_process'

/** An error whose message is for the person at the terminal, without a stack. */
export class InstallError extends Error {}

/** The newest version that one of the parts asks for; Helm does. */
const minGoMinor = 26

/** Throws unless Go is there and new enough, or can fetch a newer Go by itself. */
export function requireGo(): void {
  const { stdout, error } = spawnSync('go', ['env', '-json', 'GOVERSION', 'GOTOOLCHAIN'], {
    encoding: 'utf8',
  })
  if (error !== undefined) {
    throw new InstallError(
      `Go 1.${minGoMinor} or newer is needed and "go" was not found.\n` +
        'On Debian and Ubuntu: apt-get install golang. Elsewhere: https://go.dev/doc/install.',
    )
  }
  const { GOVERSION = '', GOTOOLCHAIN = '' } = JSON.parse(stdout) as Record<string, string>
  const minor = Number(/^go1\.(\d+)/.exec(GOVERSION)?.[1])
  if (minor >= minGoMinor || GOTOOLCHAIN.endsWith('auto')) return
  throw new InstallError(
    `Go 1.${minGoMinor} or newer is needed; this is ${GOVERSION}, which does not fetch a newer one.\n` +
      'From Go 1.21 on, GOTOOLCHAIN=auto lets it. Otherwise install a newer one: https://go.dev/doc/install.',
  )
}

/** Throws unless Python can make virtual environments. */
export function requirePython(): void {
  // What venv needs and Debian has in another package.
  const { status, error } = spawnSync('python3', ['-c', 'import venv, ensurepip'])
  if (error !== undefined) {
    throw new InstallError(
      'Python 3 is needed and "python3" was not found.\n' +
        'On Debian and Ubuntu: apt-get install python3 python3-venv.',
    )
  }
  if (status === 0) return
  throw new InstallError(
    'This Python cannot make virtual environments.\n' +
      'On Debian and Ubuntu: apt-get install python3-venv.',
  )
}
