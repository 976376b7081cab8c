import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { HttpServer } from '../../../server/server.ts';
import { run } from '../../../testing/cli.ts';
import { openFakeHttp, ROOT_TOKEN } from '../../../testing/http.ts';
import type { WorktreeDeletion, WorktreeRecord } from '../rules.ts';

const record: WorktreeRecord = {
  ...{ id: 'agt_abcdefghijklmnop', state: 'kept', node_id: 'main', repo: '/home/ana/src/shop' },
  ...{ workdir: '/home/ana/.local/share/svc/worktrees/shop-fix-login', branch: 'svc/fix-login' },
  ...{ agent_name: 'fix-login', agent_status: null, owner_id: 'usr_1' },
  ...{ team_id: null, run_id: null, member_id: null, kept_at: '2026-11-22T10:00:00.000Z' },
  ...{ reason: 'uncommitted changes', diff: { files: 3, added: 40, removed: 2 } as WorktreeRecord['diff'] },
};
let home: string;
let server: HttpServer;
beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'svc-worktrees-'));
  const deleteWorktree = ({
    query: { force = false },
  }: {
    query: { force?: boolean };
  }): WorktreeDeletion => ({
    ...{ id: record.id, node_id: 'main', workdir: record.workdir, outcome: force ? 'removed' : 'kept' },
    ...{ reason: 'the folder belongs to another agent now', record_only: true, branch_kept: null },
  });
  server = await openFakeHttp({ listWorktrees: () => ({ items: [record] }), deleteWorktree });
});
afterEach(async () => {
  await server.drain();
  rmSync(home, { recursive: true, force: true });
});

async function list(columns?: number): Promise<string[]> {
  const env = { SVC_URL: server.url, SVC_TOKEN: ROOT_TOKEN, NO_COLOR: '1' };
  const terminal = columns === undefined ? {} : { tty: true, columns };
  const { stdout } = await run(['worktrees', 'ls'], { home, env, ...terminal });
  return stdout.trimEnd().split('\n');
}

test('svc worktrees ls leaves out the folder, then the changes, before it shortens the reason', async () => {
  const [wide, narrow, narrower] = [await list(160), await list(90), await list(80)];
  expect(wide[0]).toMatch(/^ID +AGENT +NODE +STATE +CHANGES +KEPT BECAUSE +WORKDIR$/);
  expect(wide[1]).toContain(record.workdir);
  const shortened = await list(120);
  expect(shortened[1]).toMatch(/uncommitted changes {2}…\S{19,}shop-fix-login$/);
  expect(shortened[1]).toHaveLength(120);
  expect(narrow[0]).toMatch(/^ID +AGENT +NODE +STATE +CHANGES +KEPT BECAUSE$/);
  expect(narrow[1]).toMatch(/ 3 files, \+40 -2 {2}uncommitted changes$/);
  expect(narrower[0]).toMatch(/^ID +AGENT +NODE +STATE +KEPT BECAUSE$/);
  for (const [rows, columns] of [
    [narrow, 90],
    [narrower, 80],
  ] as const)
    expect(rows[1]!.length).toBeLessThanOrEqual(columns);
});

test('svc worktrees ls prints everything in a pipe', async () => {
  expect(await list()).toEqual([
    `${record.id}\tfix-login\tmain\tkept\t3 files, +40 -2\tuncommitted changes\t${record.workdir}`,
  ]);
});

test('svc worktrees rm says how to remove only the record if the folder is another agent’s', async () => {
  const env = { SVC_URL: server.url, SVC_TOKEN: ROOT_TOKEN, NO_COLOR: '1' };
  const [kept, removed] = [
    await run(['worktrees', 'rm', record.id], { home, env }),
    await run(['worktrees', 'rm', '--force', record.id], { home, env }),
  ];
  expect(kept.code).toBe(1);
  expect(kept.stderr).toContain(
    `to remove only its record, and leave the folder: svc worktrees rm --force ${record.id}`,
  );
  expect(removed).toMatchObject({
    code: 0,
    stderr: `removed only the record of ${record.workdir}: the folder belongs to another agent now\n`,
  });
});
