import { expect, test } from 'vitest';
import { defaultNode } from './default-node.ts';

const nodes = (...ids: string[]) => ids.map((id) => ({ id }));

test('the wanted node is chosen if it is listed, or while the list is not loaded', () => {
  expect(defaultNode(nodes('main', 'gpu-1'), 'gpu-1')).toBe('gpu-1');
  expect(defaultNode([], 'gpu-1')).toBe('gpu-1');
});

test('otherwise the main node is chosen, and without it the first one', () => {
  expect(defaultNode(nodes('gpu-1', 'main'), 'gone')).toBe('main');
  expect(defaultNode(nodes('gpu-1', 'gpu-2'), 'main')).toBe('gpu-1');
  expect(defaultNode(nodes('gpu-1'))).toBe('gpu-1');
  expect(defaultNode([])).toBe('main');
});
