/**
 * The fleet feed: a stream of all changes, for lists. Each entry is a record as it was after a change. The feed has its
 * own numbering and keeps entries for a day. Owner, team and agent decide who can see an entry; the feed does not
 * interpret records. Unlike an agent's log, it starts with new entries: clients without a position load the lists
 * first.
 *
 * Committed entries are published from memory. If transactions overlap, an entry may be committed before one with a lower
 * number. It then waits until the lower numbers are settled, so that no follower skips or repeats an entry.
 *
 * Announcements are for what changes all the time. They are not stored and have no number: they repeat the position of the
 * follower, like heartbeats.
 */
import { sleep, Wake } from '../base/async.ts';
import type { Clock } from '../base/clock.ts';
import { keptText } from '../base/kept-bytes.ts';
import { jsonArrayTable } from '../store/dialects.ts';
import { findMeta, setMeta } from '../store/meta.ts';
import { preparedQuery } from '../store/prepared-query.ts';
import { FEED_TRIMMED_KEY } from '../store/restored.ts';
import { type SettledNumbers, waitAfter } from '../store/settled-numbers.ts';
import type { Reader, Store, Tx } from '../store/store.ts';
import { connectionError, heartbeatFrame, retryFrame } from './frame.ts';
import { limits } from './limits.ts';
import type { Position } from './position.ts';

/** Who may see a record: its owner, and the human members of its team. */
export interface Audience {
  owner_id: string;
  team_num: number | null;
  /** The agent that the record is about, or null. */
  agent_id: string | null;
}

interface Entry extends Audience {
  id: number;
  frame: Buffer;
}

/** Part of an announcement, for those who may see it. */
export interface Announced extends Audience {
  record: Record<string, unknown>;
}

interface Announcement {
  /** Increases with each announcement. */
  number: number;
  ts: number;
  kind: string;
  field: string;
  items: readonly { audience: Audience; json: string }[];
}

export interface FeedOptions {
  store: Store;
  clock: Clock;
  heartbeat_ms?: number;
}

const newEntries = preparedQuery(
  (
    builder,
    ts: number,
    kind: string,
    owner_id: string,
    team_num: number | null,
    agent_id: string | null,
    records: string,
  ) =>
    builder
      .insertInto('feed')
      .columns(['ts', 'kind', 'owner_id', 'team_num', 'agent_id', 'record'])
      .expression((eb) =>
        eb
          .selectFrom(jsonArrayTable({ sql: builder }, records))
          .select([eb.val(ts).as('ts'), eb.val(kind).as('kind'), eb.val(owner_id).as('owner_id')])
          .select([eb.val(team_num).as('team_num'), eb.val(agent_id).as('agent_id'), 'each.value'])
          .orderBy('each.key'),
      )
      .returning('id'),
);

export class Feed {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #heartbeat_ms: number;
  readonly #wakes = new Set<Wake>();
  /** All numbers up to this one are settled, and followers get no entries after it. */
  #head = 0;
  /** The number of the newest entry that is known to be committed. */
  #newest = 0;
  /** The entries that end with the head, without gaps. */
  readonly #ring: Entry[] = [];
  #ring_bytes = 0;
  /** Committed entries that wait for lower numbers, by number. */
  readonly #early = new Map<number, Entry>();
  #early_bytes = 0;
  #settling = false;
  /** The latest of each kind. */
  readonly #announcements = new Map<string, Announcement>();
  #announced = 0;
  #closed = false;
  readonly #trimming: NodeJS.Timeout;

  constructor(options: FeedOptions) {
    this.#store = options.store;
    this.#clock = options.clock;
    this.#heartbeat_ms = options.heartbeat_ms ?? limits.heartbeat_ms;
    this.#trimming = setInterval(() => void this.#trimAll(), limits.feed_trim_ms).unref();
  }

  /** Records the new state of a record in the caller's transaction, for `owner_id` and the team's human members. */
  async append(
    tx: Tx,
    kind: string,
    owner_id: string,
    record: Record<string, unknown>,
    team_num: number | null = null,
    agent_id: string | null = null,
  ): Promise<void> {
    await this.appendAll(tx, kind, owner_id, [JSON.stringify(record)], team_num, agent_id);
  }

