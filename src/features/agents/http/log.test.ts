import { setImmediate } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { Client } from '../../../client/client.ts';
import type { PageOptions } from '../../../events/history.ts';
import type { EventLog } from '../../../events/log.ts';
import type { HttpServer } from '../../../server/server.ts';
import { openFakeHttp, ROOT_TOKEN } from '../../../testing/http.ts';
import type { Agents } from '../service.ts';
import { logHandlers } from './log.ts';

let server: HttpServer;
afterEach(() => server.drain());

test('closes the connection if output loses bytes while it is read', async () => {
  const agents = { get: async () => ({ id: 'agt_1', session_id: 'ses_1' }) };
  const output = {
    size_bytes: 10,
    lost_bytes: 0,
    async *read() {
      yield Buffer.from('half');
      await setImmediate();
    },
  };
  const log = { output: async () => output };
  const { getOutput } = logHandlers({ agents: agents as unknown as Agents, log: log as unknown as EventLog });
  server = await openFakeHttp({ getOutput });
  const client = new Client({ url: server.url, token: ROOT_TOKEN });
  const response = await client.open('getOutput', { params: { agent_id: 'agt_1' } });
  expect(response.headers.get('content-length')).toBe('10');
  await expect(response.text()).rejects.toThrow('terminated');
});

test('pages of the log continue in the direction of the query, also if they are cut short', async () => {
  const agents = { authorizeRead: async () => {} };
  const record = { type: 'status', agent_id: 'agt_1', session_id: null, ts: 1 };
  const all = Array.from({ length: 7 }, (_, i) => ({ ...record, seq: i + 1 }));
  const log = {
    page: async (_: string, { after = 0, before = Infinity, limit }: PageOptions) => {
      const found = all.filter(({ seq }) => seq > after && seq < before);
      const count = Math.min(limit, 2);
      const events = before < Infinity && after === 0 ? found.slice(-count) : found.slice(0, count);
      return { events, has_more: found.length > events.length };
    },
  };
  const { getLog } = logHandlers({ agents: agents as unknown as Agents, log: log as unknown as EventLog });
  server = await openFakeHttp({ getLog });
  const client = new Client({ url: server.url, token: ROOT_TOKEN });
  const seqs = async (query: object) => {
    const found: number[] = [];
    const args = { params: { agent_id: 'agt_1' }, query: { limit: 5, ...query } };
    for await (const { seq } of client.all('getLog', args)) found.push(seq);
    return found;
  };
  expect(await seqs({})).toEqual([1, 2, 3, 4, 5, 6, 7]);
  expect(await seqs({ after: 1, before: 6 })).toEqual([2, 3, 4, 5]);
  expect(await seqs({ before: 7 })).toEqual([5, 6, 3, 4, 1, 2]);
  const plain = await client.open('getLog', { params: { agent_id: 'agt_1' } });
  expect(await plain.json()).toMatchObject([{ seq: 1 }, { seq: 2 }]);
  const cursor = plain.headers.get('x-next-cursor')!;
  const next = await client.call('getLog', { params: { agent_id: 'agt_1' }, query: { cursor } });
  expect(next).toMatchObject({ items: [{ seq: 3 }, { seq: 4 }] });
});
