// A log that keeps what it is told, as lines: `warning: …`, `details: …`, and what lies behind details indented.
import type { Log } from '../../src/log.ts'

export class RecordingLog implements Log {
  readonly lines: string[] = []

  info(line: string): void {
    this.lines.push(`info: ${line}`)
  }

  details(title: string, lines: readonly string[]): void {
    this.lines.push(`details: ${title}`, ...lines.map((line) => `  ${line}`))
  }

  warning(message: string): void {
    this.lines.push(`warning: ${message}`)
  }

  debug(line: string): void {
    this.lines.push(`debug: ${line}`)
  }

  get warnings(): string[] {
    return this.lines.flatMap((line) => (line.startsWith('warning: ') ? [line.slice(9)] : []))
  }

  get text(): string {
    return this.lines.join('\n')
  }
}
