/**
 * A reusable workflow names the actions of its own repository as `$/`, which means the commit that runs. GitHub
 * Enterprise Server and act do not know that; they need the name and a reference.
 */

/**
 * Writes `uses: $/folder` as `uses: OWNER/REPOSITORY/folder@REFERENCE`, as GitHub Enterprise Server and act need it.
 * Comments stay, also behind the value.
 */
export function withoutSelfReference(workflow: string, repository: string, ref: string): string {
  return workflow.replace(
    /^(\s*(?:- +)?uses: *)(["']?)\$\/([^\s"'#]*)\2/gm,
    (_, before: string, quote: string, folder: string) => {
      const name = folder === '' ? repository : `${repository}/${folder}`
      return `${before}${quote}${name}@${ref}${quote}`
    },
  )
}
