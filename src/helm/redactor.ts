/** Keeping secrets out of what Helm and the cluster say. */
import { clean, shortestSecretLength } from '../text.ts'

export interface Redactor {
  /** Redacts a value from now on. */
  add(secret: string): void
  /**
   * Outside text without secrets: a schema error of a chart quotes the whole link, a debugging Helm prints it, and the
   * message of a pod may hold it.
   */
  readonly redact: (text: string) => string
  /** The same, and harmless as one line of the log. */
  toLine(text: string, maxLength?: number): string
  /** What was thrown, as such a line. */
  ofError(error: unknown): string
}

const replacement = '***'

export function createRedactor(): Redactor {
  const secrets = new Set<string>()

  const toLine = (text: string, maxLength = 500) => clean(redact(text), maxLength)

  return {
    add(secret) {
      if (secret.length >= shortestSecretLength)
        for (const form of formsOf(secret)) secrets.add(form)
    },
    redact,
    toLine,
    ofError: (error) => toLine(Error.isError(error) ? error.message : String(error)),
  }

  function redact(text: string): string {
    let redacted = text
    // Long ones first: a short one inside would leave the rest of it standing.
    for (const secret of [...secrets].sort((a, b) => b.length - a.length)) {
      redacted = redacted.replaceAll(secret, replacement)
    }
    return redacted
  }
}

/** A text as it is, and as JSON, Go and a quoting chart write it. */
export function formsOf(secret: string): string[] {
  const json = JSON.stringify(secret).slice(1, -1)
  const escapedByGo = json.replace(/[<>&]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
  return [secret, json, escapedByGo, encodeURIComponent(secret)]
}
