import { expect, test } from 'vitest';
import { blocksOf } from './blocks.ts';

const rows = Array.from({ length: 1_000 }, (_, i) => ({ id: `agt_${i}` }));
const texts = (blocks: { id: string }[][]) => blocks.map((block) => block.map(({ id }) => id).join());

test('the blocks contain all rows in their order, and none is long', () => {
  const blocks = blocksOf(rows);
  expect(blocks.flat()).toEqual(rows);
  expect(blocks.length).toBeGreaterThan(15);
  expect(Math.max(...blocks.map(({ length }) => length))).toBeLessThan(250);
  expect(blocksOf([])).toEqual([]);
});

test('a row that moves to the top changes only the blocks that it leaves and enters', () => {
  const before = new Set(texts(blocksOf(rows)));
  for (const at of [500, 501, 999]) {
    const moved = [rows[at]!, ...rows.slice(0, at), ...rows.slice(at + 1)];
    const changed = texts(blocksOf(moved)).filter((text) => !before.has(text));
    expect(changed.length).toBeLessThanOrEqual(3);
  }
});
