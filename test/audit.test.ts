/** Tampering with the audit log of the real service, in the database file, is detected. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AuditRecord } from '../src/features/audit/rules/audit.ts';
import { TestPlane } from '../src/testing/plane.ts';

let plane: TestPlane;
beforeAll(async () => {
  plane = await TestPlane.open();
});
afterAll(() => plane.close());

const file = () => join(plane.data_dir, 'svc.db');

/** Changes the stopped service's database, as anyone with access to the file could. The checkpoint updates the main file. */
function alter(sql: string): void {
  const db = new DatabaseSync(file());
  db.exec(sql);
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  db.close();
}
const UNLOCK = 'DROP TRIGGER audit_append_only_update; DROP TRIGGER audit_append_only_delete;';

/** Stops the service, changes its file, and starts it again. */
async function whileStopped(act: () => void): Promise<void> {
  expect(await plane.kill('SIGTERM')).toBe(0);
  act();
  await plane.start();
}

async function verify(...more: string[]) {
  const { code, stdout, stderr } = await plane.cli(['audit', 'verify', ...more]);
  return { code, output: stdout + stderr };
}

/** The hash of a record in the service's log. */
function logged(id: number): string {
  const lines = plane.log.split('\n').filter((line) => line.includes(`"audit_id":${id},`));
  return (JSON.parse(lines.at(-1)!) as { audit_hash: string }).audit_hash;
}

test('verify detects a truncated end, a missing record and a changed byte in the real file', {
  timeout: 120_000,
}, async () => {
  for (let at = 0; at < 12; at++) await plane.create({ name: `agent-${at}`, command: 'true', start: false });
  const { stdout } = await plane.cli(['audit', 'export']);
  const records = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as AuditRecord)
    .toReversed();
  const last = records.at(-1)!;
  expect(last).toMatchObject({ id: records.length, event: 'agent_created', hash: logged(last.id) });
  expect(await verify()).toEqual({
    code: 0,
    output: `chain intact: ${records.length} records, head ${last.hash}\n`,
  });
  expect(await verify('--head', last.hash)).toMatchObject({ code: 0 });
  const saved = join(plane.folder, 'audit.ndjson');
  writeFileSync(saved, stdout);
  expect(await verify('--file', saved)).toEqual(await verify());

  // A truncated end: the rest is a valid chain, and only the service's log knows that there was more.
  await whileStopped(() => alter(`${UNLOCK} DELETE FROM audit WHERE id > ${last.id - 2}`));
  expect(await verify()).toMatchObject({ code: 0, output: expect.stringContaining(records.at(-3)!.hash) });
  expect(await verify('--head', logged(last.id))).toEqual({
    code: 1,
    output: `svc: no record has the hash ${last.hash}: the log was truncated or rewritten\n`,
  });

  // A missing record in the middle.
  const missing = last.id - 5;
  await whileStopped(() => alter(`DELETE FROM audit WHERE id = ${missing}`));
  const broken = (id: number, valid = id - 1) =>
    `svc: record ${id} does not match the record before it: ${valid} records before it are valid, head ${records[valid - 1]!.hash}\n`;
  expect(await verify()).toEqual({ code: 1, output: broken(missing + 1, missing - 1) });
  expect(plane.log).toContain('audit log was modified; this record does not match the chain');

  // A flipped bit in the pages of the file.
  const changed = records.find(({ details }) => details.name === 'agent-2')!;
  await whileStopped(() => {
    const bytes = readFileSync(file());
    const text = JSON.stringify(changed.details);
    let found = 0;
    // A page that was split may still contain an old copy.
    for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1), found++)
      bytes[at + text.indexOf('agent-2')]! ^= 1;
    expect(found).toBeGreaterThan(0);
    writeFileSync(file(), bytes);
  });
  expect(await verify()).toEqual({ code: 1, output: broken(changed.id) });
  expect(JSON.parse((await verify('--json')).output.split('\n')[0]!)).toEqual({
    records: changed.id - 1,
    broken_id: changed.id,
    head: records[changed.id - 2]!.hash,
    holds_head: null,
  });
  // The earlier export is still valid.
  expect(await verify('--file', saved)).toMatchObject({ code: 0 });
});
