/**
 * The audit trail: one record per change, written in the transaction of the change, each hashed over the one before.
 * After the commit the record also goes to the log, with its hash, so that a cut-off tail of the table can be told from
 * the log. Details never hold secrets: who records leaves them out.
 */
import { setImmediate } from 'node:timers/promises';
import type { Clock } from '../base/clock.ts';
import { rfc3339 } from '../base/clock.ts';
import { limits } from '../base/limits.ts';
import type { Logger } from '../base/log.ts';
import type { AuditEvent, AuditLevel, AuditRecord } from '../domain/audit.ts';
import { auditHash, GENESIS } from '../domain/audit-chain.ts';
import type { Reader, Store, Tx } from '../store/store.ts';
import type { Tables } from '../store/tables.ts';
import { type Page, type PageRequest, page, readCursor } from './page.ts';

export interface AuditEntry {
  event: AuditEvent;
  /** Who did it; null when nobody is known, for example at a failed login. */
  user_id: string | null;
  ip: string | null;
  agent_id?: string | null;
  /** Of the agent; only needed where the agent's record does not exist any more. */
  workdir?: string | null;
  level?: AuditLevel;
  details?: Record<string, unknown>;
}

export interface AuditFilter {
  event?: string | undefined;
  user_id?: string | undefined;
  agent_id?: string | undefined;
  /** Unix milliseconds; `since` inclusive, `until` exclusive. */
  since?: number | undefined;
  until?: number | undefined;
}

export interface Verdict {
  records: number;
  /** The first record whose hash does not follow from the one before and its own content; null when all do. */
  broken_id: number | null;
  /** Hash of the last sound record, hex. */
  head: string;
  /** Whether one of the sound records has the hash that was asked for; null where none was. */
  holds_head: boolean | null;
}

type Row = { [K in keyof Tables['audit']]: K extends 'id' ? number : Tables['audit'][K] };

const VERIFY_ROWS = 1_000;

export class Audit {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #log: Logger;

  constructor(deps: { store: Store; clock: Clock; log: Logger }) {
    this.#store = deps.store;
    this.#clock = deps.clock;
    this.#log = deps.log;
  }

  /** Writes one record, to be committed or thrown away with the act that it tells of. */
  record(tx: Tx, entry: AuditEntry): void {
    const before = tx.get(tx.sql.selectFrom('audit').select(['id', 'hash']).orderBy('id', 'desc').limit(1));
    const row = {
      id: (before?.id ?? 0) + 1,
      ts: this.#clock.now(),
      level: entry.level ?? 'info',
      event: entry.event,
      agent_id: entry.agent_id ?? null,
      user_id: entry.user_id,
      ip: entry.ip,
      workdir: entry.workdir ?? workdirOf(tx, entry.agent_id),
      details: JSON.stringify(entry.details ?? {}),
    };
    const hash = auditHash(before?.hash ?? GENESIS, row);
    tx.run(tx.sql.insertInto('audit').values({ ...row, hash }));
    tx.afterCommit(() => {
      const { id, ts, level, details, ...fields } = row;
      this.#log[row.level](
        { ...fields, details: entry.details ?? {}, audit_id: id, audit_hash: hash.toString('hex') },
        entry.event,
      );
    });
  }

  /** Newest first; without a limit the newest page. */
  list(filter: AuditFilter, request: PageRequest): Promise<Page<AuditRecord>> {
    const limit = request.limit ?? limits.page_items_max;
    const before = readCursor(request.cursor, 'number')?.[0];
    return this.#store.read((reader) => {
      let query = reader.sql.selectFrom('audit').selectAll().orderBy('id', 'desc');
      if (filter.event !== undefined) query = query.where('event', '=', filter.event);
      if (filter.user_id !== undefined) query = query.where('user_id', '=', filter.user_id);
      if (filter.agent_id !== undefined) query = query.where('agent_id', '=', filter.agent_id);
      if (filter.since !== undefined) query = query.where('ts', '>=', filter.since);
      if (filter.until !== undefined) query = query.where('ts', '<', filter.until);
      if (before !== undefined) query = query.where('id', '<', before);
      const rows = reader.all(query.limit(limit + 1)) as Row[];
      return page(rows, limit, shape, (row) => [row.id]);
    });
  }

  /** Verifies the trail and tells the log. Never rejects. */
  async check(signal: AbortSignal): Promise<void> {
    try {
      const { records, broken_id, head } = await this.verify(signal);
      const found = { audit_records: records, audit_hash: head };
      if (broken_id === null) this.#log.info(found, 'audit trail is sound');
      else
        this.#log.error(
          { ...found, audit_id: broken_id },
          'audit trail was changed: this record is not as it was',
        );
    } catch (error) {
      if (!signal.aborted) this.#log.warn({ err: error }, 'audit trail could not be verified');
    }
  }

  /**
   * Walks the whole chain of committed records, in slices, between which others get their turn. `wanted`: a hash that was
   * noted elsewhere, in the log say, hex; records that were cut off at the end leave a sound chain without it.
   */
  async verify(signal?: AbortSignal, wanted?: string): Promise<Verdict> {
    let hash: Uint8Array = GENESIS;
    let records = 0;
    let holds_head = wanted === undefined ? null : false;
    for (let last = 0; ; ) {
      const rows = await this.#store.read((reader) => slice(reader, last));
      for (const row of rows) {
        const expected = auditHash(hash, row);
        if (!expected.equals(row.hash)) return { records, broken_id: row.id, head: hex(hash), holds_head };
        hash = expected;
        last = row.id;
        records += 1;
        if (wanted !== undefined) holds_head ||= hex(hash) === wanted;
      }
      if (rows.length < VERIFY_ROWS) return { records, broken_id: null, head: hex(hash), holds_head };
      await setImmediate(undefined, { signal });
    }
  }
}

function workdirOf(reader: Reader, agent_id: string | null | undefined): string | null {
  if (!agent_id) return null;
  return (
    reader.get(reader.sql.selectFrom('agents').select('workdir').where('id', '=', agent_id))?.workdir ?? null
  );
}

function slice(reader: Reader, after: number): Row[] {
  return reader.all(
    reader.sql.selectFrom('audit').selectAll().where('id', '>', after).orderBy('id').limit(VERIFY_ROWS),
  ) as Row[];
}

function shape(row: Row): AuditRecord {
  return {
    id: row.id,
    timestamp: rfc3339(row.ts),
    level: row.level as AuditLevel,
    event: row.event as AuditEvent,
    agent_id: row.agent_id,
    user_id: row.user_id,
    ip: row.ip,
    workdir: row.workdir,
    details: JSON.parse(row.details) as Record<string, unknown>,
    hash: hex(row.hash),
  };
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}
