import { expect, test } from 'vitest';
import { estimateSize } from './size.ts';

const step = (step_key: string, ...depends_on: string[]) => ({ step_key, member_id: 'm', depends_on });

test('a graph needs room for its longest chain and for its widest column', () => {
  const one = estimateSize([step('a')]);
  const chain = estimateSize([step('a'), step('b', 'a'), step('c', 'b')]);
  const fan = estimateSize([step('a'), step('b', 'a'), step('c', 'a')]);
  expect(chain.height).toBe(one.height);
  expect(chain.width).toBeGreaterThan(fan.width);
  expect(fan.height).toBeGreaterThan(one.height);
});

test('an edge that passes a step makes the graph higher', () => {
  const chain = [step('a'), step('b', 'a')];
  expect(estimateSize([...chain, step('c', 'b', 'a')]).height).toBeGreaterThan(
    estimateSize([...chain, step('c', 'b')]).height,
  );
});

test('unknown dependencies, cycles and no steps have a size', () => {
  for (const steps of [[], [step('a', 'nobody')], [step('a', 'b'), step('b', 'a'), step('c', 'c')]]) {
    const { width, height } = estimateSize(steps);
    expect(width).toBeGreaterThan(0);
    expect(height).toBeGreaterThan(0);
  }
});
