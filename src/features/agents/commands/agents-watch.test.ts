import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { Wake } from '../../../base/async.ts';
import type { Api } from '../../../cli/api.ts';
import type { Io } from '../../../cli/context.ts';
import { Failure } from '../../../cli/failure.ts';
import { problems } from '../../../core/problem.ts';
import type { Handlers } from '../../../server/call.ts';
import type { HttpServer } from '../../../server/server.ts';
import { agentRecord } from '../../../testing/agent-record.ts';
import { run } from '../../../testing/cli.ts';
import { openFakeHttp, ROOT_TOKEN } from '../../../testing/http.ts';
import { limits } from '../limits.ts';
import { watchAgents } from './agents-watch.ts';

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

let sendChange: () => void;

/** Watches until the output contains `last`. */
async function watch(listAgents: Handlers['listAgents'], last: string, { json = false } = {}) {
  server = await openFakeHttp({
    listAgents,
    followAll: (call) => {
      const response = call.hijack();
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('retry: 1000\n\n');
      sendChange = () => void response.write('id: 1\nevent: agent\ndata: {"type":"agent"}\n\n');
      return undefined;
    },
  });
  const stop = new AbortController();
  return run(['agents', 'ls', '--watch', ...(json ? ['--json'] : [])], {
    home,
    tty: json,
    env: { SVC_URL: server.url, SVC_TOKEN: ROOT_TOKEN },
    signal: stop.signal,
    onStdout: (text) => text.includes(last) && stop.abort(),
  });
}

test('lists at the beginning, when the stream has begun, and when an agent changes', async () => {
  let lists = 0;
  const ran = await watch(() => {
    lists += 1;
    if (lists === 2) sendChange();
    return { items: [agentRecord({ status: lists < 3 ? 'running' : 'completed' })] };
  }, 'completed');
  expect(ran.code).toBe(130);
  expect(lists).toBe(3);
});

test('--json prints one line for each agent, also on a terminal', async () => {
  const items = [agentRecord({}), agentRecord({ id: 'agt_last' })];
  const { stdout } = await watch(() => ({ items }), 'agt_last', { json: true });
  const lines = stdout.trimEnd().split('\n');
  expect(lines.map((line) => JSON.parse(line).id)).toEqual(['agt_1', 'agt_last']);
});

test.each([
  ['change', 'agent'],
  ['write output', 'activity'],
])('lists once in an interval however many agents %s', async (_what, event) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const [stop, changed] = [new AbortController(), new Wake()];
  async function* follow() {
    while (!stop.signal.aborted) {
      await changed.wait(undefined, stop.signal);
      yield { event };
    }
  }
  const api = { client: { follow } } as unknown as Api;
  let lists = 0;
  const watching = watchAgents({ signal: stop.signal } as Io, api, async () => void lists++);
  const ended = expect(watching).rejects.toThrow(Failure);
  const change = async (times: number) => {
    for (let i = 0; i < times; i++) {
      changed.notify();
      await vi.advanceTimersByTimeAsync(0);
    }
  };
  await change(1);
  expect(lists).toBe(2);
  await change(20);
  expect(lists).toBe(2);
  await vi.advanceTimersByTimeAsync(limits.cli_watch_interval_ms);
  expect(lists).toBe(3);
  stop.abort();
  await ended;
});

test('lists again after a list failed because the plane did not answer', async () => {
  let lists = 0;
  const ran = await watch(() => {
    if (++lists === 2) throw problems.draining();
    return { items: [agentRecord({ status: lists === 1 ? 'running' : 'completed' })] };
  }, 'completed');
  expect(ran).toMatchObject({ code: 130, stderr: '' });
});

test('ends with the error of a list that cannot be repeated', async () => {
  let lists = 0;
  const ran = await watch(() => {
    if (++lists === 2) throw problems.rootRequired();
    return { items: [] };
  }, 'never');
  expect(ran).toMatchObject({ code: 4, stderr: `svc: ${problems.rootRequired().message}\n` });
});
