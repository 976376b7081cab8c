import fc from 'fast-check';
import { expect, test } from 'vitest';
import { anything } from '../../testing/any-message.ts';
import type { Fields } from '../json.ts';
import { bounds } from './bounds.ts';
import { toolSpans, waitSpans } from './spans.ts';
import { itemsOf, numbered } from './testing.ts';
import { Transcript, type View } from './transcript.ts';

const id = fc.constantFrom<unknown>('1', '2', 3, null);
const text = fc.constantFrom('a', 'long words\n', '');
const block = fc.oneof(
  fc.record({ type: fc.constant('text'), text }),
  fc.record({ type: fc.constantFrom('image', 'resource', 'resource_link'), uri: text, data: text }),
  anything,
);
const content = fc.oneof(
  fc.record({ type: fc.constant('content'), content: block }),
  fc.record({ type: fc.constant('diff'), path: text, oldText: fc.oneof(text, anything), newText: text }),
  fc.record({ type: fc.constant('terminal'), terminalId: fc.oneof(text, anything) }),
  fc.record({ type: fc.constant('diff'), changes: fc.array(fc.record({ path: text })), patch: anything }),
  anything,
);
/** Every field that the code reads, with a valid or an arbitrary value. */
const fields = fc.record(
  {
    sessionUpdate: fc.oneof(
      fc.constantFrom(
        'agent_message_chunk',
        'agent_thought_chunk',
        'user_message_chunk',
        'tool_call',
        'tool_call_update',
        'plan',
        'available_commands_update',
        'current_mode_update',
        'config_option_update',
        'session_info_update',
        'usage_update',
        'notice',
        'subagent_update',
        'session_message',
        'session_message_chunk',
        'agent_message',
        'agent_thought',
        'user_message',
        'tool_call_content_chunk',
        'terminal_update',
        'terminal_output_chunk',
        'state_update',
        'made_up',
      ),
      anything,
    ),
    messageId: id,
    toolCallId: id,
    terminalId: fc.oneof(text, anything),
    data: fc.oneof(text, anything),
    command: fc.oneof(text, anything),
    exitStatus: anything,
    output: fc.oneof(fc.record({ data: text }), anything),
    title: fc.oneof(text, anything),
    kind: fc.oneof(fc.constantFrom('read', 'edit'), anything),
    status: fc.oneof(fc.constantFrom('pending', 'in_progress', 'completed', 'failed'), anything),
    content: fc.oneof(block, fc.array(content, { maxLength: 3 }), anything),
    locations: fc.oneof(fc.array(fc.record({ path: text, line: anything }), { maxLength: 2 }), anything),
    rawInput: fc.oneof(fc.record({ subagent_type: text }), anything),
    entries: fc.oneof(fc.array(fc.record({ content: text, status: text })), anything),
    availableCommands: anything,
    modes: anything,
    configOptions: anything,
    currentModeId: fc.oneof(text, anything),
    used: fc.oneof(fc.nat(), anything),
    size: fc.oneof(fc.nat(), anything),
    sessionId: id,
    state: fc.oneof(fc.record({ state: fc.constantFrom('running', 'idle') }), anything),
    senderSessionId: id,
  },
  { requiredKeys: ['sessionUpdate'] },
);
const params = fc.oneof(
  fc.record({ update: fields }),
  fc.record({ update: fields, sessionId: id }),
  fc.record({ prompt: fc.oneof(fc.array(block, { maxLength: 3 }), anything) }),
  fc.record({
    toolCall: fc.oneof(fields, anything),
    options: fc.array(fc.record({ optionId: id, name: text })),
  }),
  fc.record({
    title: text,
    subject: fc.oneof(fc.record({ type: fc.constant('tool_call'), toolCall: fields }), anything),
  }),
  fc.record({ requestId: id }),
  anything,
);
const payload = fc.oneof(
  fc.record({ id, method: methodOf(), params }, { requiredKeys: ['method'] }),
  fc.record({ id, result: fc.oneof(fc.record({ stopReason: fc.oneof(text, anything) }), fields, anything) }),
  fc.record({ id, result: fc.record({ outcome: fc.record({ outcome: text, optionId: id }) }) }),
  fc.record({ id, error: fc.oneof(fc.record({ code: fc.nat(), message: text }), anything) }),
  anything,
);
const event: fc.Arbitrary<Fields> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ type: fc.constant('acp_event'), direction: direction(), payload }) },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant('acp_event'),
      direction: direction(),
      payload,
      review_id: fc.constantFrom('rev_1', 'rev_2'),
      answered_by: fc.oneof(text, anything),
      replay: fc.boolean(),
      accepted: fc.boolean(),
      turn_ended: fc.oneof(fc.record({ prompt_id: text, stop_reason: text }), anything),
      session_id: fc.constantFrom('ses_1', 'ses_2'),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant('acp_event'),
      direction: fc.constant('from_agent'),
      payload,
      subagent: id,
      unknown_session: fc.boolean(),
      review_id: fc.constantFrom('rev_1', 'rev_2'),
    }),
  },
  fc.record({
    type: fc.constant('status'),
    status: fc.oneof(fc.constantFrom('running', 'failed'), anything),
  }),
  fc.record({ type: fc.constant('error'), code: fc.oneof(errorCode(), anything), error: anything }),
  fc.record({ type: fc.constant('output'), stream: fc.constantFrom('stdout', 'stderr'), data: text }),
  fc.record({ type: anything }),
);

