/**
 * Secrets in an agent's environment are redacted wherever its output is stored or shown, on the main node and on a remote
 * one, even if the plane or the node is killed meanwhile. All other bytes arrive unchanged.
 */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { zstdDecompressSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sleep } from '../src/base/async.ts';
import { parseBlocks } from '../src/events/segment.ts';
import { TestAgentNode, WITH_NODES } from '../src/testing/agent-node.ts';
import { History } from '../src/testing/history.ts';
import { firstOf } from '../src/testing/long.ts';
import { TestPlane } from '../src/testing/plane.ts';

const KEY = 'whole-plane-k3y-42';
const PEM = '-----BEGIN KEY-----\nMIIBVQIBADANBgkq\n-----END KEY-----';
const env = { KEY, PEM, SHORT: 'short77' };
/** Until `stop` exists, prints lines in two pieces that split the secret; then many whole lines and special cases. */
const TALKER = `
n=0
while [ ! -e stop ]; do
  printf 'piece %s: %s' "$n" "\${KEY%?????}"
  sleep 0.02
  printf '%s\\n' "\${KEY#?????????????}"
  n=$((n + 1))
done
yes "all of it: $KEY$KEY" | head -n "$LINES"
printf '\\377%s %s\\n' "$KEY" "$SHORT"
printf 'token %s\\n' "$(cat "$SVC_ACTOR_TOKEN_FILE")"
printf '%s and %s' "$PEM" "\${KEY%?}" >&2
exit 3
`;

let plane: TestPlane;
let node: TestAgentNode;

beforeAll(async () => {
  plane = await TestPlane.open({ env: WITH_NODES });
  node = await TestAgentNode.open(plane);
});
afterAll(async () => {
  await node?.close();
  await plane?.close();
});

test.each(firstOf(1, ['n1', 'main']))(
  'on node %s no secret is stored or shown and no other output is lost, despite kills',
  async (where) => {
    const { work } = where === 'main' ? plane : node;
    // On the main node, enough for some of it to be sealed.
    const count = where === 'main' ? 230_000 : 10_000;
    if (where === 'n1') await node.until('connected');
    const agent = await plane.client.call('createAgent', {
      body: {
        name: 'talker',
        node_id: where,
        command: TALKER,
        workdir: work,
        env: { ...env, LINES: String(count) },
        start: true,
      },
    });
    const history = new History(plane.client, agent.id);
    for (let kill = 0; kill < 2; kill++) {
      const seen = history.events.length;
      while (history.events.length < seen + 5) await sleep(20);
      if (where === 'n1' && kill === 1) {
        await node.kill();
        await node.start();
      } else {
        await plane.kill();
        await plane.start();
      }
    }
    await writeFile(join(work, 'stop'), '');
    const ended = await plane.finished(agent.id);
    expect(ended).toMatchObject({ status: 'failed', exit_code: 3 });
    while (history.events.at(-1)?.data.status !== 'failed') await sleep(20);
    await history.close();

    const shown = history.bytes('stdout').toString('latin1');
    const pieces = (shown.match(/^piece /gm) ?? []).length;
    const lines = Array.from({ length: pieces }, (_, n) => `piece ${n}: [redacted:KEY]\n`).join('');
    const all = 'all of it: [redacted:KEY][redacted:KEY]\n'.repeat(count);
    const rest = '\xff[redacted:KEY] short77\ntoken [redacted:SVC_ACTOR_TOKEN]\n';
    expect(pieces).toBeGreaterThan(10);
    expect(shown === lines + all + rest).toBe(true);
    expect(history.bytes('stderr').toString()).toBe(`[redacted:PEM] and ${KEY.slice(0, -1)}`);
    expect(history.sequenceError()).toBeNull();

    const output = await plane.output(agent.id, { stream: 'stdout' });
    expect(output.toString('latin1') === shown).toBe(true);
    const response = await fetch(`${plane.url}/api/agents/${agent.id}/output?stream=stdout`, {
      headers: {
        authorization: `Bearer ${plane.token}`,
        range: `bytes=${lines.length + 400}-${lines.length + 499}`,
      },
    });
    const from = lines.length + 400;
    expect([response.status, await response.text()]).toEqual([206, shown.slice(from, from + 100)]);
    await expectNoTrace(where === 'main');
  },
);

/** The secret is in no stored form of the events: rows, sealed segments and the search index. */
async function expectNoTrace(is_sealed: boolean): Promise<void> {
  const log = join(plane.data_dir, 'log');
  const sealed = async () => (await readdir(log, { recursive: true })).some((name) => name.endsWith('.seg'));
  while (is_sealed && !(await sealed())) await sleep(50);
  await plane.kill('SIGTERM');
  const database = new DatabaseSync(join(plane.data_dir, 'svc.db'), { readOnly: true });
  const found = database
    .prepare('SELECT count(*) AS count, sum(instr(data, ?) > 0) AS exposed FROM events')
    .get(Buffer.from(KEY));
  expect(found).toMatchObject({ exposed: 0 });
  expect(Number(found!.count)).toBeGreaterThan(10);
  const segments = database.prepare('SELECT path, blocks FROM segments').all();
  database.close();
  for (const { path, blocks } of segments) {
    const segment = await readFile(join(log, String(path)));
    for (const { at, bytes } of parseBlocks(blocks as never)) {
      const text = zstdDecompressSync(segment.subarray(at, at + bytes));
      expect(text.includes('[redacted:KEY]')).toBe(true);
      expect(text.includes(KEY)).toBe(false);
    }
  }
  for (const name of await readdir(plane.data_dir)) {
    if (!name.startsWith('search.db')) continue;
    expect((await readFile(join(plane.data_dir, name))).includes('whole-plane')).toBe(false);
  }
  await plane.start();
}

test('the error for a missing program redacts secrets', async () => {
  const agent = await plane.agent([KEY], { env: { KEY } });
  await plane.finished(agent.id);
  const frames = await plane.frames(agent.id, (all) => all.some(({ data }) => data.status === 'failed'));
  const error = frames.find(({ event }) => event === 'error');
  expect(error?.data.error).toBe('[redacted:KEY]: not found');
});

test('redaction can be turned off and on again while agents run', async () => {
  const set = (value: boolean) => plane.client.call('updateConfig', { body: { 'events.redact_env': value } });
  const agent = await plane.agent('while read -r _; do echo "$KEY"; done', { env: { KEY }, stdin: true });
  const sendInput = () =>
    plane.client.call('sendInput', { params: { agent_id: agent.id }, body: { data: 'x\n' } });
  const lines = async (count: number) => {
    const frames = await plane.frames(
      agent.id,
      (all) => all.filter(({ event }) => event === 'output').length === count,
    );
    return frames.at(-1)!.data.data;
  };
  await sendInput();
  expect(await lines(1)).toBe('[redacted:KEY]\n');
  await set(false);
  await sendInput();
  expect(await lines(2)).toBe(`${KEY}\n`);
  await set(true);
  await sendInput();
  expect(await lines(3)).toBe('[redacted:KEY]\n');
  await plane.client.call('stopAgent', { params: { agent_id: agent.id }, body: { grace_seconds: 0 } });
});
