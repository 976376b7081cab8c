/** Whatever is said in whatever order: folding never throws, stays bounded, and depends on nothing but what was said. */
import { AGENT_METHODS, CLIENT_METHODS, PROTOCOL_METHODS } from '@agentclientprotocol/sdk';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { limits } from '../base/limits.ts';
import { type Direction, fold } from './fold.ts';
import { type Message, readMessage, writeMessage } from './message.ts';
import { type AcpState, beginning } from './state.ts';

const anything = fc.jsonValue({ maxDepth: 3 });
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
const id = fc.constantFrom(0, 1, 2, '1', 'prm_1', null);
const method = fc.constantFrom(
  ...Object.values(AGENT_METHODS),
  ...Object.values(CLIENT_METHODS),
  ...Object.values(PROTOCOL_METHODS),
  'never/heard_of',
);
const error = fc.record({ code: fc.constantFrom(-32000, -32601, 0), message: fc.string() });
const message = fc.oneof<fc.Arbitrary<Message>[]>(
  fc.record({ kind: fc.constant('request'), id, method, params }),
  fc.record({ kind: fc.constant('notification'), method, params }),
  fc.record({ kind: fc.constant('response'), id, result: params }),
  fc.record({ kind: fc.constant('response'), id, error }),
);
const said = fc.array(fc.tuple(fc.constantFrom<Direction>('from_agent', 'to_agent'), message), {
  maxLength: 60,
});

/** As it comes out of the database. */
function stored(state: AcpState): AcpState {
  return JSON.parse(JSON.stringify(state)) as AcpState;
}

function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const part of Object.values(value)) frozen(part);
  }
  return value;
}

test('any conversation folds to one bounded state, also when it is stored and read anywhere on the way', () => {
  const chars_max = 6 * limits.acp_state_chars_max;
  fc.assert(
    fc.property(said, fc.array(fc.boolean()), (frames, stores) => {
      let whole = frozen(structuredClone(beginning));
      let resumed = beginning;
      for (const [n, [direction, one]] of frames.entries()) {
        whole = frozen(fold(whole, direction, frozen(one)).state);
        // The same words, as they stand in the log.
        const again = readMessage(writeMessage(one).trimEnd())!;
        resumed = fold(stores[n] ? stored(resumed) : resumed, direction, again).state;
      }
      expect(stored(resumed)).toEqual(stored(whole));
      expect(JSON.stringify(whole).length).toBeLessThan(chars_max);
    }),
    { numRuns: 500 },
  );
});

test('what nobody understands changes nothing', () => {
  const silent = fc.record({
    kind: fc.constant('notification' as const),
    method: fc.string(),
    params: anything,
  });
  const known: string[] = [CLIENT_METHODS.session_update, PROTOCOL_METHODS.cancel_request];
  fc.assert(
    fc.property(silent, (one) => {
      fc.pre(!known.includes(one.method));
      expect(fold(beginning, 'from_agent', one)).toEqual({ state: beginning, replay: false, happened: [] });
    }),
  );
});
