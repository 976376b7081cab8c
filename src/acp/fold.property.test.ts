/** Properties of the fold for arbitrary messages in any order: it never throws, stays bounded, and is deterministic. */
import { CLIENT_METHODS, PROTOCOL_METHODS } from '@agentclientprotocol/sdk';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyMessage, anything, anyUpdate } from '../testing/any-message.ts';
import type { Direction } from './fold.ts';
import { limits } from './limits.ts';
import { readMessage, writeMessage } from './message.ts';
import { type AcpState, initialState } from './state.ts';
import { foldFrame } from './v2/fold.ts';

const message = anyMessage([0, 1, 2, '1', 'prm_1', null]);
const conversation = fc.array(fc.tuple(fc.constantFrom<Direction>('from_agent', 'to_agent'), message), {
  maxLength: 60,
});

/** The state after a round trip through the database. */
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

test('any conversation folds to the same bounded state, even if it is stored and reloaded midway', () => {
  fc.assert(
    fc.property(conversation, fc.array(fc.boolean()), (frames, stores) => {
      let all_state = frozen(structuredClone(initialState));
      let resumed = initialState;
      for (const [n, [direction, one]] of frames.entries()) {
        all_state = frozen(foldFrame(all_state, direction, frozen(one)).state);
        // This is the same message in the form in which the log contains it.
        const again = readMessage(writeMessage(one).trimEnd())!;
        resumed = foldFrame(stores[n] ? stored(resumed) : resumed, direction, again).state;
      }
      expect(stored(resumed)).toEqual(stored(all_state));
      expect(JSON.stringify(all_state).length).toBeLessThan(limits.acp_state_chars_max);
    }),
    { numRuns: 500 },
  );
});

test('updates of other sessions and of sub-agents do not change the state of the main one', () => {
  const foreign = fc.constantFrom<Record<string, unknown>>(
    { sessionId: 'child' },
    { sessionId: 'nobody announced it' },
    { sessionId: 'main', mark: { claudeCode: { parentToolUseId: 'c1' } } },
    { sessionId: 'main', mark: { parentToolCallId: 'c1' } },
  );
  const announced = { id: 'child', has_session: true, parent_id: null, name: null, description: null };
  const state: AcpState = {
    ...{ ...initialState, phase: 'ready', acp_session_id: 'main', turn: { prompt_id: 'prm_1' } },
    subagents: [{ ...announced, status: 'running', stop_reason: null }],
  };
  fc.assert(
    fc.property(anyUpdate, foreign, (reported, { sessionId, mark }) => {
      const update = mark === undefined ? reported : { ...reported, _meta: mark };
      const params = { sessionId, update };
      const folded = foldFrame(state, 'from_agent', {
        kind: 'notification',
        method: CLIENT_METHODS.session_update,
        params,
      });
      const { acting, now, subagents, ...rest } = folded.state;
      expect({ ...rest, acting: state.acting, now: null, subagents: state.subagents }).toEqual(state);
      expect(folded.source).not.toBeNull();
    }),
    { numRuns: 500 },
  );
});

test('unknown messages change nothing', () => {
  const silent = fc.record({
    kind: fc.constant('notification' as const),
    method: fc.string(),
    params: anything,
  });
  const known: string[] = [CLIENT_METHODS.session_update, PROTOCOL_METHODS.cancel_request];
  fc.assert(
    fc.property(silent, (item) => {
      fc.pre(!known.includes(item.method));
      const unchanged = { state: initialState, replay: false, source: null, events: [], accepted: false };
      expect(foldFrame(initialState, 'from_agent', { ...item, params: {} })).toEqual(unchanged);
      expect(foldFrame(initialState, 'from_agent', item).state).toBe(initialState);
    }),
  );
});
