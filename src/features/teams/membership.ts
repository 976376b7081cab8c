/**
 * Caches which users belong to which team, because a stream of all changes checks every entry. The cache is loaded once and
 * then updated with committed changes.
 */
import { decide } from '../../core/policy.ts';
import type { Audience } from '../../events/feed.ts';
import type { Reader, Store, Tx } from '../../store/store.ts';
import { peopleOf } from '../../store/views.ts';
import type { Caller } from '../accounts/rules.ts';
import { teamNumsInView, teamOfNum } from './queries.ts';

interface TeamPeople {
  team_id: string;
  human_ids: readonly string[];
}

const NO_TEAM = { team_id: null, human_ids: [] };
/** Only root sees what is stored about its agents, because nothing says who was in the team at that time. */
const DELETED_TEAM = { team_id: '', human_ids: [] };

export class Membership {
  readonly #teams = new Map<number, TeamPeople>();

  static async open(store: Store): Promise<Membership> {
    const membership = new Membership();
    await store.read(async (reader) => {
      for (const num of await teamNumsInView(reader, { user_id: null, limits: null }))
        membership.#teams.set(num, (await readTeam(reader, num))!);
    });
    return membership;
  }

  /** Call this after a change in the transaction that creates, changes or deletes a team. */
  async changed(tx: Tx, team_num: number): Promise<void> {
    const team = await readTeam(tx, team_num);
    for (const id of this.#teams.get(team_num)?.human_ids ?? []) {
      if (!team?.human_ids.includes(id)) tx.wake('memberships', id);
    }
    tx.afterCommit(() => {
      if (team) this.#teams.set(team_num, team);
      else this.#teams.delete(team_num);
    });
  }

  /** Whether the caller may see an entry of the fleet feed. */
  sees(caller: Caller, { owner_id, team_num, agent_id }: Audience): boolean {
    const team = team_num === null ? NO_TEAM : (this.#teams.get(team_num) ?? DELETED_TEAM);
    return decide(caller, 'agent.read', { owner_id, agent_id, ...team }) === 'allow';
  }
}

async function readTeam(reader: Reader, team_num: number): Promise<TeamPeople | null> {
  const team = await teamOfNum(reader, team_num);
  return team ? { team_id: team.id, human_ids: await peopleOf(reader, team_num) } : null;
}
