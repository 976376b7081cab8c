/** The commands of how-to guides, line by line, against the real program. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SVC, TestPlane } from '../src/testing/plane.ts';
import { makeRepository } from '../src/testing/repository.ts';
import { guideBlocks, put } from '../src/testing/tutorials.ts';

let plane: TestPlane;
let repo: string;
beforeAll(async () => {
  plane = await TestPlane.open();
  repo = makeRepository(`${plane.work}/repo`, { 'a.txt': 'one\n' });
});
afterAll(() => plane?.close());

/** Runs a script as the root user, in a repository, and expects that every command succeeds. */
async function run(script: string): Promise<string> {
  const env = { ...plane.env, SVC_URL: plane.url, SVC_TOKEN: plane.token };
  const child = spawn('bash', ['-euo', 'pipefail', '-c', script], {
    cwd: repo,
    env: { ...env, PATH: `${dirname(SVC)}:${process.env.PATH}` },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = once(child, 'close');
  const [stdout, stderr] = await Promise.all([readAll(child.stdout), readAll(child.stderr)]);
  await ended;
  expect(child.exitCode, `${script}\n${stdout}\n${stderr}`).toBe(0);
  return stdout;
}

test('the guide on API tokens works as written', async () => {
  const spec = { members: [{ member_id: 'a' }] };
  await plane.client.call('createTeam', { body: { name: 'release', spec } });
  const [tokens, ...more] = await guideBlocks('tokens', 'Create and delete tokens');
  expect(more).toEqual([]);
  const lines = (await run(tokens!)).trimEnd().split('\n');
  expect(lines.slice(0, 3)).toEqual(Array(3).fill(expect.stringMatching(/^svc_[\w-]+$/)));
  expect(lines.slice(3).map((line) => line.split('\t')[1])).toEqual(['watch', 'deploy', 'backup']);
});

test('the guide on the audit log works as written', async () => {
  const [search, ...others] = await guideBlocks('audit', 'Search the log');
  const [verify, head, file, ...more] = await guideBlocks('audit', 'Verify the log');
  expect([...others, ...more]).toEqual([]);
  await run(search!);
  const chain = /^chain intact: \d+ records, head ([0-9a-f]{64})$/m;
  const [, hash] = chain.exec(await run(verify!))!;
  expect(await run(put(head!, { '5f1c…': hash! }))).toMatch(chain);
  expect(await run(file!)).toMatch(chain);
});

test('the guide on presets works as written', async () => {
  const [list, create, mode, ...more] = await guideBlocks('presets', 'Start an agent from a preset').then(
    async (blocks) => [...blocks, ...(await guideBlocks('presets', 'Permission mode'))],
  );
  expect(more).toEqual([]);
  const other_node = list!.split('\n').find((line) => line.includes('--node box'))!;
  expect(await run(put(list!, { [other_node.trim()]: '' }))).toContain('demo\tDemo agent\tyes');
  const agents = await Promise.all([create!, mode!].map((block) => run(block)));
  const created = (name: string) => expect.stringMatching(new RegExp(`^agt_\\w+\t${name}\tcreated\n$`));
  expect(agents).toEqual([created('fix'), created('docs')]);
});
