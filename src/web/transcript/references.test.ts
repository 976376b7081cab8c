import { expect, test } from 'vitest';
import { MarkdownBlocks } from './blocks.ts';
import { bounds } from './bounds.ts';
import { References } from './references.ts';

test('a finished block gets the definitions that arrive later, and changes only then', () => {
  const [markdown, references] = [new MarkdownBlocks(), new References()];
  let text = '';
  const resolve = (more: string) => {
    text += more;
    markdown.update(text);
    return references.resolve(markdown.finished, markdown.definitions, () => false);
  };
  resolve('A [link][One  two].\n\nText.\n\n[one two]: https://exa');
  expect(resolve('mple.org\n')).toEqual(['A [link][One  two].\n\n', 'Text.\n\n']);
  const [first, second] = resolve('\nMore, enough to be parsed.\n');
  expect([first, second]).toEqual(['[one two]: https://example.org\n\nA [link][One  two].\n\n', 'Text.\n\n']);
  expect(resolve('\nThe end of a long text.\n').slice(0, 2)).toEqual([first, second]);
  text = '';
  expect(resolve('A [link][One two].\n\nText.\n')).toEqual(['A [link][One two].\n\n']);
});

test('copies of definitions are limited', () => {
  const definitions = new Map([
    ['a', `[a]: https://example.org/${'x'.repeat(bounds.markdown_copied_chars / 4)}`],
  ]);
  const resolved = new References().resolve(Array(10).fill('[a]\n\n'), definitions, () => false);
  expect(resolved.filter((block) => block.startsWith('[a]:'))).toHaveLength(3);
});

test('a block is read again only after a definition that it lacked', () => {
  const references = new References();
  const read: string[] = [];
  const blocks = ['[a] [b] [c]\n\n', '[a]\n\n', '\\[b] [b\\]\n\n'];
  const resolve = (...labels: string[]) => {
    read.length = 0;
    const definitions = new Map(labels.map((label) => [label, `[${label}]: /${label}`]));
    return references.resolve(blocks, definitions, (block) => {
      if (blocks.includes(block)) read.push(block);
      return false;
    });
  };
  expect(resolve('a')).toEqual([`[a]: /a\n\n${blocks[0]}`, `[a]: /a\n\n${blocks[1]}`, blocks[2]]);
  expect(resolve('a', 'other')[0]).toBe(`[a]: /a\n\n${blocks[0]}`);
  expect(read).toEqual([]);
  expect(resolve('a', 'other', 'b')[0]).toBe(`[a]: /a\n[b]: /b\n\n${blocks[0]}`);
  expect(read).toEqual([blocks[0]]);
  // Those of another text.
  expect(resolve('c')).toEqual([`[c]: /c\n\n${blocks[0]}`, blocks[1], blocks[2]]);
});
