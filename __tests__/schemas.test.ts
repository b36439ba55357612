import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { z } from 'zod/mini'
import { agentJob, bundle, exportJob, startedExportJob } from '../src/schemas.ts'

describe('only what the story cannot go on without is demanded', () => {
  test.each([
    ['a job', exportJob, { status: 'running' }],
    ['a started job', startedExportJob, { jobId: 'se_1' }],
    ['a bundle', bundle, { bundleUrl: 'https://s3.example/x' }],
    ['an agent job', agentJob, { status: 'active' }],
  ] as [string, z.ZodMiniType, object][])('%s', (_, schema, least) => {
    expect(schema.parse(least)).toMatchObject(least)
    expect(schema.safeParse({}).success).toBe(false)
    const [name = ''] = Object.keys(least)
    for (const odd of [null, 7, ['completed'], { a: 1 }]) {
      expect(schema.safeParse({ [name]: odd }).success).toBe(false)
    }
  })

  test('a started job without a readable status counts as queued', () => {
    expect(startedExportJob.parse({ jobId: 'se_1' }).status).toBe('queued')
    expect(startedExportJob.parse({ jobId: 'se_1', status: 7 }).status).toBe('queued')
    expect(startedExportJob.parse({ jobId: 'se_1', status: 'completed' }).status).toBe('completed')
  })

  test('odd optional fields pass on to where they are read', () => {
    const odd = { status: 'running', progress: '42', pageCount: null, error: { a: 1 }, jobId: 7 }
    expect(exportJob.parse(odd)).toEqual(odd)
  })
})

test('unknown fields are dropped, those of prototypes never read', () => {
  const json: unknown = JSON.parse(
    '{"__proto__":{"status":"completed"},"constructor":1,"hasOwnProperty":2,"status":"running","new":[1]}',
  )
  expect(Object.keys(exportJob.parse(json))).not.toEqual(expect.arrayContaining(['new', 'constructor', '__proto__'])) // prettier-ignore
  expect(exportJob.parse(json).status).toBe('running')
  expect(exportJob.safeParse(JSON.parse('{"__proto__":{"status":"completed"}}')).success).toBe(
    false,
  )
  expect(({} as { status?: unknown }).status).toBeUndefined()
})

test.each([
  ['a job', exportJob],
  ['a started job', startedExportJob],
  ['a bundle', bundle],
  ['an agent job', agentJob],
] as [string, z.ZodMiniType][])('%s: any JSON is read or refused, nothing else', (_, schema) => {
  const names = fc.constantFrom('jobId', 'status', 'bundleUrl', 'prLink', '__proto__', 'toString')
  const json = fc.oneof(fc.jsonValue(), fc.dictionary(names, fc.oneof(fc.jsonValue(), fc.string())))
  fc.assert(
    fc.property(json, (value) => {
      const result = schema.safeParse(JSON.parse(JSON.stringify(value)))
      if (!result.success) expect(result.error.issues[0]?.message).toMatch(/^Invalid input: /)
    }),
  )
})
