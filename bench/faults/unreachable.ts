/** Requests for agents whose node is unreachable, with the real program in network namespaces. */

import { hasNamespaces } from '../../src/testing/namespaces.ts';
import { requestUnreachable, unreachableStates } from '../../src/testing/unreachable-nodes.ts';
import { median } from '../figure.ts';
import { type FaultRow, ms, Tally } from './row.ts';

const ANSWER_MS_MAX = 2_000;
const ROW_MS_MAX = 600_000;

export const unreachable: FaultRow = {
  number: 49,
  fault:
    'stop, restart and delete, one after the other, for an agent whose node is stopped, killed, partitioned ' +
    '(all packets are dropped), or was never reachable (a closed port, a black hole)',
  expected: '502 within 2 s, every time',
  default_n: 100,
  run: async (n) => {
    const tally = new Tally();
    if (!hasNamespaces()) {
      tally.check(false, 'needs root and network namespaces');
      return tally.outcome();
    }
    const phases = ['connected', 'suspect', 'unreachable'] as const;
    const answers = await requestUnreachable(
      { states: unreachableStates, n, phases, within_ms: 10 * ANSWER_MS_MAX },
      AbortSignal.timeout(ROW_MS_MAX),
    );
    for (const { state, action, status, ms: took_ms } of answers) {
      tally.case(status === 502, `${state}: ${status} for ${action}`);
      tally.check(took_ms <= ANSWER_MS_MAX, `${state}: ${action} took ${ms(took_ms)}`);
    }
    for (const state of unreachableStates) {
      const took = answers.filter((answer) => answer.state === state).map((answer) => answer.ms);
      tally.check(took.length === n, `${state}: ${took.length} of ${n} requests`);
      tally.measure(
        `${state}: ${took.length} answers, median ${ms(median(took))}, slowest ${ms(Math.max(...took))}`,
      );
    }
    return tally.outcome();
  },
};
