import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { HttpServer } from '../../../server/server.ts';
import { run } from '../../../testing/cli.ts';
import { openFakeHttp, ROOT_TOKEN, USER_TOKEN } from '../../../testing/http.ts';
import type { AuditRecord } from '../rules/audit.ts';
import { auditHash, GENESIS, toContent } from '../rules/chain.ts';

let home: string;
let server: HttpServer | null;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'svc-cli-audit-'));
  server = null;
});
afterEach(async () => {
  await server?.drain();
  rmSync(home, { recursive: true, force: true });
});

async function open(
  handlers: Parameters<typeof openFakeHttp>[0],
  token = ROOT_TOKEN,
): Promise<Record<string, string>> {
  server = await openFakeHttp(handlers);
  return { SVC_URL: server.url, SVC_TOKEN: token };
}

/** Records 1 to `length`, oldest first, with valid hashes. */
function chain(length: number): AuditRecord[] {
  const records: AuditRecord[] = [];
  let before = GENESIS;
  for (let id = 1; id <= length; id++) {
    const record: AuditRecord = {
      id,
      timestamp: `2026-01-02T03:04:0${id % 10}.678Z`,
      level: 'info',
      event: 'agent_started',
      agent_id: `agt_${id}`,
      user_id: 'usr_ada',
      ip: null,
      workdir: null,
      details: { b: id, 7: 'ü', nested: { 2: [1.5, null], 1: '\ud800' } },
      hash: '',
    };
    before = auditHash(before, toContent(record));
    records.push({ ...record, hash: Buffer.from(before).toString('hex') });
  }
  return records;
}
const records = chain(6);
const hashOf = (id: number) => records[id - 1]!.hash;

async function verify(given: readonly AuditRecord[], ...more: string[]) {
  const input = given.map((record) => `${JSON.stringify(record)}\n`).join('');
  const { code, stdout, stderr } = await run(['audit', 'verify', '--file', '-', ...more], { home, input });
  return { code, said: stdout + stderr };
}
const both = (given: readonly AuditRecord[]) => [given, given.toReversed()];

