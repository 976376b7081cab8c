import { describe, expect, test } from 'vitest';
import { arrowPath, graphKey, layoutSteps } from './layout.ts';
import { NODE } from './step.ts';

const step = (step_key: string, ...depends_on: string[]) => ({ step_key, member_id: 'm', depends_on });

describe('a layout', () => {
  test('puts each step to the right of its dependencies, and no two steps in one place', () => {
    const { at, arrows } = layoutSteps([step('a'), step('b', 'a'), step('c', 'a'), step('d', 'b', 'c')]);
    expect(at.get('a')!.x).toBeLessThan(at.get('b')!.x);
    expect(at.get('b')!.x).toBeLessThan(at.get('d')!.x);
    expect(new Set([...at.values()].map(({ x, y }) => `${x} ${y}`)).size).toBe(4);
    expect(arrows).toHaveLength(4);
  });

  test('accepts an incomplete graph with unknown steps, duplicate steps and cycles', () => {
    const { at, arrows } = layoutSteps([
      step('a', 'b', 'nobody'),
      step('b', 'a', 'a'),
      step('b'),
      step('c', 'c'),
    ]);
    expect([...at.keys()]).toEqual(['a', 'b', 'c']);
    expect(arrows.map(({ from, to }) => [from, to])).toEqual([
      ['b', 'a'],
      ['a', 'b'],
    ]);
  });

  test('accepts step keys that are names of object properties', () => {
    const { at } = layoutSteps([step('__proto__'), step('constructor', '__proto__')]);
    expect(at.get('constructor')!.x).toBeGreaterThan(at.get('__proto__')!.x);
  });
});

test('an arrow passes other steps with a distance', () => {
  const steps = [step('a'), step('b', 'a'), step('c', 'b'), step('d', 'c', 'a')];
  const { at, arrows } = layoutSteps(steps);
  const long = arrows.find(({ from, to }) => from === 'a' && to === 'd')!;
  expect(long.via).toHaveLength(2);
  for (const passed of ['b', 'c']) {
    const { x, y } = at.get(passed)!;
    const point = long.via.find((point) => Math.abs(point.x - x) < 1)!;
    expect(Math.abs(point.y - y)).toBeGreaterThan(NODE.height / 2);
    // Straight over the whole width of the step.
    expect(arrowPath(long, at)).toContain(
      `${point.x - NODE.width / 2},${point.y}L${point.x + NODE.width / 2},`,
    );
  }
});

test('the shape depends only on step keys and dependencies', () => {
  const before = graphKey([step('b', 'a')]);
  expect(graphKey([{ ...step('b', 'a'), member_id: 'other' }])).toBe(before);
  expect(graphKey([step('b')])).not.toBe(before);
  expect(graphKey([step('a'), step('b', 'a')])).not.toBe(before);
});