function direction() {
  return fc.constantFrom('to_agent', 'from_agent');
}

function methodOf() {
  return fc.constantFrom(
    'session/prompt',
    'session/cancel',
    'session/update',
    'session/update',
    'session/request_permission',
    'session/new',
    'session/set_mode',
    '$/cancel_request',
    'made/up',
  );
}

function errorCode() {
  return fc.constantFrom('turn_lost', 'review_undeliverable', 'log_gap', 'reset');
}

function viewOf(batches: readonly (readonly Fields[])[]): View {
  const transcript = new Transcript();
  let first = 1;
  for (const batch of batches) {
    transcript.append(numbered(batch, first));
    first += batch.length;
  }
  return transcript.view;
}

test('shows any events in any order, each item with a unique key', () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 40 }), (events) => {
      const view = viewOf([events]);
      const keys = view.items.map(({ key }) => key);
      expect(new Set(keys).size).toBe(keys.length);
      expect(toolSpans(view.items)).toHaveLength(itemsOf(view, 'tool').length);
      expect(waitSpans(view.items)).toHaveLength(itemsOf(view, 'permission').length);
      // An item of a sub-agent is preceded by its row and those of its ancestors: up to three.
      expect(view.items.length).toBeLessThanOrEqual(4 * events.length);
    }),
    { numRuns: 400 },
  );
});

test('batches of any size have the same result as single events', () => {
  fc.assert(
    fc.property(fc.array(fc.array(event, { maxLength: 8 }), { maxLength: 8 }), (batches) => {
      const single = batches.flat().map((item) => [item]);
      expect(viewOf(batches)).toEqual(viewOf(single));
    }),
    { numRuns: 200 },
  );
});

test('leaves nothing open after the process has ended', () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 40 }), (events) => {
      const { turns, working, items } = viewOf([[...events, { type: 'status', status: 'completed' }]]);
      expect(turns.filter(({ ended_ts }) => ended_ts === null)).toEqual([]);
      expect(working).toBe(false);
      for (const item of items) {
        if (item.kind === 'tool') expect(['pending', 'in_progress']).not.toContain(item.status);
        if (item.kind === 'permission') expect(item.outcome).not.toBeNull();
        if (item.kind === 'agent_message' || item.kind === 'thought') expect(item.ended_ts).not.toBeNull();
      }
    }),
    { numRuns: 200 },
  );
});

test('any number of updates stays within the bounds', () => {
  const large = 'x'.repeat(100_000);
  fc.assert(
    fc.property(
      fc.constantFrom(
        'agent_message_chunk',
        'agent_thought_chunk',
        'tool_call',
        'tool_call_update',
        'agent_message',
        'tool_call_content_chunk',
        'made_up',
      ),
      fc.constantFrom('same', 'other'),
      (sessionUpdate, ids) => {
        const update = (at: number) => ({
          sessionUpdate,
          messageId: ids === 'same' ? 'm' : `m${at}`,
          toolCallId: ids === 'same' ? 't' : `t${at}`,
          content: sessionUpdate.endsWith('chunk')
            ? { type: 'text', text: large }
            : [{ type: 'content', content: { type: 'text', text: large } }],
        });
        const events = Array.from({ length: 800 }, (_, at) => ({
          type: 'acp_event',
          direction: 'from_agent',
          payload: { method: 'session/update', params: { update: update(at) } },
        }));
        const { items } = viewOf([events]);
        const chars = JSON.stringify(items).length;
        expect(chars).toBeLessThan(1.2 * bounds.items_chars);
      },
    ),
    { numRuns: 10 },
  );
});
