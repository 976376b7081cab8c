import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { HttpServer } from '../../../server/server.ts';
import { agentRecord } from '../../../testing/agent-record.ts';
import { run } from '../../../testing/cli.ts';
import { openFakeHttp, USER_TOKEN } from '../../../testing/http.ts';
import { findPreset } from '../rules/catalog.ts';
import { presetRecord } from '../rules/preset.ts';

const found = { path: '/bin/x', version: '1.2', env_set: [], files_found: [] };
const list = [
  presetRecord(findPreset('demo')!, found),
  presetRecord(findPreset('codex')!, found),
  presetRecord(findPreset('gemini')!, { ...found, path: null, version: null }),
  presetRecord(findPreset('cursor')!, null),
  presetRecord(findPreset('plain')!, null),
];

let home: string;
let server: HttpServer;
let env: Record<string, string>;
let query: unknown;
beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'svc-cli-presets-'));
  server = await openFakeHttp({
    listPresets: (call) => {
      query = call.query;
      return list;
    },
    createAgent: () => ({
      location: '/api/agents/agt_1',
      body: agentRecord({ status: 'failed', reason: 'spawn_failed', preset: 'gemini' }),
    }),
  });
  env = { SVC_URL: server.url, SVC_TOKEN: USER_TOKEN };
});
afterEach(async () => {
  await server.drain();
  rmSync(home, { recursive: true, force: true });
});

test('presets ls shows what is installed and the next step', async () => {
  const { code, stdout } = await run(['presets', 'ls'], { home, env });
  expect(code).toBe(0);
  const sign_in = 'codex-acp login, or CODEX_API_KEY or OPENAI_API_KEY in env';
  expect(stdout.split('\n')).toEqual([
    'demo\tDemo agent\tyes\t1.2\tyes\tyes\tsvc demo-agent\t-',
    `codex\tCodex\tyes\t1.2\tno\tyes\tcodex-acp\t${sign_in}`,
    'gemini\tGemini CLI\tno\t-\t-\tyes\tgemini --acp\tnpm install -g @google/gemini-cli',
    'cursor\tCursor\tunknown\t-\t-\tno\tcursor-agent acp\t-',
    'plain\tCommand\t-\t-\t-\tno\t-\t-',
    '',
  ]);
  expect(query).toEqual({});
});

test('presets ls shows the next steps in full on a terminal of 80 columns', async () => {
  const { stdout, stderr } = await run(['presets', 'ls'], { home, env, tty: true, columns: 80 });
  expect(stdout).not.toContain('…');
  expect(stderr).toBe(
    `
to install a preset or sign in:
  codex: codex-acp login, or CODEX_API_KEY or OPENAI_API_KEY in env
  gemini: npm install -g @google/gemini-cli
`,
  );
});

test('presets ls queries the given node, with --refresh again, and prints JSON', async () => {
  const argv = ['presets', 'ls', '--node', 'far', '--refresh', '--json'];
  expect(JSON.parse((await run(argv, { home, env })).stdout)).toEqual(list);
  expect(query).toEqual({ node_id: 'far', refresh: true });
});

test('agents create --start fails if the program of the preset is missing, and says how to install it', async () => {
  const { code, stderr } = await run(['agents', 'create', 'x', '-p', 'gemini', '--start'], { home, env });
  expect(code).toBe(1);
  expect(stderr).toContain('svc: agt_1 did not start: spawn_failed\n');
  expect(stderr).toContain('svc: gemini is not installed on node main: npm install -g @google/gemini-cli\n');
});
