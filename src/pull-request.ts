/** Reading a pull request on the GitHub that the workflow runs on. */
import type { PullRequest, PullRequestAddress } from './agent-job.ts'

/**
 * Reads title and state of a pull request. `@actions/github` is loaded here and not before: most runs
 * have no use for it.
 *
 * @param apiUrl as in `GITHUB_API_URL`
 * @throws whatever the request ends in
 */
export async function readPullRequest(
  { owner, repo, number }: PullRequestAddress,
  { apiUrl, token, signal }: { apiUrl: string; token: string; signal: AbortSignal },
): Promise<PullRequest> {
  if (token === '') throw new Error('there is no github-token')
  const { getOctokit } = await import('@actions/github')
  const { data } = await getOctokit(token, { baseUrl: apiUrl }).rest.pulls.get({
    owner,
    repo,
    pull_number: number,
    // The token goes to this host and no other.
    request: { signal, redirect: 'error' },
  })
  if (data.merged) return { title: data.title, state: 'merged' }
  if (data.state === 'closed') return { title: data.title, state: 'closed' }
  return { title: data.title, state: data.draft ? 'draft' : 'open' }
}
