import { expect, test } from 'vitest';
import { applyToLongTexts } from '../../testing/long-input.ts';
import { plainText } from './ansi.ts';
import { isTooMarked, MarkdownBlocks, openFence } from './blocks.ts';
import { escapeFootnotes, References } from './references.ts';

function blocks(text: string): MarkdownBlocks {
  const blocks = new MarkdownBlocks();
  blocks.update(text.slice(0, 50_000));
  return blocks;
}

function resolve(text: string): readonly string[] {
  return new References().resolve([text], new Map([['a', '[a]: /a']]), () => false);
}

test.each<[string, (text: string) => unknown]>([
  ['a line of output', plainText],
  ['an open code fence', openFence],
  ['Markdown marks', isTooMarked],
  ['Markdown blocks', blocks],
  ['references', resolve],
  ['footnotes', (text) => escapeFootnotes(`${text}]:`)],
])('parses %s in linear time, whatever is repeated', (_, apply) => {
  applyToLongTexts(apply);
  expect(apply('end')).not.toBeUndefined();
});
