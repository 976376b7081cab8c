/**
 * Whose team each one is, in memory: a stream of everything asks for every entry. It is read once and then follows the
 * commits of what changes teams.
 */
import type { Caller } from '../../domain/user.ts';
import type { Audience } from '../../events/feed.ts';
import type { Store, Tx } from '../../store/store.ts';
import { peopleOf } from '../../store/teams.ts';

export class Membership {
  readonly #people = new Map<number, ReadonlySet<string>>();

  static async open(store: Store): Promise<Membership> {
    const membership = new Membership();
    await store.read((reader) => {
      for (const { num } of reader.all(reader.sql.selectFrom('teams').select('num')))
        membership.#people.set(num, new Set(peopleOf(reader, num)));
    });
    return membership;
  }

  /** A team came, changed or goes in this transaction; call it after the change. */
  changed(tx: Tx, team_num: number): void {
    const people = new Set(peopleOf(tx, team_num));
    tx.afterCommit(() => {
      if (people.size > 0) this.#people.set(team_num, people);
      else this.#people.delete(team_num);
    });
  }

  /** Whether an entry of the fleet's stream is the caller's to see. */
  sees({ role, user_id }: Caller, { owner_id, team_num }: Audience): boolean {
    if (role === 'root' || owner_id === user_id) return true;
    return team_num !== null && (this.#people.get(team_num)?.has(user_id) ?? false);
  }
}
