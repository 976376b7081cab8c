/** Whatever is said in whatever order: folding never throws, stays bounded, and depends on nothing but what was said. */
import { CLIENT_METHODS, PROTOCOL_METHODS } from '@agentclientprotocol/sdk';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { limits } from '../base/limits.ts';
import { anyMessage, anything } from '../testing/any-message.ts';
import { type Direction, fold } from './fold.ts';
import { readMessage, writeMessage } from './message.ts';
import { type AcpState, beginning } from './state.ts';

const message = anyMessage([0, 1, 2, '1', 'prm_1', null]);
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
