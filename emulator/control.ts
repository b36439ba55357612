import type { MovableClock } from './clock.ts'
import type { ExportJobs } from './export-jobs.ts'
import { checkFault, FaultSyntaxError, parseFault, type Faults } from './faults.ts'
import { jsonReply, pathOf, type Reply, type Request } from './message.ts'
import type { Recorder } from './recorder.ts'
import { isRecord } from './record.ts'

export const controlPrefix = '/_emulator/'

type Controlled = {
  clock: MovableClock
  faults: Faults
  recorder: Recorder
  exportJobs: ExportJobs
}

class ControlError extends Error {}

/** The endpoints that steer the emulator. They need no key, are not recorded and meet no fault. */
export function control(request: Request, controlled: Controlled): Reply {
  const { clock, faults, recorder, exportJobs } = controlled
  const time = () => ({
    now: new Date(clock.now()).toISOString(),
    offsetSeconds: clock.offsetSeconds,
  })
  const endpoints: Record<string, () => unknown> = {
    'GET clock': time,
    'POST clock': () => {
      const { advanceSeconds } = bodyOf(request)
      if (typeof advanceSeconds !== 'number') throw new ControlError('send {"advanceSeconds": 60}')
      clock.advance(advanceSeconds)
      return time()
    },
    'GET faults': () => faults.list(),
    'POST faults': () => {
      const value = parseBody(request)
      faults.add(typeof value === 'string' ? parseFault(value) : checkFault(value))
      return faults.list()
    },
    'DELETE faults': () => {
      faults.clear()
      return faults.list()
    },
    'GET requests': () => recorder.requests,
    'DELETE requests': () => {
      recorder.requests.length = 0
      return recorder.requests
    },
    'POST next-job': () => {
      const { error, afterPages = 0 } = bodyOf(request)
      if (typeof error !== 'string' || typeof afterPages !== 'number') {
        throw new ControlError('send {"error": "why it fails", "afterPages": 3}')
      }
      exportJobs.failNext({ error, afterPages })
      return { error, afterPages }
    },
  }
  const endpoint = endpoints[`${request.method} ${pathOf(request).slice(controlPrefix.length)}`]
  if (endpoint === undefined) {
    return jsonReply(404, { error: `There is: ${Object.keys(endpoints).join(', ')}.` })
  }
  try {
    return jsonReply(200, endpoint())
  } catch (error) {
    const expected = [ControlError, FaultSyntaxError, RangeError]
    if (!expected.some((type) => error instanceof type)) throw error
    return jsonReply(400, { error: (error as Error).message })
  }
}

function parseBody(request: Request): unknown {
  try {
    return JSON.parse(request.body)
  } catch {
    throw new ControlError('the body is not JSON')
  }
}

function bodyOf(request: Request): Record<string, unknown> {
  const value = parseBody(request)
  if (!isRecord(value)) throw new ControlError('the body is not an object')
  return value
}
