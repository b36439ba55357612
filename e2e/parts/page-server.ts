/** A web server whose pages a test changes at any moment, as a deployed site changes. */
import type { IncomingHttpHeaders } from 'node:http'
import { startPart, type Part } from './lifetime.ts'

export interface Answer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

export interface PageRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly atMs: number
}

export interface PageServer extends Part {
  readonly url: string
  /** All requests so far. */
  readonly requests: readonly PageRequest[]
  /**
   * Sets what a path, query included, answers from now on: always the same, or by the number of the request since
   * then, from 1. Nothing means no answer: the connection stays open. Every other path is 404.
   */
  serve(path: string, answer: Answer | ((count: number) => Answer | undefined)): void
}

/** Starts a server without pages. */
export function startPageServer(): Promise<PageServer> {
  return startPart(async (scope) => {
    const requests: PageRequest[] = []
    const pages = new Map<string, () => Answer | undefined>()
    const address = await scope.serve((request, response) => {
      const { method = '', url = '', headers } = request
      requests.push({ method, path: url, headers, atMs: Date.now() })
      const answer = (pages.get(url) ?? notFound)()
      if (answer === undefined) return
      response.writeHead(answer.status ?? 200, {
        'content-type': 'text/html; charset=utf-8',
        ...answer.headers,
      })
      response.end(answer.body)
    })
    return {
      url: `http://${address}`,
      requests,
      serve: (path, answer) => {
        let count = 0
        pages.set(path, () => (typeof answer === 'function' ? answer((count += 1)) : answer))
      },
    }
  })
}

function notFound(): Answer {
  return { status: 404, body: 'Not found' }
}
