/**
 * Whose team each one is, in memory: a stream of everything asks for every entry. It is read once and then follows the
 * commits of what changes teams.
 */
import { decide } from '../../domain/policy.ts';
import type { Caller } from '../../domain/user.ts';
import type { Audience } from '../../events/feed.ts';
import type { Reader, Store, Tx } from '../../store/store.ts';
import { peopleOf, teamOfNum } from '../../store/teams.ts';

interface TeamPeople {
  team_id: string;
  human_ids: readonly string[];
}

const NO_TEAM = { team_id: null, human_ids: [] };

export class Membership {
  readonly #teams = new Map<number, TeamPeople>();

  static async open(store: Store): Promise<Membership> {
    const membership = new Membership();
    await store.read((reader) => {
      for (const { num } of reader.all(reader.sql.selectFrom('teams').select('num')))
        membership.#teams.set(num, readTeam(reader, num)!);
    });
    return membership;
  }

  /** A team came, changed or goes in this transaction; call it after the change. */
  changed(tx: Tx, team_num: number): void {
    const team = readTeam(tx, team_num);
    tx.afterCommit(() => {
      if (team) this.#teams.set(team_num, team);
      else this.#teams.delete(team_num);
    });
  }

  /** Whether an entry of the fleet's stream is the caller's to see. */
  sees(caller: Caller, { owner_id, team_num, agent_id }: Audience): boolean {
    const team = (team_num !== null && this.#teams.get(team_num)) || NO_TEAM;
    return decide(caller, 'agent.read', { owner_id, agent_id, ...team }) === 'allow';
  }
}

function readTeam(reader: Reader, team_num: number): TeamPeople | null {
  const team = teamOfNum(reader, team_num);
  return team ? { team_id: team.id, human_ids: peopleOf(reader, team_num) } : null;
}
