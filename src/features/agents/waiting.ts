/** Requests that wait until an agent reaches a milestone. */

import { Slots } from '../../base/slots.ts';
import { problems } from '../../core/problem.ts';
import type { Audience, Feed } from '../../events/feed.ts';
import { requireLiveToken } from '../../store/live-tokens.ts';
import type { Store } from '../../store/store.ts';
import type { Caller } from '../accounts/rules.ts';
import { limits } from './limits.ts';
import { type Agent, type AgentMilestone, hasReached } from './rules.ts';
import type { Agents } from './service.ts';

export class AgentWaits {
  readonly #agents: Pick<Agents, 'get' | 'authorizeRead'>;
  readonly #feed: Pick<Feed, 'follow'>;
  readonly #store: Pick<Store, 'read'>;
  readonly #slots = new Slots();

  constructor(
    agents: Pick<Agents, 'get' | 'authorizeRead'>,
    { feed, store }: { feed: Pick<Feed, 'follow'>; store: Pick<Store, 'read'> },
  ) {
    this.#agents = agents;
    this.#feed = feed;
    this.#store = store;
  }

  /**
   * Resolves to the record when the agent has reached the milestone or ended, when the time is up, or when the signal
   * aborts. Throws `agent not found`, even if the agent is deleted in the meantime, `invalid token` if the caller's token was
   * revoked before the answer, and `too many callers are waiting for agents` if too many requests of the caller's user, or of
   * all users, wait.
   *
   * @param wait_ms at most `limits.agent_wait_s_max` seconds
   */
  async until(
    caller: Caller,
    agent_id: string,
    milestone: AgentMilestone,
    wait_ms: number,
    signal: AbortSignal,
  ): Promise<Agent> {
    const { owner_id, team_num } = await this.#agents.authorizeRead(caller, agent_id);
    const free = this.#slots.take(caller.user_id, limits.agent_waiters, () => problems.tooManyAgentWaits());
    const stop = new AbortController();
    const ends = AbortSignal.any([signal, stop.signal, AbortSignal.timeout(wait_ms)]);
    const concerns = (other: Audience) => other.owner_id === owner_id && other.team_num === team_num;
    const changes = this.#feed.follow(concerns, 'start', ends);
    try {
      await changes.next();
      for (let is_over = false; ; ) {
        // Subscribe before reading the record, so that no change is missed.
        const change = changes.next();
        // If both fail, the error of the record is thrown.
        change.catch(() => {});
        const agent = await this.#agents.get(caller, agent_id);
        if (is_over || hasReached(agent, milestone) || hasReached(agent, 'ended')) {
          await this.#store.read((reader) => requireLiveToken(reader, caller));
          return agent;
        }
        is_over = (await change).done === true;
      }
    } finally {
      free();
      stop.abort();
      await changes.return(undefined);
    }
  }
}
