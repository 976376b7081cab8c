/**
 * The agent of a step. It sends mail to the user of its run, then lists and acknowledges the mail in its own inbox, over one
 * connection, as `svc mcp --actor` does. Its last line, which is the step's output, reports the rate.
 */

import type { Context } from '../../src/cli/context.ts';
import { PlaneCaller } from '../../src/features/actors/commands/actor-call.ts';
import type { ActorMethod, ActorParams, ActorResult } from '../../src/features/actors/contract.ts';

export interface MailerReport {
  messages_per_s: number;
}

const [count, at_once] = process.argv.slice(2).map(Number) as [number, number];
const noConfiguration = () => {
  throw new Error('an agent has no configuration of the service');
};
const context = {
  io: { env: process.env, signal: new AbortController().signal },
  local: { loadConfig: noConfiguration },
} as unknown as Context;
const caller = new PlaneCaller(context, {});

function call<M extends ActorMethod>(method: M, params: ActorParams<M>): Promise<ActorResult<M>> {
  return caller.call({ method, actor_id: undefined, params });
}

async function send(): Promise<void> {
  await call('send', { to: 'user', payload: { text: 'a word' } });
}

async function ack({ id }: { id: number }): Promise<void> {
  await call('ack', { message_id: id });
}

const begun_ms = performance.now();
for (let left = count; left > 0; left -= at_once) await Promise.all(Array.from({ length: at_once }, send));
for (let left = count; left > 0; ) {
  const { messages } = await call('inbox', { limit: at_once });
  await Promise.all(messages.map(ack));
  left -= messages.length;
}
const seconds = (performance.now() - begun_ms) / 1000;
console.log(JSON.stringify({ messages_per_s: count / seconds } satisfies MailerReport));
caller.close();
