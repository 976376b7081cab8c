import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { HttpServer } from '../../../server/server.ts';
import { agentRecord } from '../../../testing/agent-record.ts';
import { run } from '../../../testing/cli.ts';
import { openFakeHttp, ROOT_TOKEN } from '../../../testing/http.ts';

let home: string;
let server: HttpServer;
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'svc-output-'));
  server = await openFakeHttp({
    listAgents: () => ({ items: [agentRecord({})] }),
    sendInput: () => agentRecord({ last_seq: 7 }),
  });
});
afterAll(async () => {
  await server.drain();
  rmSync(home, { recursive: true, force: true });
});

const cli = (argv: string[], input?: string) =>
  run(argv, {
    home,
    env: { SVC_URL: server.url, SVC_TOKEN: ROOT_TOKEN },
    ...(input !== undefined && { input }),
  });

test.each([
  [['agents', 'output', 'one', '--json'], 'svc agents output takes no --json; use svc logs --json'],
  [['--json', 'agents', 'output', 'one'], 'svc agents output takes no --json; use svc logs --json'],
  [['agents', 'changes', 'one', '--patch', '--json'], 'give either --patch or --json'],
])('%j prints bytes, so it refuses --json', async (argv, message) => {
  expect(await cli(argv)).toEqual({ code: 2, stdout: '', stderr: `svc: ${message}\n` });
});

test('help lists --json only for commands that print JSON', async () => {
  expect((await cli(['agents', 'output', '--help'])).stdout).not.toContain('--json');
  expect((await cli(['agents', 'input', '--help'])).stdout).toContain('--json');
});

test('input --json prints the agent’s record once', async () => {
  for (const ran of [
    await cli(['agents', 'input', 'one', 'text', '--json']),
    await cli(['agents', 'input', 'one', '--eof', '--json'], 'text'),
  ]) {
    expect(ran).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(ran.stdout)).toMatchObject({ id: 'agt_1', last_seq: 7 });
  }
  expect(await cli(['agents', 'input', 'one', 'text'])).toMatchObject({ code: 0, stdout: '' });
});
