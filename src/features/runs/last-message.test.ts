import { expect, test } from 'vitest';
import { limits } from '../../base/limits.ts';
import type { EventRecord } from '../../core/event.ts';
import type { EventLog } from '../../events/log.ts';
import { lastMessage } from './last-message.ts';

/** A log whose last turn, for prompt `p`, sent these texts. */
function logOf(...texts: string[]): EventLog {
  const payloads = texts.map((text) => ({
    params: {
      update: { sessionUpdate: 'agent_message_chunk', messageId: 'm', content: { type: 'text', text } },
    },
  }));
  const from_agent = { type: 'acp_event', direction: 'from_agent' };
  const events = [
    ...payloads.map((payload) => ({ ...from_agent, payload })),
    { ...from_agent, response_to: 'p', payload: { result: { stopReason: 'end_turn' } } },
  ].map((event, seq) => ({ ...event, seq: seq + 1 }) as unknown as EventRecord);
  return {
    page: async (_: string, { before = 0 }) => ({
      events: events.filter(({ seq }) => seq < before),
      has_more: false,
    }),
  } as EventLog;
}

test('returns a message that the agent sent in chunks', async () => {
  expect(await lastMessage(logOf('It is ', 'done.'), 'agt_1', 'p')).toBe('It is done.');
  expect(await lastMessage(logOf(), 'agt_1', 'p')).toBeNull();
});

test('cuts no character of a long message in half', async () => {
  const max = limits.step_output_bytes_max;
  const message = await lastMessage(logOf('😀'.repeat(max / 2), '.'), 'agt_1', 'p');
  expect(message).toHaveLength(max);
  expect(message?.isWellFormed()).toBe(true);
});
