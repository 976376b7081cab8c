/**
 * Announces to followers of the fleet feed when agents last wrote to their logs. Output alone does not publish an agent's
 * record, so lists would show the age of the last change.
 */
import { rfc3339 } from '../../base/clock.ts';
import { Announcer } from '../../events/announcer.ts';
import type { Core } from '../feature.ts';
import { limits } from './limits.ts';
import { lastEventsOf } from './queries/last-events.ts';

export class ActivityFeed {
  readonly #announcer: Announcer;
  readonly #unsubscribe: () => void;

  constructor({ store, events, feed, log }: Pick<Core, 'store' | 'events' | 'feed' | 'log'>) {
    this.#announcer = new Announcer({
      ...{ store, feed, log },
      kind: 'activity',
      field: 'agents',
      delay_ms: limits.activity_interval_ms,
      find: async (reader, nums) =>
        (await lastEventsOf(reader, nums)).map(({ id, owner_id, team_num, last_event_at }) => ({
          ...{ owner_id, team_num, agent_id: id },
          record: { id, last_event_at: rfc3339(last_event_at) },
        })),
    });
    this.#unsubscribe = events.onAppended((num) => this.#announcer.add(num));
  }

  /** See `Announcer.announce`. */
  announce(): Promise<void> {
    return this.#announcer.announce();
  }

  close(): void {
    this.#unsubscribe();
    this.#announcer.close();
  }
}
