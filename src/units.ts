/** How durations, sizes and times are written in the log and the summary. */

/** A duration for people: `40 ms`, `0.4 s`, `12 s`, `3m 05s`, `1h 02m`. */
export function formatDuration(durationMs: number): string {
  if (durationMs > 0 && durationMs < 95) return `${Math.ceil(durationMs)} ms`
  const totalSeconds = Math.max(0, durationMs) / 1000
  if (totalSeconds < 9.95) return `${(Math.round(totalSeconds * 10) / 10).toString()} s`
  const seconds = Math.round(totalSeconds)
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes}m ${pad(seconds % 60)}s`
  return `${Math.floor(minutes / 60)}h ${pad(minutes % 60)}m`
}

/** Time since the start, of one width for columns: `00:40`, `12:05`, `1:02:03`. */
export function formatElapsed(durationMs: number): string {
  const seconds = Math.round(durationMs / 1000)
  const hours = Math.floor(seconds / 3600)
  const clock = `${pad(Math.floor(seconds / 60) % 60)}:${pad(seconds % 60)}`
  return hours === 0 ? clock : `${hours}:${clock}`
}

/** A size for people, in powers of 1000 as storage services count: `312 B`, `1.2 MB`. */
export function formatBytes(sizeBytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let value = sizeBytes
  let unit = 0
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000
    unit += 1
  }
  return `${unit === 0 || value >= 99.95 ? value.toFixed(0) : value.toFixed(1)} ${units[unit] ?? ''}`
}

/** A point in time as `2026-11-20 12:40 UTC`. */
export function formatUtc(epochMs: number): string {
  return `${new Date(epochMs).toISOString().slice(0, 16).replace('T', ' ')} UTC`
}

/** `1 page`, `2 pages`. */
export function count(amount: number, singular: string): string {
  return `${amount} ${singular}${amount === 1 ? '' : 's'}`
}

function pad(value: number): string {
  return value.toString().padStart(2, '0')
}
