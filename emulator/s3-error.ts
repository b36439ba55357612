import type { Reply } from './message.ts'

/** An error as S3 words it, e.g. `SlowDown`, with the elements that belong to its code. */
export type S3Error = {
  status: number
  code: string
  message: string
  details?: Record<string, string>
}

/** The XML document of an S3 error (Amazon S3 API Reference, "Error responses"). */
export function s3ErrorReply(error: S3Error): Reply {
  const elements = { Code: error.code, Message: error.message, ...error.details }
  const xml = Object.entries(elements).map(([name, text]) => `<${name}>${escape(text)}</${name}>`)
  return {
    status: error.status,
    headers: { 'content-type': 'application/xml' },
    body: Buffer.from(`<?xml version="1.0" encoding="UTF-8"?>\n<Error>${xml.join('')}</Error>`),
  }
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
