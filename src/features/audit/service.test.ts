import { DatabaseSync } from 'node:sqlite';
import pino from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { addAgent } from '../../store/testing.ts';
import { AccountsFixture } from '../../testing/accounts.ts';
import { execute } from '../../testing/postgres.ts';
import { sqliteTest } from '../../testing/test-store.ts';
import type { AuditEvent } from './rules/audit.ts';

let fixture: AccountsFixture;
const lines: Record<string, unknown>[] = [];
const log = pino({ level: 'info' }, { write: (line: string) => lines.push(JSON.parse(line)) });
beforeEach(async () => {
  lines.length = 0;
  fixture = await AccountsFixture.open({ log });
});
afterEach(() => fixture.close());

async function record(event: AuditEvent, user_id = 'usr_a', agent_id: string | null = null): Promise<void> {
  await fixture.store.write((tx) =>
    fixture.audit.record(tx, { event, user_id, agent_id, ip: '10.0.0.1', workdir: null, details: { event } }),
  );
}

/** Changes rows in the database directly, as an attacker with access to it could. */
async function tamper(sql: string): Promise<void> {
  const { source } = fixture.store;
  if (source.kind === 'postgres') {
    await execute(source.url, `SET session_replication_role = replica; ${sql}`);
  } else {
    const db = new DatabaseSync(source.path);
    db.exec('DROP TRIGGER audit_append_only_update; DROP TRIGGER audit_append_only_delete;');
    db.exec(sql);
    db.close();
  }
  // Reads between two commits share a snapshot; this write ends it.
  await fixture.store.write(() => {});
}

