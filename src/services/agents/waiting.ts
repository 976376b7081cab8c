/** Requests that wait until an agent has come so far. */
import { limits } from '../../base/limits.ts';
import { type Agent, type AgentMilestone, hasReached, isFinal } from '../../domain/agent.ts';
import { problems } from '../../domain/problem.ts';
import type { Caller } from '../../domain/user.ts';
import type { Audience, Feed } from '../../events/feed.ts';
import type { Agents } from './agents.ts';

export class AgentWaits {
  readonly #agents: Pick<Agents, 'get' | 'mayRead'>;
  readonly #feed: Pick<Feed, 'follow'>;
  #count = 0;

  constructor(agents: Pick<Agents, 'get' | 'mayRead'>, feed: Pick<Feed, 'follow'>) {
    this.#agents = agents;
    this.#feed = feed;
  }

  /**
   * The record once the agent has reached the milestone, has ended, or when the time or the signal says so. Throws
   * `agent not found`, also when it is deleted meanwhile, and `too many callers wait for agents`.
   *
   * @param wait_ms 0 to `limits.agent_wait_s_max` seconds
   */
  async until(
    caller: Caller,
    agent_id: string,
    milestone: AgentMilestone,
    wait_ms: number,
    signal: AbortSignal,
  ): Promise<Agent> {
    const { owner_id, team_num } = await this.#agents.mayRead(caller, agent_id);
    if (this.#count >= limits.agent_waiters_max) throw problems.tooManyAgentWaits();
    this.#count++;
    const stop = new AbortController();
    const ends = AbortSignal.any([signal, stop.signal, AbortSignal.timeout(wait_ms)]);
    const concerns = (other: Audience) => other.owner_id === owner_id && other.team_num === team_num;
    const changes = this.#feed.follow(concerns, 'start', ends);
    try {
      await changes.next();
      for (;;) {
        // Listening begins before the record is read, so that no change falls in between.
        const change = changes.next();
        const agent = await this.#agents.get(caller, agent_id);
        if (hasReached(agent, milestone) || isFinal(agent.status)) return agent;
        if ((await change).done) return await this.#agents.get(caller, agent_id);
      }
    } finally {
      this.#count--;
      stop.abort();
      await changes.return(undefined);
    }
  }
}
