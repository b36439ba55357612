/** Cleaning and escaping of text that comes from outside: the service, the network, the workflow. */

// ESC [ … final byte (colours, cursor) and ESC ] … BEL or ESC \ (titles, links).
// eslint-disable-next-line no-control-regex
const ansiSequence = /\u001b\[[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)?/g

// Controls, line separators, and all that is invisible, joins or reorders text. (Cf holds most of the latter.)
const invisible = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]+/gu

/**
 * Makes outside text harmless in a log line: the runner executes `::command::` at the start of a line
 * and `##[command]` anywhere in it (actions/runner, ActionCommand.cs), reads `\r` as a line end and
 * compares names by culture, so that invisible characters must go rather than split a token.
 * Print the result behind words of ours.
 *
 * @param maxLength in UTF-16 code units; longer text ends in an ellipsis
 */
export function clean(text: string, maxLength = 500): string {
  const line = text
    .slice(0, 20 * maxLength) // bounds the work on megabytes of hostile text
    .replace(ansiSequence, '')
    .replace(invisible, ' ')
    .toWellFormed()
    .replace(/#\[/g, '# [')
    .replace(/\s+/g, ' ')
    .trim()
    .replace(/^::/, ': :')
  return line.length > maxLength ? `${line.slice(0, maxLength - 1).toWellFormed()}…` : line
}

/**
 * Outside text for the run summary: cleaned, then every character with a meaning in Markdown or HTML as
 * an entity. GitHub's summary escapes nothing itself, and entities survive in tables and in HTML. Behind
 * `www` a dot would make a link.
 */
export function escapeMarkdown(text: string, maxLength = 500): string {
  return clean(text, maxLength).replace(
    /[&<>"'`|[\]*_#!\\~@(){}:$]|(?<=www)\./gi,
    (character) => `&#${character.charCodeAt(0)};`,
  )
}

/** A mask on fewer characters, or their replacement, would blot out half of the log. */
export const shortestSecretLength = 8
