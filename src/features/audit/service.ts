/**
 * The audit log: one record per change, written in the transaction of the change and chained to the previous one by its hash.
 * After the commit the record and its hash also go to the service log, so that truncation of the table can be detected.
 * Callers must not put secrets in `details`.
 */
import { setImmediate } from 'node:timers/promises';
import type { Clock } from '../../base/clock.ts';
import { rfc3339 } from '../../base/clock.ts';
import { limits } from '../../base/limits.ts';
import type { Logger } from '../../base/log.ts';
import { type Page, type PageRequest, page, readCursor } from '../../core/page.ts';
import type { Store, Tx } from '../../store/store.ts';
import {
  type AuditFilter,
  type AuditRow,
  auditAfter,
  findWorkdir,
  insertAudit,
  lastAudit,
  listAudit,
} from './queries.ts';
import type { AuditEvent, AuditLevel, AuditRecord } from './rules/audit.ts';
import { auditHash, GENESIS } from './rules/chain.ts';

export interface AuditEntry {
  event: AuditEvent;
  /** Who did it; null if unknown, for example for a failed login. */
  user_id: string | null;
  ip: string | null;
  agent_id?: string | null;
  /** The agent's workdir; only needed if the agent's record no longer exists. */
  workdir?: string | null;
  level?: AuditLevel;
  details?: Record<string, unknown>;
}

export interface Verdict {
  records: number;
  /** The first record whose hash does not match the previous one and its content; null if all do. */
  broken_id: number | null;
  /** Hash of the last valid record, hex. */
  head: string;
  /** Whether a valid record has the requested hash; null if none was requested. */
  holds_head: boolean | null;
}

type AuditLink = Pick<AuditRow, 'id' | 'hash'>;
type NewAudit = Omit<AuditRow, 'id' | 'hash'>;

const VERIFY_ROWS = 1_000;

export class Audit {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #log: Logger;
  /** The records of transactions that have not ended. */
  readonly #waiting = new WeakMap<Tx, NewAudit[]>();

  constructor(deps: { store: Store; clock: Clock; log: Logger }) {
    this.#store = deps.store;
    this.#clock = deps.clock;
    this.#log = deps.log;
  }

  /** Writes one record at the end of the transaction of the action that it describes. */
  async record(tx: Tx, entry: AuditEntry): Promise<void> {
    const content = {
      ts: this.#clock.now(),
      level: entry.level ?? 'info',
      event: entry.event,
      agent_id: entry.agent_id ?? null,
      user_id: entry.user_id,
      ip: entry.ip,
      workdir: entry.workdir ?? (entry.agent_id ? await findWorkdir(tx, entry.agent_id) : null),
      details: JSON.stringify(entry.details ?? {}),
    };
    const waiting = this.#waiting.get(tx);
    if (waiting) {
      waiting.push(content);
      return;
    }
    const contents = [content];
    this.#waiting.set(tx, contents);
    tx.atEnd('audit', lastAudit, (last) => this.#chain(tx, last, contents));
  }

  /** Returns the last record that it wrote. */
  async #chain(tx: Tx, last: AuditLink | undefined, contents: readonly NewAudit[]): Promise<AuditLink> {
    let { id, hash } = last ?? { id: 0, hash: GENESIS };
    for (const content of contents) {
      const row = { id: ++id, ...content };
      const own_hash = auditHash(hash, row);
      await insertAudit(tx, { ...row, hash: own_hash });
      tx.afterCommit(() => this.#report(row, own_hash));
      hash = own_hash;
    }
    return { id, hash };
  }

  #report({ id, ts: _, level, event, details, ...fields }: Omit<AuditRow, 'hash'>, hash: Buffer): void {
    const audit = { audit_id: id, audit_hash: hash.toString('hex') };
    this.#log[level]({ event, ...fields, details: JSON.parse(details), ...audit }, event);
  }

  /** Newest first; without a limit the newest page. */
  list(filter: AuditFilter, request: PageRequest): Promise<Page<AuditRecord>> {
    const limit = request.limit ?? limits.page_items_max;
    const before = readCursor(request.cursor, 'number')?.[0];
    return this.#store.read(async (reader) => {
      const rows = await listAudit(reader, filter, { before, limit: limit + 1 });
      return page(rows, limit, shape, (row) => [row.id]);
    });
  }

  /** Verifies the audit log and logs the result. Never rejects. */
  async check(signal: AbortSignal): Promise<void> {
    try {
      const { records, broken_id, head } = await this.verify(signal);
      const found = { audit_records: records, audit_hash: head };
      if (broken_id === null) this.#log.info(found, 'audit log is valid');
      else
        this.#log.error(
          { ...found, audit_id: broken_id },
          'audit log was modified; this record does not match the chain',
        );
    } catch (error) {
      if (!signal.aborted) this.#log.warn({ err: error }, 'cannot verify the audit log');
    }
  }

  /**
   * Verifies the whole chain of committed records, in slices that yield to other work. `expected_head`: a hash that was recorded
   * elsewhere, for example in the service log, hex; a truncated chain is valid but does not contain it.
   */
  async verify(signal?: AbortSignal, expected_head?: string): Promise<Verdict> {
    let hash: Uint8Array = GENESIS;
    let records = 0;
    let holds_head = expected_head === undefined ? null : false;
    for (let last = 0; ; ) {
      const rows = await this.#store.read((reader) => auditAfter(reader, last, VERIFY_ROWS));
      for (const row of rows) {
        const expected = auditHash(hash, row);
        if (!expected.equals(row.hash)) return { records, broken_id: row.id, head: hex(hash), holds_head };
        hash = expected;
        last = row.id;
        records += 1;
        if (expected_head !== undefined) holds_head ||= hex(hash) === expected_head;
      }
      if (rows.length < VERIFY_ROWS) return { records, broken_id: null, head: hex(hash), holds_head };
      await setImmediate(undefined, { signal });
    }
  }
}

function shape(row: AuditRow): AuditRecord {
  return {
    id: row.id,
    timestamp: rfc3339(row.ts),
    level: row.level,
    event: row.event,
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