describe('audit', () => {
  it('commits a record together with its action, or neither', async () => {
    const act = fixture.store.write(async (tx) => {
      await fixture.audit.record(tx, { event: 'agent_created', user_id: 'usr_a', ip: null });
      throw new Error('no');
    });
    await expect(act).rejects.toThrow('no');
    expect((await fixture.audit.list({}, {})).items).toEqual([]);
    expect(lines).toEqual([]);
  });

  it('takes the workdir from the agent unless specified', async () => {
    await addAgent(fixture.store, 'agt_a');
    const stored = await fixture.store.read((reader) =>
      reader.get(reader.sql.selectFrom('agents').select('workdir')),
    );
    const entry = { event: 'permission_reviewed', user_id: null, ip: null } as const;
    await fixture.store.write(async (tx) => {
      await fixture.audit.record(tx, { ...entry, agent_id: 'agt_a' });
      await fixture.audit.record(tx, { ...entry, agent_id: 'agt_a', workdir: '/elsewhere' });
      await fixture.audit.record(tx, { ...entry, agent_id: 'agt_deleted' });
      await fixture.audit.record(tx, entry);
    });
    const { items } = await fixture.audit.list({}, {});
    expect(items.map(({ workdir }) => workdir).toReversed()).toEqual([
      stored!.workdir,
      '/elsewhere',
      null,
      null,
    ]);
  });

  it('shows the seven fields, null if missing, and logs them with the hash', async () => {
    await fixture.store.write((tx) =>
      fixture.audit.record(tx, {
        event: 'agent_started',
        user_id: 'usr_a',
        agent_id: 'agt_1',
        ip: null,
        workdir: '/srv/w',
        details: { n: 1 },
      }),
    );
    const { items } = await fixture.audit.list({}, {});
    const { hash, ...rest } = items[0]!;
    expect(rest).toEqual({
      id: 1,
      timestamp: new Date(fixture.clock.now()).toISOString(),
      level: 'info',
      event: 'agent_started',
      agent_id: 'agt_1',
      user_id: 'usr_a',
      ip: null,
      workdir: '/srv/w',
      details: { n: 1 },
    });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({
      event: 'agent_started',
      user_id: 'usr_a',
      agent_id: 'agt_1',
      ip: null,
      workdir: '/srv/w',
      audit_hash: hash,
    });
  });

  it('lists newest first, with filters, page by page without gaps', async () => {
    for (let i = 0; i < 7; i++) {
      await record(i % 2 ? 'agent_started' : 'agent_stopped', i < 4 ? 'usr_a' : 'usr_b', `agt_${i}`);
      fixture.clock.advance(1_000);
    }
    const ids = [];
    let cursor: string | undefined;
    do {
      const page = await fixture.audit.list({}, { limit: 3, cursor });
      ids.push(...page.items.map((item) => item.id));
      cursor = page.next_cursor;
    } while (cursor);
    expect(ids).toEqual([7, 6, 5, 4, 3, 2, 1]);
    const seen = async (filter: Parameters<typeof fixture.audit.list>[0]) =>
      (await fixture.audit.list(filter, {})).items.map((item) => item.id);
    expect(await seen({ event: 'agent_started' })).toEqual([6, 4, 2]);
    expect(await seen({ user_id: 'usr_b', event: 'agent_stopped' })).toEqual([7, 5]);
    expect(await seen({ agent_id: 'agt_2' })).toEqual([3]);
    const start = fixture.clock.now() - 7_000;
    expect(await seen({ since: start + 2_000, until: start + 4_000 })).toEqual([4, 3]);
  });

  it('rejects invalid cursors', async () => {
    for (const cursor of ['x', '', 'W10', 'WyJhIl0', 'WzEsMl0', 'e30', 'WzEuNV0', '[1]'])
      expect(() => fixture.audit.list({}, { cursor })).toThrow('invalid cursor');
  });

  it('cannot be changed through the service', async () => {
    await record('agent_created');
    const { store } = fixture;
    await expect(store.write((tx) => tx.run(tx.sql.deleteFrom('audit')))).rejects.toThrow('append-only');
    const change = store.write((tx) => tx.run(tx.sql.updateTable('audit').set({ user_id: 'usr_x' })));
    await expect(change).rejects.toThrow('append-only');
  });

  sqliteTest('verifies more records than one slice, from concurrent writers', async () => {
    await Promise.all(Array.from({ length: 1_203 }, (_, i) => record('agent_started', `usr_${i}`)));
    const { items } = await fixture.audit.list({}, { limit: 1 });
    expect(await fixture.audit.verify()).toEqual({
      records: 1_203,
      broken_id: null,
      head: items[0]!.hash,
      holds_head: null,
    });
  });

  it.each([
    ['a changed field', `UPDATE audit SET ip = '10.9.9.9' WHERE id = 3`, 3],
    ['a changed detail', `UPDATE audit SET details = '{}' WHERE id = 2`, 2],
    ['a removed record', 'DELETE FROM audit WHERE id = 2', 3],
    ['a removed beginning', 'DELETE FROM audit WHERE id = 1', 2],
    ['two swapped records', 'UPDATE audit SET id = CASE id WHEN 2 THEN 99 ELSE id END', 3],
    ['a forged hash', 'UPDATE audit SET hash = (SELECT hash FROM audit WHERE id = 1) WHERE id = 4', 4],
  ])('finds %s', async (_what, sql, broken_id) => {
    for (let i = 0; i < 5; i++) await record('agent_started', `usr_${i}`);
    expect((await fixture.audit.verify()).broken_id).toBeNull();
    await tamper(sql);
    expect((await fixture.audit.verify()).broken_id).toBe(broken_id);
  });

  it('logs whether the audit log is valid', async () => {
    for (let i = 0; i < 3; i++) await record('agent_started');
    const { signal } = new AbortController();
    await fixture.audit.check(signal);
    expect(lines.at(-1)).toMatchObject({ level: 30, audit_records: 3, msg: 'audit log is valid' });
    await tamper(`UPDATE audit SET user_id = NULL WHERE id = 2`);
    await fixture.audit.check(signal);
    expect(lines.at(-1)).toMatchObject({ level: 50, audit_records: 1, audit_id: 2 });
  });

  it('detects a truncated audit log by a hash from the service log', async () => {
    for (let i = 0; i < 3; i++) await record('agent_started');
    const last = lines.at(-1)!.audit_hash;
    expect((await fixture.audit.verify()).head).toBe(last);
    await tamper('DELETE FROM audit WHERE id = 3');
    expect(await fixture.audit.verify()).toMatchObject({ records: 2, broken_id: null });
    expect((await fixture.audit.verify()).head).not.toBe(last);
  });

  it('finds a known hash among the valid records, whatever follows it', async () => {
    for (let i = 0; i < 3; i++) await record('agent_started');
    const noted = String(lines.at(-1)!.audit_hash);
    const matchesHead = async (head: string) => (await fixture.audit.verify(undefined, head)).holds_head;
    expect(await matchesHead(noted)).toBe(true);
    await record('agent_stopped');
    expect(await matchesHead(noted)).toBe(true);
    expect(await matchesHead('ab'.repeat(32))).toBe(false);
    // Truncated, then covered up with a new record of the same number.
    await tamper('DELETE FROM audit WHERE id >= 3');
    await record('agent_stopped');
    expect(await fixture.audit.verify(undefined, noted)).toMatchObject({
      ...{ records: 3, broken_id: null, holds_head: false },
    });
  });
});
