/** How long somebody waits for a node that may be gone: once for all, and not at all once that is known. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { limits } from '../base/limits.ts';
import { problems } from '../domain/problem.ts';
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

/** How a question ends, for as long as it has not: null. */
function asking(): { end: string | null } {
  const asking = { end: null as string | null };
  node.reach().then(
    () => {
      asking.end = 'answered';
    },
    (error: Error) => {
      asking.end = error.message;
    },
  );
  return asking;
}
const UNREACHABLE = 'failed to connect to remote node';
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

test('callers at the same time share one question and its answer', async () => {
  const [one, two] = [asking(), asking()];
  expect(asked).toHaveLength(1);
  asked[0]!.answer();
  await pass(0);
  expect([one.end, two.end]).toEqual(['answered', 'answered']);
  asking();
  expect(asked).toHaveLength(2);
  expect(back).toBe(0);
});

test('an overdue answer is waited for once: later callers are turned away at once, until it comes', async () => {
  const first = asking();
  await pass(limits.node_answer_ms - 1);
  expect(first.end).toBeNull();
  await pass(2);
  expect(first.end).toBe(UNREACHABLE);
  const second = asking();
  await pass(0);
  expect([second.end, asked.length]).toEqual([UNREACHABLE, 1]);
  asked[0]!.answer();
  await pass(0);
  expect(back).toBe(1);
  const third = asking();
  asked[1]!.answer();
  await pass(0);
  expect(third.end).toBe('answered');
});

test('a connection that ends turns callers away before the time, and the next question is a new one', async () => {
  const first = asking();
  asked[0]!.fail(problems.nodeUnreachable());
  await pass(0);
  expect(first.end).toBe(UNREACHABLE);
  asking();
  expect(asked).toHaveLength(2);
});
