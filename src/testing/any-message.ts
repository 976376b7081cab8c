/** Whatever could be said in a conversation in ACP, in its form or in any other, for tests of properties. */
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
];
/** Every field that the fold looks at, in its form or in any other. */
const fields = fc.record(
  {
    sessionId: fc.oneof(word, anything),
    modeId: fc.oneof(word, anything),
    protocolVersion: fc.oneof(fc.constant(1), anything),
    agentInfo: fc.oneof(fc.record({ name: word }), anything),
    agentCapabilities: fc.oneof(fc.constant({ loadSession: true }), anything),
    authMethods: items,
    stopReason: fc.oneof(fc.constant('end_turn'), anything),
    modes: fc.oneof(fc.record({ currentModeId: word, availableModes: items }), anything),
    configOptions: items,
    options: fc.oneof(fc.constant([{ optionId: 'a', kind: 'allow_once' }]), items),
    toolCall: anything,
    requestId: fc.oneof(fc.integer({ min: 0, max: 3 }), anything),
    update: fc.record(
      {
        sessionUpdate: fc.oneof(fc.constantFrom(...updates), anything),
        entries: items,
        availableCommands: items,
        currentModeId: fc.oneof(word, anything),
        configOptions: items,
        title: fc.oneof(word, anything),
        used: fc.oneof(fc.nat(), anything),
        size: fc.oneof(fc.nat(), anything),
        cost: fc.oneof(fc.record({ amount: fc.double(), currency: word }), anything),
      },
      { requiredKeys: [] },
    ),
  },
  { requiredKeys: [] },
);
const params = fc.oneof(fields, anything);
const method = fc.constantFrom(
  ...Object.values(AGENT_METHODS),
  ...Object.values(CLIENT_METHODS),
  ...Object.values(PROTOCOL_METHODS),
  'never/heard_of',
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
