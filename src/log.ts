/** What the parts of a run may say, and how loudly. Outside text in it is already clean. */
export interface Log {
  /** A line that everybody should see. */
  info(line: string): void
  /** A line that everybody should see, with more behind it for those who unfold it. */
  details(title: string, lines: readonly string[]): void
  /** Something that the user should change or know, shown as an annotation on the run page. */
  warning(message: string): void
  /** Only with step debug logging. */
  debug(line: string): void
}
