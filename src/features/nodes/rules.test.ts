import { expect, test } from 'vitest';
import { problems } from '../../core/problem.ts';
import { chooseNode } from './rules.ts';

test('new work without a node runs on the main node', () => {
  const nodes = { is_local: true, registered: ['box'] };
  expect(chooseNode(undefined, nodes)).toBe('main');
  expect(chooseNode('main', nodes)).toBe('main');
  expect(chooseNode('other', nodes)).toBe('other');
});

test('without a main node, it runs on the only registered node', () => {
  const nodes = { is_local: false, registered: ['box'] };
  expect(chooseNode(undefined, nodes)).toBe('box');
  expect(chooseNode('other', nodes)).toBe('other');
});

test('without a main node, it is refused there, and if there is a choice or nothing to choose from', () => {
  const refusal = problems.noLocalNode().message;
  expect(() => chooseNode('main', { is_local: false, registered: ['box'] })).toThrow(refusal);
  expect(() => chooseNode(undefined, { is_local: false, registered: ['a', 'b'] })).toThrow(refusal);
  for (const id of ['main', undefined])
    expect(() => chooseNode(id, { is_local: false, registered: [] })).toThrow(problems.noNodes().message);
});
