/** The example agent of the official SDK. It needs no model; its turn is always the same, with one permission request. */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { EventRecord } from '../core/event.ts';
import type { Conversation } from './conversation.ts';

/** Makes its timers 20 times faster, because it waits a second at each step. */
const SPEED_UP = 'data:text/javascript,const s=setTimeout;globalThis.setTimeout=(f,ms,...a)=>s(f,ms/20,...a)';
const program = join(createRequire(import.meta.url).resolve('acp-example'), '../examples/agent.js');

/** The argv of the example agent. */
export const EXAMPLE_AGENT = [process.execPath, '--import', SPEED_UP, program];

/** All messages of its turn in both directions, if the permission is granted. */
const FULL_TURN = [
  'to_agent initialize',
  'from_agent initialize: answer',
  'to_agent session/new',
  'from_agent session/new: answer',
  'to_agent session/prompt',
  ...Array(5).fill('from_agent session/update'),
  'from_agent session/request_permission',
  'to_agent session/request_permission: answer',
  ...Array(2).fill('from_agent session/update'),
  'from_agent session/prompt: answer',
];

/** Checks that its turn was complete, as if no failure had occurred. */
export async function expectFullTurn(conversation: Conversation): Promise<void> {
  await conversation.expectSameState();
  expect(outline(conversation.events)).toEqual(FULL_TURN);
  expect(conversation.text).toMatch(/^I'll help you with that.* The changes have been applied\.$/);
  const [review, ...others] = await conversation.delivered();
  expect(others).toEqual([]);
  expect(review).toMatchObject({ status: 'answered', delivery: 'written' });
  // The log may report that the node was unreachable, which has no other effect.
  expect(conversation.errors.filter((code) => code !== 'node_unreachable')).toEqual([]);
  expect(await conversation.get()).toMatchObject({ status: 'running', activity: 'idle', session_count: 1 });
}

/** The direction and the method of each message; for an answer, the method of its request. */
function outline(events: readonly EventRecord[]): string[] {
  const methods = new Map<string, unknown>();
  const other = { to_agent: 'from_agent', from_agent: 'to_agent' };
  return events
    .filter(({ type }) => type === 'acp_event')
    .map(({ direction, method, response_to, payload }) => {
      const side = direction as keyof typeof other;
      const { id } = payload as { id?: unknown };
      if (method !== undefined) methods.set(`${side} ${id}`, method);
      return method === undefined
        ? `${side} ${methods.get(`${other[side]} ${response_to}`)}: answer`
        : `${side} ${method}`;
    });
}
