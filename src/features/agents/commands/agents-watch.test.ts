import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { problems } from '../../../core/problem.ts';
import type { Handlers } from '../../../server/call.ts';
import type { HttpServer } from '../../../server/server.ts';
import { agentRecord } from '../../../testing/agent-record.ts';
import { run } from '../../../testing/cli.ts';
import { openFakeHttp, ROOT_TOKEN } from '../../../testing/http.ts';

let home: string;
let server: HttpServer | null;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'svc-watch-'));
  server = null;
});
afterEach(async () => {
  await server?.drain();
  rmSync(home, { recursive: true, force: true });
});

/** Watches until the output contains `last`. `frames`: changes of agents that the stream sends at once. */
async function watch(listAgents: Handlers['listAgents'], frames: number, last: string) {
  server = await openFakeHttp({
    listAgents,
    followAll: (call) => {
      const response = call.hijack();
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('retry: 1000\n\n');
      for (let id = 1; id <= frames; id++)
        response.write(`id: ${id}\nevent: agent\ndata: {"type":"agent"}\n\n`);
      return undefined;
    },
  });
  const stop = new AbortController();
  return run(['agents', 'ls', '--watch'], {
    home,
    env: { SVC_URL: server.url, SVC_TOKEN: ROOT_TOKEN },
    signal: stop.signal,
    onStdout: (text) => text.includes(last) && stop.abort(),
  });
}

test('requests one list for many changes', async () => {
  let lists = 0;
  const ran = await watch(
    () => {
      lists += 1;
      return { items: [agentRecord({ status: lists < 3 ? 'running' : 'completed' })] };
    },
    500,
    'completed',
  );
  expect(ran.code).toBe(130);
  // The first one, one for the beginning of the stream, and one for all changes.
  expect(lists).toBe(3);
});

test('lists again after a list failed because the plane did not answer', async () => {
  let lists = 0;
  const ran = await watch(
    () => {
      if (++lists === 2) throw problems.draining();
      return { items: [agentRecord({ status: lists === 1 ? 'running' : 'completed' })] };
    },
    0,
    'completed',
  );
  expect(ran).toMatchObject({ code: 130, stderr: '' });
});

test('ends with the error of a list that cannot be repeated', async () => {
  let lists = 0;
  const ran = await watch(
    () => {
      if (++lists === 2) throw problems.rootRequired();
      return { items: [] };
    },
    0,
    'never',
  );
  expect(ran).toMatchObject({ code: 4, stderr: `svc: ${problems.rootRequired().message}\n` });
});
