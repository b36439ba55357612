/** What the chart has made of the link: a wrong `values-key` goes through all else. */
import type { Log } from '../log.ts'
import type { Helm, Within } from './helm.ts'
import { type Redactor, formsOf } from './redactor.ts'

/**
 * Whether something that a chart has rendered holds the link, in plain or in base64, as the data of a Secret are. Its
 * path alone will do, since a chart may take the link apart.
 */
export function holdsLink(rendered: string, link: string): boolean {
  const { pathname } = new URL(link)
  const forms = [...formsOf(pathname), ...formsOf(decoded(pathname))]
  const holds = (text: string) => forms.some((form) => text.includes(form))
  const encoded = rendered.match(/[A-Za-z0-9+/]{16,}={0,2}/g) ?? []
  return holds(rendered) || encoded.some((data) => holds(Buffer.from(data, 'base64').toString()))
}

function decoded(pathname: string): string {
  try {
    return decodeURI(pathname)
  } catch {
    return pathname // a % that encodes nothing
  }
}

/** Warns when no object and no hook of a revision holds the link: Helm keeps values that no template reads. */
export async function warnOfUnusedLink(
  { revision, link, valuesKey }: { revision: number; link: string; valuesKey: string },
  { helm, redactor, log }: { helm: Helm; redactor: Redactor; log: Log },
  within: Within,
): Promise<void> {
  try {
    if (holdsLink(await helm.manifestOf(revision, within), link)) return
    if (holdsLink(await helm.hooksOf(revision, within), link)) return
  } catch (error) {
    // It must not turn what is deployed into a failure.
    log.debug(redactor.ofError(error))
    return
  }
  log.warning(
    `Nothing that the chart has rendered holds the link: does it read ${valuesKey}.bundleUrl? If not, check \`values-key\`.`,
  )
}
