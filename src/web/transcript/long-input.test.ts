import { expect, test } from 'vitest';
import { applyToLongTexts } from '../../testing/long-input.ts';
import { pieces } from '../screens/tasks/talk.ts';
import { plainText } from './ansi.ts';
import { openFence } from './blocks.ts';

test.each<[string, (text: string) => unknown]>([
  ['a line of output', plainText],
  ['an open code fence', openFence],
  ['addresses in a message', pieces],
])('%s: takes linear time whatever is repeated', (_, apply) => {
  applyToLongTexts(apply);
  expect(apply('end')).not.toBeUndefined();
});
