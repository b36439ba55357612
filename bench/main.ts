/** `npm run bench`: every benchmark, with its target. */
await import('./start-up.ts')
await import('./download.ts')
