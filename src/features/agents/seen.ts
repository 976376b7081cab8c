/** How far people have read the logs of agents. Each person has their own marks, which nobody else sees. */
import { limits } from '../../base/limits.ts';
import { isPaged, type Page, type PageRequest, page, readCursor } from '../../core/page.ts';
import { authorize, viewOf } from '../../core/policy.ts';
import type { Caller } from '../accounts/rules.ts';
import type { AgentCore } from './core.ts';
import { listSeen, raiseSeen, seenBy } from './queries/seen.ts';

export interface SeenMark {
  agent_id: string;
  /** The number of the last event that the person has seen. */
  last_seen: number;
}

export class SeenMarks {
  readonly #core: Pick<AgentCore, 'store' | 'records'>;

  constructor(core: Pick<AgentCore, 'store' | 'records'>) {
    this.#core = core;
  }

  /** The caller's marks on agents that they may see, oldest agent first. Agents of which they saw nothing are left out. */
  list(caller: Caller, request: PageRequest): Promise<Page<SeenMark>> {
    authorize(caller, 'agents.list');
    const paged = isPaged(request);
    const limit = request.limit ?? limits.page_items_default;
    const after_num = readCursor(request.cursor, 'number')?.[0];
    return this.#core.store.read(async (reader) => {
      const view = viewOf(caller);
      const rows = await listSeen(reader, caller.user_id, view, {
        after_num,
        limit: paged ? limit + 1 : undefined,
      });
      return page(
        rows,
        paged ? limit : rows.length,
        ({ agent_id, last_seen }) => ({ agent_id, last_seen }),
        ({ num }) => [num],
      );
    });
  }

  /**
   * Records that the caller has seen the events up to `seq`, or up to the last one if there are fewer. Never lowers a mark.
   * Throws `agent not found` if the caller may not read the agent.
   */
  mark(caller: Caller, agent_id: string, seq: number): Promise<SeenMark> {
    return this.#core.store.write(async (tx) => {
      const row = await this.#core.records.find(tx, caller, 'agent.mark_seen', agent_id);
      const before = await seenBy(tx, caller.user_id, row.num);
      const last_seen = Math.max(before, Math.min(seq, row.last_seq ?? 0));
      if (last_seen > before) await raiseSeen(tx, { user_id: caller.user_id, agent_num: row.num, last_seen });
      return { agent_id, last_seen };
    });
  }
}
