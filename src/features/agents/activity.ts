/**
 * Announces to followers of the fleet feed when agents last wrote to their logs. Output alone does not publish an agent's
 * record, so lists would show the age of the last change. Nothing is stored, because that would write for every agent all
 * the time.
 */
import { rfc3339 } from '../../base/clock.ts';
import type { Core } from '../feature.ts';
import { limits } from './limits.ts';
import { lastEventsOf } from './queries/last-events.ts';

export class ActivityFeed {
  readonly #core: Pick<Core, 'store' | 'events' | 'feed' | 'log'>;
  /** The `num` of each agent whose log has grown since the last announcement. */
  #grown = new Set<number>();
  readonly #unsubscribe: () => void;
  readonly #timer: NodeJS.Timeout;
  #closed = false;

  constructor(core: Pick<Core, 'store' | 'events' | 'feed' | 'log'>) {
    this.#core = core;
    this.#unsubscribe = core.events.onAppended((agent_num) => this.#grown.add(agent_num));
    this.#timer = setInterval(() => {
      this.announce().catch((err: unknown) => {
        if (!this.#closed) core.log.warn({ err }, 'the last events of agents could not be announced');
      });
    }, limits.activity_interval_ms).unref();
  }

  /**
   * Announces the agents whose logs have grown since the last call, with one query. If it fails, the next call announces
   * them. Public for tests.
   */
  async announce(): Promise<void> {
    const nums = [...this.#grown];
    this.#grown.clear();
    const { store, feed } = this.#core;
    if (nums.length === 0 || !feed.hasFollowers) return;
    const rows = await store
      .read((reader) => lastEventsOf(reader, nums))
      .catch((error: unknown) => {
        for (const num of nums) this.#grown.add(num);
        throw error;
      });
    feed.announce(
      'activity',
      'agents',
      rows.map(({ id, owner_id, team_num, last_event_at }) => ({
        ...{ owner_id, team_num, agent_id: id },
        record: { id, last_event_at: rfc3339(last_event_at) },
      })),
    );
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#timer);
    this.#unsubscribe();
  }
}
