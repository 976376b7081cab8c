/** Arbitrary messages of an ACP conversation, valid and invalid, for property tests. */
import { AGENT_METHODS, CLIENT_METHODS, PROTOCOL_METHODS } from '@agentclientprotocol/sdk';
import fc from 'fast-check';
import type { Message, RequestId } from '../acp/message.ts';

export const anything = fc.jsonValue({ maxDepth: 3 });
const word = fc.constantFrom('s', 'ask', 'auto', '');
const items = fc.oneof(fc.array(anything, { maxLength: 3 }), anything);
const updates = [
  'plan',
  'available_commands_update',
  'current_mode_update',
  'config_option_update',
  'session_info_update',
  'usage_update',
  'agent_message_chunk',
  'user_message',
  'state_update',
  'plan_update',
  'subagent_update',
  'tool_call',
  'tool_call_update',
];
const property = fc.oneof(
  fc.record(
    {
      type: fc.constantFrom('string', 'number', 'integer', 'boolean', 'array'),
      title: fc.oneof(word, anything),
      enum: fc.oneof(fc.array(word), anything),
      items: fc.oneof(fc.record({ enum: fc.array(word) }), anything),
      minimum: fc.oneof(fc.double(), anything),
      default: anything,
    },
    { requiredKeys: ['type'] },
  ),
  anything,
);
/** An update with any of the fields that the fold reads. */
export const anyUpdate = fc.record(
  {
    sessionUpdate: fc.oneof(fc.constantFrom(...updates), anything),
    entries: items,
    availableCommands: items,
    currentModeId: fc.oneof(word, anything),
    configOptions: items,
    title: fc.oneof(word, anything),
    used: fc.oneof(fc.nat(), anything),
    size: fc.oneof(fc.nat(), anything),
    sessionId: fc.oneof(word, anything),
    state: fc.oneof(
      fc.record({ state: fc.constantFrom('running', 'idle'), stopReason: word }),
      fc.constantFrom('running', 'requires_action', 'idle'),
      anything,
    ),
    stopReason: fc.oneof(fc.constantFrom('end_turn', 'error'), anything),
    error: anything,
    plan: fc.oneof(fc.record({ type: fc.constant('items'), entries: items }), anything),
    content: anything,
    description: fc.oneof(word, anything),
    toolCallId: fc.oneof(word, anything),
    kind: fc.oneof(fc.constantFrom('edit', 'think'), anything),
    status: fc.oneof(fc.constantFrom('pending', 'completed', 'cancelled'), anything),
    rawInput: fc.oneof(fc.record({ subagent_type: word }), anything),
    _meta: fc.oneof(fc.record({ claudeCode: fc.record({ parentToolUseId: word }) }), anything),
    cost: fc.oneof(fc.record({ amount: fc.double(), currency: word }), anything),
  },
  { requiredKeys: [] },
);
/** Any of the fields that the fold reads, with valid or arbitrary values. */
const fields = fc.record(
  {
    sessionId: fc.oneof(word, anything),
    modeId: fc.oneof(word, anything),
    protocolVersion: fc.oneof(fc.constantFrom(1, 2), anything),
    capabilities: fc.oneof(fc.constant({ session: { prompt: { image: {} }, mcp: { stdio: {} } } }), anything),
    agentInfo: fc.oneof(fc.record({ name: word }), anything),
    agentCapabilities: fc.oneof(fc.constant({ loadSession: true }), anything),
    authMethods: items,
    stopReason: fc.oneof(fc.constant('end_turn'), anything),
    modes: fc.oneof(fc.record({ currentModeId: word, availableModes: items }), anything),
    configOptions: items,
    options: fc.oneof(fc.constant([{ optionId: 'a', kind: 'allow_once' }]), items),
    toolCall: anything,
    title: fc.oneof(word, anything),
    subject: fc.oneof(
      fc.record({ type: fc.constantFrom('tool_call', 'command'), toolCall: anything }),
      anything,
    ),
    mode: fc.oneof(fc.constantFrom('form', 'url'), anything),
    message: fc.oneof(word, anything),
    elicitationId: fc.oneof(word, anything),
    url: fc.oneof(fc.webUrl(), fc.constant('javascript:alert(1)'), anything),
    requestedSchema: fc.oneof(
      fc.record({ type: fc.constant('object'), properties: fc.dictionary(fc.string(), property) }),
      anything,
    ),
    requestId: fc.oneof(fc.integer({ min: 0, max: 3 }), anything),
    update: anyUpdate,
  },
  { requiredKeys: [] },
);
const params = fc.oneof(fields, anything);
const method = fc.constantFrom(
  ...Object.values(AGENT_METHODS),
  ...Object.values(CLIENT_METHODS),
  ...Object.values(PROTOCOL_METHODS),
  'unknown/method',
);
const error = fc.record({ code: fc.constantFrom(-32000, -32601, 0), message: fc.string() });

export function anyMessage(ids: RequestId[]): fc.Arbitrary<Message> {
  const id = fc.constantFrom(...ids);
  return fc.oneof<fc.Arbitrary<Message>[]>(
    fc.record({ kind: fc.constant('request'), id, method, params }),
    fc.record({ kind: fc.constant('notification'), method, params }),
    fc.record({ kind: fc.constant('response'), id, result: params }),
    fc.record({ kind: fc.constant('response'), id, error }),
  );
}
