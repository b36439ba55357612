import { applyFault, type Fault, type Faults, type Operation } from './faults.ts'
import { pathOf, type Delivery, type Reply, type Request } from './message.ts'

/** A request as it came in, without secrets: no query, no key. */
export type RecordedRequest = {
  method: string
  path: string
  /** Undefined for a path that is none of the API's. */
  operation: Operation | undefined
  /** Whether an Authorization header came along. */
  authorization: boolean
  range: string | undefined
  body: string
  /** What was answered; undefined while it is not, and when a fault left it so. */
  status: number | undefined
  /** The kind of the fault that it met. */
  fault: Fault['kind'] | undefined
}

/** Stands between the services and their clients: writes down each request and lets faults happen. */
export class Recorder {
  readonly requests: RecordedRequest[] = []
  readonly #faults: Faults
  readonly #onRequest: (request: RecordedRequest) => void

  constructor(faults: Faults, onRequest: (request: RecordedRequest) => void = () => undefined) {
    this.#faults = faults
    this.#onRequest = onRequest
  }

  async deliver(
    request: Request,
    operation: Operation | undefined,
    process: (request: Request) => Reply | Promise<Reply>,
  ): Promise<Delivery> {
    const fault = this.#faults.next(operation)
    const recorded: RecordedRequest = {
      method: request.method,
      path: pathOf(request),
      operation,
      authorization: request.headers.authorization !== undefined,
      range: request.headers.range,
      body: request.body,
      status: undefined,
      fault: fault?.kind,
    }
    this.requests.push(recorded)
    const delivery: Delivery = fault
      ? await applyFault(fault, request, operation, async (one) => process(one))
      : { reply: await process(request), ending: 'complete' }
    recorded.status = delivery.reply?.status
    this.#onRequest(recorded)
    return delivery
  }
}