  /** Appends several records of one kind, each as JSON. */
  async appendAll(
    tx: Tx,
    kind: string,
    owner_id: string,
    records: readonly string[],
    team_num: number | null,
    agent_id: string | null = null,
  ): Promise<void> {
    const ts = this.#clock.now();
    let ids: number[];
    const entries = newEntries(tx, ts, kind, owner_id, team_num, agent_id, JSON.stringify(records));
    tx.queue(entries, (rows) => {
      // RETURNING guarantees no order, but the ids are assigned in the order of the records.
      ids = rows.map(({ id }) => id).sort((a, b) => a - b);
    });
    tx.afterCommit(() => {
      const audience = { owner_id, team_num, agent_id };
      this.#publish(
        records.map((json, at) => ({
          id: ids[at]!,
          ...audience,
          frame: entryFrame(ids[at]!, ts, kind, json),
        })),
      );
    });
  }

  get hasFollowers(): boolean {
    return this.#wakes.size > 0;
  }

  /**
   * Sends one frame to each current follower: `items` that the follower may see, as the list `field`. A slow follower gets only
   * the latest announcement of each kind.
   */
  announce(kind: string, field: string, items: readonly Announced[]): void {
    this.#announced += 1;
    this.#announcements.set(kind, {
      ...{ number: this.#announced, ts: this.#clock.now(), kind, field },
      items: items.map(({ record, ...audience }) => ({ audience, json: JSON.stringify(record) })),
    });
    for (const wake of this.#wakes) wake.notify();
  }

  /** SSE frames of the entries after `position` (or of new entries) that `canSee` allows. */
  async *follow(
    canSee: (audience: Audience) => boolean,
    position: Position,
    signal: AbortSignal,
  ): AsyncGenerator<Buffer> {
    const wake = new Wake();
    this.#wakes.add(wake);
    try {
      const { newest, trimmed } = await this.#readBounds();
      // Before the first frame: the client reads the lists when it arrives, and must not miss what is committed meanwhile.
      const wanted = typeof position === 'object' && 'after' in position ? position.after : this.#head;
      let announced = this.#announced;
      yield retryFrame;
      let cursor = wanted;
      if (wanted > newest || wanted < trimmed) {
        cursor = this.#head;
        const error = 'changes before this point are no longer kept; reload the lists';
        yield connectionError(cursor, this.#clock.now(), { code: 'reset', error, head: cursor });
      }
      let heartbeat_at = performance.now() + this.#heartbeat_ms;
      while (!signal.aborted && !this.#closed) {
        if (performance.now() >= heartbeat_at) {
          heartbeat_at = performance.now() + this.#heartbeat_ms;
          yield heartbeatFrame(cursor, this.#clock.now());
        }
        if (announced < this.#announced) {
          const frames = this.#announcedAfter(announced, cursor, canSee);
          announced = this.#announced;
          if (frames.length > 0) yield Buffer.concat(frames);
        }
        if (cursor >= this.#head) {
          await wake.wait(heartbeat_at - performance.now(), signal);
          continue;
        }
        // It may move while entries are read.
        const head = this.#head;
        const entries = this.#fromRing(cursor) ?? (await this.#fromStore(cursor, head));
        const frames = entries.filter(canSee).map((entry) => entry.frame);
        cursor = entries.at(-1)?.id ?? head;
        if (frames.length > 0) yield frames.length === 1 ? frames[0]! : Buffer.concat(frames);
      }
    } finally {
      this.#wakes.delete(wake);
    }
  }

  /** Deletes entries older than a day, a bounded number at a time. Resolves to whether there may be more. */
  trim(): Promise<boolean> {
    const before = this.#clock.now() - limits.feed_keep_ms;
    return this.#store.write(async (tx) => {
      const old = await tx.all(
        tx.sql.selectFrom('feed').select(['id', 'ts']).orderBy('id').limit(limits.delete_rows_per_slice),
      );
      const up_to = old.filter((entry) => entry.ts < before).at(-1)?.id;
      if (up_to === undefined) return false;
      await tx.run(tx.sql.deleteFrom('feed').where('id', '<=', up_to));
      await setMeta(tx, FEED_TRIMMED_KEY, String(up_to));
      return old.at(-1)!.id === up_to;
    });
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#trimming);
    for (const wake of this.#wakes) wake.notify();
  }

  async #trimAll(): Promise<void> {
    try {
      while (!this.#closed && (await this.trim()));
    } catch {
      // The store has logged the error; the next trim tries again.
    }
  }

  /** Adds committed entries. Those below the head are in the database, where followers find them. */
  #publish(entries: readonly Entry[]): void {
    for (const entry of entries) {
      if (entry.id <= this.#head) continue;
      this.#early.set(entry.id, entry);
      this.#early_bytes += entry.frame.length;
      this.#newest = Math.max(this.#newest, entry.id);
    }
    this.#join();
    if (this.#early_bytes > limits.tail_ring_bytes_max) {
      this.#early.clear();
      this.#early_bytes = 0;
    }
    if (this.#head < this.#newest) void this.#settle();
  }

  /** Moves the head over entries that continue it. What is below a settled number is settled, and so is its successor. */
  #join(): void {
    const before = this.#head;
    for (let next = this.#early.get(before + 1); next; next = this.#early.get(next.id + 1)) {
      this.#early.delete(next.id);
      this.#early_bytes -= next.frame.length;
      this.#ring.push(next);
      this.#ring_bytes += next.frame.length;
      this.#head = next.id;
    }
    if (this.#head === before) return;
    while (this.#ring_bytes > limits.tail_ring_bytes_max && this.#ring.length > 1) {
      this.#ring_bytes -= this.#ring.shift()!.frame.length;
    }
    for (const wake of this.#wakes) wake.notify();
  }

  /**
   * Moves the head to the newest settled entry. Entries that were not reported are in the database: another process wrote
   * them, or the report is on its way.
   */
  #advance({ up_to }: SettledNumbers): void {
    const end = Math.min(up_to, this.#newest);
    while (this.#head < end) {
      const head = Math.min(end, Math.min(...this.#early.keys()) - 1);
      if (head > this.#head) {
        this.#ring.length = 0;
        this.#ring_bytes = 0;
        this.#head = head;
        for (const wake of this.#wakes) wake.notify();
      }
      this.#join();
    }
  }

  /** Advances the head until nothing newer is known. */
  async #settle(): Promise<void> {
    if (this.#settling) return;
    this.#settling = true;
    try {
      while (!this.#closed) {
        const settled = await this.#store.settledNumbers('feed');
        this.#advance(settled);
        if (this.#head >= this.#newest) break;
        await sleep(waitAfter(settled) ?? 0);
      }
    } catch {
      // The store has logged the error; the next entry and the next follower try again.
    } finally {
      this.#settling = false;
    }
  }

  /** Reads which entries the database has, and moves the head to the newest settled one. */
  async #readBounds(): Promise<{ newest: number; trimmed: number }> {
    const settled = await this.#store.settledNumbers('feed');
    const { newest, trimmed } = await this.#store.read(readBounds);
    this.#newest = Math.max(this.#newest, newest);
    this.#advance(settled);
    if (this.#head < this.#newest) void this.#settle();
    return { newest: this.#newest, trimmed };
  }

  #announcedAfter(number: number, cursor: number, canSee: (audience: Audience) => boolean): Buffer[] {
    return [...this.#announcements.values()]
      .filter((announcement) => announcement.number > number)
      .flatMap((announcement) => announcementFrame(cursor, announcement, canSee) ?? []);
  }

  #fromRing(cursor: number): Entry[] | null {
    const [oldest] = this.#ring;
    if (!oldest || oldest.id > cursor + 1) return null;
    return this.#ring.filter((entry) => entry.id > cursor);
  }

  #fromStore(cursor: number, head: number): Promise<Entry[]> {
    return this.#store.read(async (reader) =>
      (
        await reader.all(
          reader.sql
            .selectFrom('feed')
            .selectAll()
            .where('id', '>', cursor)
            .where('id', '<=', head)
            .orderBy('id')
            .limit(limits.delete_rows_per_slice),
        )
      ).map(({ id, ts, kind, owner_id, team_num, agent_id, record }) => ({
        id,
        owner_id,
        team_num,
        agent_id,
        frame: entryFrame(id, ts, kind, record),
      })),
    );
  }
}

/** Encodes an entry as an SSE frame. `record`: JSON. */
export function entryFrame(id: number, ts_ms: number, kind: string, record: string): Buffer {
  const data = `{"type":${JSON.stringify(kind)},"ts":${ts_ms / 1000},"record":${record}}`;
  return keptText(`id: ${id}\nevent: ${kind}\ndata: ${data}\n\n`);
}

/** Null if there is nothing that the follower may see. */
function announcementFrame(
  cursor: number,
  { ts, kind, field, items }: Announcement,
  canSee: (audience: Audience) => boolean,
): Buffer | null {
  const seen = items.flatMap(({ audience, json }) => (canSee(audience) ? [json] : []));
  if (seen.length === 0) return null;
  const data = `{"type":"${kind}","ts":${ts / 1000},"${field}":[${seen.join(',')}]}`;
  return Buffer.from(`id: ${cursor}\nevent: ${kind}\ndata: ${data}\n\n`);
}

async function readBounds(reader: Reader): Promise<{ newest: number; trimmed: number }> {
  const newest = await reader.get(reader.sql.selectFrom('feed').select('id').orderBy('id', 'desc').limit(1));
  const trimmed = Number((await findMeta(reader, FEED_TRIMMED_KEY)) ?? 0);
  return { newest: Math.max(newest?.id ?? 0, trimmed), trimmed };
}