test('ls shows times and ids in full on a terminal of 80 columns', async () => {
  const user_id = 'usr_abcdefghijklmnop';
  const agent_id = 'agt_abcdefghijklmnop';
  const [first, second] = records.map((record) => ({ ...record, user_id, agent_id }));
  const env = await open({ listAudit: () => ({ items: [first!, second!] }) });
  const { stdout } = await run(['audit', 'ls'], { home, env, tty: true, columns: 80 });
  const [heading, row] = stdout.replace(/\x1b\[\d*m/g, '').split('\n');
  expect(heading).toMatch(/^ID +TIME +EVENT +USER/);
  expect(row).toMatch(new RegExp(`^1 +2026-01-02T03:04:01Z +agent_started +${user_id}`));
  expect(stdout).not.toContain('…');
});

test('ls prints the newest matching records, up to the limit', async () => {
  const asked: unknown[] = [];
  const env = await open({
    listAudit: ({ query }) => {
      asked.push(query);
      return { items: records.toReversed() };
    },
  });
  const { stdout } = await run(['audit', 'ls', '-n', '2'], { home, env });
  expect(stdout.split('\n').map((line) => line.split('\t').slice(0, 5))).toEqual([
    ['6', '2026-01-02T03:04:06.678Z', 'agent_started', 'usr_ada', 'agt_6'],
    ['5', '2026-01-02T03:04:05.678Z', 'agent_started', 'usr_ada', 'agt_5'],
    [''],
  ]);
  const filter = ['--event', 'user_login', '--user', 'usr_a', '--agent', 'agt_a'];
  await run(['audit', 'ls', ...filter, '--since', '2026-01-02T03:04:05Z'], { home, env });
  expect(asked[1]).toMatchObject({
    ...{ event: 'user_login', user_id: 'usr_a', agent_id: 'agt_a', since: '2026-01-02T03:04:05.000Z' },
  });
  const wrong = await run(['audit', 'ls', '--until', 'yesterday'], { home, env });
  expect([wrong.code, asked.length]).toEqual([2, 2]);
});

test('export prints all pages, one record per line, in a form that can be verified', async () => {
  const env = await open({
    listAudit: ({ query }) =>
      query.cursor === undefined
        ? { items: records.slice(3).toReversed(), next_cursor: 'more' }
        : { items: records.slice(0, 3).toReversed() },
  });
  const { stdout } = await run(['audit', 'export'], { home, env });
  expect(
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toEqual(records.toReversed());
  writeFileSync(join(home, 'audit.ndjson'), stdout);
  const checked = await run(['audit', 'verify', '--file', 'audit.ndjson'], { home });
  expect(checked).toEqual({ code: 0, stdout: `chain intact: 6 records, head ${hashOf(6)}\n`, stderr: '' });
});

test('verify prints the result of the plane, and exits with 1 if the chain is broken', async () => {
  const valid = { records: 6, broken_id: null, head: hashOf(6), holds_head: null };
  const asked: unknown[] = [];
  let verdict: typeof valid | { holds_head: boolean } | { broken_id: number } = valid;
  const env = await open({
    verifyAudit: ({ query }) => {
      asked.push(query.head);
      return { ...valid, ...verdict };
    },
  });
  const ask = async (...more: string[]) => {
    const { code, stdout, stderr } = await run(['audit', 'verify', ...more], { home, env });
    return [code, stdout, stderr];
  };
  expect(await ask()).toEqual([0, `chain intact: 6 records, head ${hashOf(6)}\n`, '']);
  expect(JSON.parse((await ask('--json'))[1] as string)).toEqual(valid);
  verdict = { holds_head: false };
  expect(await ask('--head', hashOf(3))).toEqual([
    1,
    '',
    `svc: no record has the hash ${hashOf(3)}: the log was truncated or rewritten\n`,
  ]);
  expect(asked).toEqual([undefined, undefined, hashOf(3)]);
  verdict = { broken_id: 7 };
  const broken = `record 7 does not match the record before it: 6 records before it are valid, head ${hashOf(6)}`;
  expect(await ask()).toEqual([1, '', `svc: ${broken}\n`]);
  const [code, stdout] = await ask('--json');
  expect([code, JSON.parse(stdout as string)]).toEqual([1, { ...valid, broken_id: 7 }]);
  expect((await ask('--head', 'nonsense'))[0]).toBe(1);
});

test('requires root', async () => {
  const env = await open({}, USER_TOKEN);
  for (const command of ['ls', 'export', 'verify']) {
    const { code, stderr } = await run(['audit', command], { home, env });
    expect([command, code, stderr]).toEqual([command, 4, 'svc: root required\n']);
  }
});

test('verifies a file in either order, complete or from a later record on', async () => {
  for (const given of both(records))
    expect(await verify(given)).toEqual({ code: 0, said: `chain intact: 6 records, head ${hashOf(6)}\n` });
  for (const given of both(records.slice(2))) {
    const said = `chain intact: 4 records from 3 on, head ${hashOf(6)}\n`;
    expect(await verify(given)).toEqual({ code: 0, said });
  }
  expect(await verify(records.slice(0, 1))).toMatchObject({ code: 0 });
});

test.each<[string, (given: AuditRecord[]) => AuditRecord[], number]>([
  ['a changed field', (given) => given.with(2, { ...given[2]!, ip: '10.0.0.9' }), 3],
  ['a changed detail', (given) => given.with(3, { ...given[3]!, details: {} }), 4],
  ['a changed time', (given) => given.with(3, { ...given[3]!, timestamp: '2026-01-02T03:04:05.000Z' }), 4],
  ['a changed beginning', (given) => given.with(0, { ...given[0]!, user_id: null }), 1],
  ['a changed end', (given) => given.with(5, { ...given[5]!, event: 'agent_stopped' }), 6],
  ['a forged hash', (given) => given.with(1, { ...given[1]!, hash: '00'.repeat(32) }), 2],
  ['a removed record', (given) => given.toSpliced(2, 1), 4],
  ['two breaks, the first of them', (given) => given.toSpliced(4, 1).toSpliced(1, 1), 3],
])('finds %s in a file', async (_what, tamper, broken_id) => {
  for (const given of both(tamper(records))) {
    const { code, said } = await verify(given, '--json');
    const [json = ''] = said.split('\n');
    expect([code, JSON.parse(json).broken_id]).toEqual([1, broken_id]);
    const valid = given.filter(({ id }) => id < broken_id).length;
    expect(JSON.parse(json)).toMatchObject({ records: valid, head: valid > 0 ? hashOf(valid) : '' });
    expect(said).toContain(`record ${broken_id} does not match the record before it`);
  }
});

test('detects a truncated file by a known hash, and a duplicate record without one', async () => {
  for (const given of both(records.slice(0, 4))) {
    expect(await verify(given, '--head', hashOf(4))).toMatchObject({ code: 0 });
    expect(await verify(given, '--head', hashOf(2))).toMatchObject({ code: 0 });
    expect(await verify(given, '--head', hashOf(6))).toMatchObject({ code: 1 });
  }
  for (const given of both(records.toSpliced(2, 0, records[2]!))) {
    const { said } = await verify(given, '--json');
    expect(JSON.parse(said.split('\n')[0]!)).toMatchObject({ records: 3, broken_id: 3, head: hashOf(3) });
  }
  // Records after a break are not trusted.
  for (const given of both(records.with(3, { ...records[3]!, ip: 'x' }))) {
    const { said } = await verify(given, '--head', hashOf(6), '--json');
    expect(JSON.parse(said.split('\n')[0]!)).toMatchObject({ broken_id: 4, holds_head: false });
  }
});

test('rejects a file that is not an export', async () => {
  const said = async (input: string) =>
    (await run(['audit', 'verify', '--file', '-'], { home, input })).stderr;
  expect(await said('')).toBe('svc: the file has no audit records\n');
  for (const line of ['no', '{}', 'null', '[]', '{"id": 1, "hash": 1}'])
    expect(await said(`${JSON.stringify(records[0])}\n${line}\n`)).toBe(
      'svc: line 2 is not an audit record\n',
    );
  const missing = await run(['audit', 'verify', '--file', 'none'], { home });
  expect([missing.code, missing.stderr]).toEqual([1, expect.stringMatching(/^svc: .*none/)]);
});
