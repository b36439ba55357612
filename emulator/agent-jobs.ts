import type { Clock } from './clock.ts'
import { Refusal } from './refusal.ts'

/** AgentJob of admin-api.md, section 2.1. */
export type AgentJob = {
  id: string
  status: 'active' | 'completed' | 'archived' | 'failed'
  source: { repository: string; ref: string | null }
  model: string
  prLink: string | null
  createdAt: string
  archivedAt: string | null
}

export const agentProject = 'docs-project'

const pullRequest = (number: number) => `https://github.com/acme/docs/pull/${number}`

type Seed = Pick<AgentJob, 'id' | 'status' | 'prLink'> & { ref: string | null }

const seeds: Seed[] = [
  { id: 'agent-active', status: 'active', prLink: null, ref: 'agent/rewrite-quickstart' },
  { id: 'agent-completed', status: 'completed', prLink: pullRequest(101), ref: 'agent/fix-links' },
  { id: 'agent-completed-no-changes', status: 'completed', prLink: null, ref: null },
  { id: 'agent-archived', status: 'archived', prLink: pullRequest(87), ref: 'agent/old-idea' },
  { id: 'agent-archived-no-changes', status: 'archived', prLink: null, ref: null },
  { id: 'agent-failed', status: 'failed', prLink: null, ref: 'agent/translate-guides' },
]

/** Active at first; completed, with a pull request, once `agentSeconds` have passed. */
const finishing = 'agent-finishing'

/** The agent jobs there are, all of one project; nothing creates more of them. */
export class AgentJobs {
  readonly ids = [...seeds.map((seed) => seed.id), finishing]
  readonly #clock: Clock
  readonly #agentSeconds: number
  readonly #createdAtMs: number

  constructor(clock: Clock, agentSeconds: number) {
    this.#clock = clock
    this.#agentSeconds = agentSeconds
    this.#createdAtMs = clock.now()
  }

  /** Throws a Refusal (404) for anything but a job of the one project. */
  get(projectId: string, id: string): AgentJob {
    const seed = id === finishing ? this.#finishing() : seeds.find((known) => known.id === id)
    if (projectId !== agentProject || seed === undefined) {
      throw new Refusal(404, `No agent job "${id}" in project "${projectId}".`)
    }
    const createdAt = new Date(this.#createdAtMs).toISOString()
    return {
      id: seed.id,
      status: seed.status,
      source: { repository: 'https://github.com/acme/docs', ref: seed.ref },
      model: 'example-model-1',
      prLink: seed.prLink,
      createdAt,
      archivedAt: seed.status === 'archived' ? createdAt : null,
    }
  }

  #finishing(): Seed {
    const completed = this.#clock.now() >= this.#createdAtMs + this.#agentSeconds * 1000
    return {
      id: finishing,
      status: completed ? 'completed' : 'active',
      prLink: completed ? pullRequest(102) : null,
      ref: 'agent/finishing',
    }
  }
}
