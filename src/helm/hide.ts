/** Keeping secrets out of what Helm and the cluster say. */
import { clean, shortestSecretLength } from '../text.ts'

export interface Hiding {
  /** Hides a value from now on. */
  add(secret: string): void
  /**
   * Outside text for one line of the log: without secrets, then harmless. A schema error of a chart quotes
   * the whole link, a debugging Helm prints it, and the message of a pod may hold it.
   */
  tell(text: string, maxLength?: number): string
}

const replacement = '***'

export function createHiding(): Hiding {
  const secrets = new Set<string>()

  return {
    add(secret) {
      if (secret.length >= shortestSecretLength)
        for (const form of formsOf(secret)) secrets.add(form)
    },
    tell(text, maxLength = 500) {
      let told = text
      // Long ones first: a short one inside would leave the rest of it standing.
      for (const secret of [...secrets].sort((a, b) => b.length - a.length)) {
        told = told.replaceAll(secret, replacement)
      }
      return clean(told, maxLength)
    },
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
