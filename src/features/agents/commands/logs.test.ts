import { mkdtempSync, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { agentRecord } from '../../../testing/agent-record.ts';
import { type RunOptions, run } from '../../../testing/cli.ts';
import { frame, openStream, output } from '../../../testing/event-stream.ts';
import { limits } from '../limits.ts';

let home: string;
let plane: Awaited<ReturnType<typeof openStream>> | null;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'svc-logs-'));
  plane = null;
});
afterEach(async () => {
  await plane?.close();
  rmSync(home, { recursive: true, force: true });
});

const messageEvent = (seq: number, text: string) => {
  const update = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } };
  const payload = { jsonrpc: '2.0', method: 'session/update', params: { update } };
  return frame(seq, { type: 'acp_event', direction: 'from_agent', method: 'session/update', payload });
};

/** Runs `svc logs`. Each connection receives the next of `pieces` and stays open. */
async function logs(argv: string[], last_seq: number, pieces: string[], options: Partial<RunOptions> = {}) {
  plane = await openStream(
    agentRecord({ last_seq }),
    pieces.map((piece) => (response: ServerResponse) => void response.write(piece)),
  );
  const ran = await run(['logs', 'one', ...argv], { home, env: plane.env, ...options });
  return { ...ran, asked: plane.requests.map(({ url }) => url!.split('?')[1]) };
}

test('messages and output of an agent start on separate lines', async () => {
  const events = [
    messageEvent(1, 'I am '),
    output(2, 'a banner', { stream: 'stderr' }),
    messageEvent(3, 'here'),
    frame(4, { type: 'error', code: 'acp_silent', error: 'no answer' }),
    messageEvent(5, 'again'),
  ].join('');
  const both = await logs([], 5, [events]);
  expect(both).toMatchObject({
    code: 0,
    stdout: 'I am \na banner\nhere\nagain\n',
    stderr: '-- acp_silent: no answer --\n',
  });
});

test('--stream stderr omits the conversation; --events and --json print one event per line', async () => {
  const events = messageEvent(1, 'words') + output(2, 'x\n', { stream: 'stderr' });
  expect((await logs(['--stream', 'stderr'], 2, [events])).stdout).toBe('x\n');
  await plane?.close();
  const lines = (await logs(['--events'], 2, [events])).stdout.split('\n');
  expect(lines[0]).toMatch(/acp_event {2}<- session\/update agent_message_chunk$/);
  await plane?.close();
  const json = (await logs(['--json'], 2, [events])).stdout.split('\n');
  expect(JSON.parse(json[0]!)).toMatchObject({ seq: 1, payload: { method: 'session/update' } });
});

test('-n reads more events if the last lines consist of many', async () => {
  const tail = 2 + limits.cli_tail_spare_events;
  const args = Array.from({ length: 100 }, (_, at) => messageEvent(at + 1, `word${at + 1} `));
  args[1] = messageEvent(2, 'two\nthree ');
  const piece = args.slice(-tail).join('');
  const ran = await logs(['-n', '2'], 100, [piece, args.join('')]);
  expect(ran.asked).toEqual([`after=${100 - tail}`, 'after=0']);
  const lines = ran.stdout.split('\n');
  expect(lines).toHaveLength(3);
  expect([lines[0], lines[1]!.slice(0, 12)]).toEqual(['word1 two', 'three word3 ']);
});

test('-n with -f continues after the last lines, within an unfinished line', async () => {
  const stop = new AbortController();
  const ran = await logs(
    ['-n', '1', '-f'],
    2,
    [messageEvent(1, 'one\ntwo') + messageEvent(2, ' goes'), messageEvent(3, ' on')],
    {
      signal: stop.signal,
      onStdout: (text) => text.includes('on') && stop.abort(),
    },
  );
  expect(ran).toMatchObject({ code: 130, stdout: 'two goes on\n' });
  expect(ran.asked).toEqual(['after=0', 'after=2']);
});

test.each([{ argv: [] }, { argv: ['--json'] }, { argv: ['-f', '--json'] }])(
  '-n shows the last lines before the command started, however many events arrive while it starts: $argv',
  async ({ argv }) => {
    const [head, arrived] = [200, 1000];
    const stop = new AbortController();
    plane = await openStream(agentRecord({ last_seq: head }), [
      (response) => {
        const query = new URL(response.req.url!, 'http://x').searchParams;
        const first =
          Number(query.get('after') ?? head + arrived - Number(query.get('tail') ?? head + arrived)) + 1;
        for (let seq = first; seq <= head + arrived; seq++) response.write(output(seq, `line ${seq}\n`));
      },
    ]);
    const ran = await run(['logs', 'one', '-n', '3', ...argv], {
      ...{ home, env: plane.env, signal: stop.signal },
      onStdout: (text) => text.includes(`line ${head}`) && stop.abort(),
    });
    const shown = ran.stdout.match(/line \d+/g);
    expect(shown?.slice(0, 3)).toEqual(['line 198', 'line 199', 'line 200']);
    if (!argv.includes('-f')) expect(shown).toHaveLength(3);
  },
);
