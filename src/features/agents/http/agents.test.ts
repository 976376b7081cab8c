import { Writable } from 'node:stream';
import { expect, test } from 'vitest';
import { agentHandlers } from './agents.ts';

/** A client that never reads, so that everything sent to it stays in the buffer. */
class Stuck extends Writable {
  setHeader(): void {}
  override _write(): void {}
}

function patches(patch_send_ms?: number) {
  const agents = { patch: async () => Buffer.alloc(1024 * 1024) };
  const handlers = agentHandlers(agents as never, {} as never, {} as never, () => ({}) as never, {
    ...(patch_send_ms !== undefined && { patch_send_ms }),
  });
  const getChanges = handlers.getChanges as (call: never) => Promise<unknown>;
  const hijacked: string[] = [];
  const ask = (user_id: string, response: Writable, signal = new AbortController().signal) =>
    getChanges({
      ...{ also: 'text/x-diff', method: 'GET', caller: { user_id }, params: { agent_id: 'agt_1' }, signal },
      hijack: () => {
        hijacked.push(user_id);
        return response;
      },
    } as never);
  return { ask, hijacked };
}

test('disconnects a client that reads a patch too slowly', async () => {
  const { ask } = patches(20);
  const response = new Stuck();
  response.on('error', () => {});
  const closed = new Promise((resolve) => response.once('close', resolve));
  await ask('usr_alice', response);
  await closed;
});

test('stalled clients of one user do not block patches for other users', async () => {
  const { ask, hijacked } = patches();
  const leave = new AbortController();
  const alice_requests = Array.from({ length: 10 }, () => ask('usr_alice', new Stuck(), leave.signal));
  await expect.poll(() => hijacked.length).toBe(2);
  void ask('usr_bob', new Stuck(), leave.signal);
  await expect.poll(() => hijacked).toEqual(['usr_alice', 'usr_alice', 'usr_bob']);
  leave.abort();
  await Promise.all(alice_requests);
});
