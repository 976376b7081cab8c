/** How long callers wait for a node that may be unreachable: the first one waits, and later ones fail at once. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { limits } from '../../base/limits.ts';
import { problems } from '../../core/problem.ts';
import { Reachability } from './reachability.ts';

let asked: { answer(): void; fail(error: Error): void }[];
let back: number;
let node: Reachability;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'performance'] });
  asked = [];
  back = 0;
  const ask = () =>
    new Promise<void>((resolve, reject) => {
      asked.push({ answer: resolve, fail: reject });
    });
  node = new Reachability(ask, () => {
    back += 1;
  });
});
afterEach(() => {
  vi.useRealTimers();
});

/** The result of a check; null while it is pending. */
function check(): { end: string | null } {
  const state = { end: null as string | null };
  node.reach().then(
    () => {
      state.end = 'answered';
    },
    (error: Error) => {
      state.end = error.message;
    },
  );
  return state;
}
const UNREACHABLE = 'failed to connect to remote node';
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

test('concurrent callers share one check and its answer', async () => {
  const [one, two] = [check(), check()];
  expect(asked).toHaveLength(1);
  asked[0]!.answer();
  await pass(0);
  expect([one.end, two.end]).toEqual(['answered', 'answered']);
  check();
  expect(asked).toHaveLength(2);
  expect(back).toBe(0);
});

test('only the first caller waits for an overdue answer; later ones fail at once until it arrives', async () => {
  const first = check();
  await pass(limits.node_answer_ms - 1);
  expect(first.end).toBeNull();
  await pass(2);
  expect(first.end).toBe(UNREACHABLE);
  const second = check();
  await pass(0);
  expect([second.end, asked.length]).toEqual([UNREACHABLE, 1]);
  asked[0]!.answer();
  await pass(0);
  expect(back).toBe(1);
  const third = check();
  asked[1]!.answer();
  await pass(0);
  expect(third.end).toBe('answered');
});

test('the end of a connection fails callers early, and the next check is a new one', async () => {
  const first = check();
  asked[0]!.fail(problems.nodeUnreachable());
  await pass(0);
  expect(first.end).toBe(UNREACHABLE);
  check();
  expect(asked).toHaveLength(2);
});
