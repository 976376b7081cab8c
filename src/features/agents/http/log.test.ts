import { setImmediate } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { Client } from '../../../client/client.ts';
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
