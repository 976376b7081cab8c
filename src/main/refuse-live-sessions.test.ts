import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { SessionView } from '../core/node.ts';
import type { Store } from '../store/store.ts';
import { addAgent, addSession } from '../store/testing.ts';
import { openTestStore } from '../testing/test-store.ts';
import { limits } from './limits.ts';
import { refuseLiveSessions } from './refuse-live-sessions.ts';

let folder: string;
let store: Store;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-live-sessions-'));
  store = await openTestStore(folder);
});
afterEach(async () => {
  await store.close();
  await rm(folder, { recursive: true, force: true });
});

function view(session_id: string, phase: SessionView['phase'], agent_name = `name of ${session_id}`) {
  return { session_id, phase, launch: { agent_name } } as SessionView;
}

const check = (...views: SessionView[]) => refuseLiveSessions(store, { sessions: async () => views });

test('a session that has ended on the disk does not prevent the start', async () => {
  await check();
  await addSession(store, await addAgent(store, 'agt_a'), 'ses_a');
  await check(view('ses_a', 'ended'));
});

test('names the agents that still run, on the disk or according to the database', async () => {
  await expect(check(view('ses_x', 'running', 'lost'))).rejects.toMatchObject({
    code: 'invalid_config',
    message:
      'server.local_node is false, but agents still run on this machine: lost; start with server.local_node = true and stop them first',
  });
  await addSession(store, await addAgent(store, 'agt_a'), 'ses_a');
  await expect(check()).rejects.toThrow('agents still run on this machine');
});

test('names no more agents than fit into a message', async () => {
  const views = Array.from({ length: limits.live_agents_named + 2 }, (_, n) => view(`ses_${n}`, 'running'));
  await expect(check(...views)).rejects.toThrow(/name of ses_9, and 2 more;/);
});
