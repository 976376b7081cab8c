import fc from 'fast-check';
import { fromMarkdown } from 'mdast-util-from-markdown';
import { describe, expect, test } from 'vitest';
import { MarkdownBlocks, openFence, splitBlocks } from './blocks.ts';
import { bounds } from './bounds.ts';

const piece = fc.constantFrom(
  'word ',
  'more\n',
  '\n',
  '\n\n',
  '- item\n',
  '  ',
  '    ',
  '1. one\n',
  '# Head\n',
  '#',
  '---\n',
  '===\n',
  '```ts\n',
  '```\n',
  '``',
  '~~~\n',
  '> quote\n',
  '| a | b |\n|---|---|\n',
  '<div>\n',
  '</div>\n',
  '[a]: /url\n',
  "'title ",
  "'\n",
  '[a]:\n',
  '\r\n',
  '\t',
);

function grown(...texts: string[]): MarkdownBlocks {
  const blocks = new MarkdownBlocks();
  let all = '';
  for (const text of texts) {
    all += text;
    blocks.update(all);
  }
  return blocks;
}

describe('growing text', () => {
  test('a block is finished when the next one has started', () => {
    const blocks = grown('First ', 'paragraph.\n', '\nSecond');
    expect(blocks.finished).toEqual([]);
    blocks.update('First paragraph.\n\nSecond one\n');
    expect(blocks.finished).toEqual(['First paragraph.\n\n']);
    expect(blocks.tail).toBe('Second one\n');
  });

  test('a code block, a list or a quote with empty lines inside is one block', () => {
    const parts = ['```ts\n\na\n\n# b\n```\n', '- a\n\n  still a\n- b\n', '> q\n>\n> q\n', '\nend\n'];
    expect(splitBlocks(parts.join('')).blocks).toEqual([...parts.slice(0, -2), `${parts[2]}\n`, 'end\n']);
  });

  test('an incomplete line does not finish a block', () => {
    const blocks = grown('one\n\n', 'two\n', '#');
    expect(blocks.tail).toBe('two\n#');
    blocks.update('one\n\ntwo\n#three\n');
    expect(blocks.finished).toEqual(['one\n\n']);
  });

  test('a text with too many lists is not split, whether they arrive together or in finished blocks', () => {
    const list = (items: number) => '- item\n'.repeat(items);
    const most = bounds.markdown_containers;
    expect(grown(list(most + 1)).is_too_nested).toBe(true);
    const blocks = grown(list(most), 'Some text\n\n# Head\n');
    expect(blocks.is_too_nested).toBe(false);
    blocks.update(`${list(most)}Some text\n\n# Head\n> quote\n`);
    expect(blocks.is_too_nested).toBe(true);
    blocks.update('Another text');
    expect(blocks.is_too_nested).toBe(false);
  });

  test('text that does not continue the earlier text replaces it', () => {
    const blocks = grown('one\n\ntwo\n\n');
    blocks.update('another\n\ntext\n');
    expect(blocks.finished).toEqual(['another\n\n']);
  });

  test('for any text, nothing is lost, finished blocks stay, and the result equals one parse of the full text', () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
        const blocks = new MarkdownBlocks();
        let text = '';
        let before: readonly string[] = [];
        for (const piece of pieces) {
          text += piece;
          blocks.update(text);
          expect(blocks.finished.slice(0, before.length)).toEqual(before);
          expect(blocks.finished.join('') + blocks.tail).toBe(text);
          before = blocks.finished;
        }
        const expected_blocks = splitBlocks(text).blocks;
        expect(expected_blocks.join('')).toBe(text);
        expect(expected_blocks.slice(0, before.length)).toEqual(before);
      }),
      { numRuns: 1_000 },
    );
  });

  test('a long block is parsed only a few times, however many pieces it arrives in', () => {
    let read = 0;
    const blocks = new MarkdownBlocks((source) => {
      read += source.length;
      return fromMarkdown(source);
    });
    let text = '';
    for (let n = 0; n < 1_000; n++) {
      text += `- ${n} ${'word '.repeat(10)}\n`;
      blocks.update(text);
    }
    expect(blocks.tail).toBe(text);
    expect(read).toBeLessThan(6 * text.length);
  });
});

describe('an open code fence', () => {
  test('shows its code until it is closed', () => {
    expect(openFence('```ts title\nconst a = 1;\n``')).toEqual({ language: 'ts', code: 'const a = 1;\n``' });
    expect(openFence('```ts\nconst a = 1;\n```\n')).toBeNull();
    expect(openFence('````\n```\n')).toEqual({ language: '', code: '```\n' });
    expect(openFence('~~~\na\n```\n')).toEqual({ language: '', code: 'a\n```\n' });
  });

  test('is not found in other text', () => {
    for (const text of ['text', '``` `x`\n', '```', '    ```\n', '``\n']) expect(openFence(text)).toBeNull();
  });
});
