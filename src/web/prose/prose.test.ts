import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, test } from 'vitest';
import { visible } from '../../core/visible.ts';
import { webAddress } from './links.ts';
import { Prose } from './markdown.tsx';

test('only addresses of the web are links', () => {
  expect(webAddress('https://example.org/a?b#c')).toBe('https://example.org/a?b#c');
  for (const address of [
    'javascript:alert(1)',
    'data:text/html,x',
    '/agents',
    'mailto:a@b',
    ' java\nscript:1',
  ])
    expect(webAddress(address), address).toBeNull();
});

test('what would hide in a command is named', () => {
  expect(visible('rm \u202e-rf\u001b[2K')).toBe('rm ⟦U+202E⟧-rf⟦U+001B⟧[2K');
  expect(visible('a\tb\nc ü 👩‍💻')).toBe('a\tb\nc ü 👩‍💻');
});

const shown = (text: string) => renderToStaticMarkup(createElement(Prose, { text }));

test.each([
  ['lists in each other', '- '.repeat(2_000)],
  ['numbered lists in each other', '1. '.repeat(20_000)],
  ['quotes in each other', '>'.repeat(5_000)],
  ['lists in lists', '- a\n  - '.repeat(20_000)],
  ['empty items', '-\n'.repeat(50_000)],
  ['emphasis that does not end', '*a_'.repeat(50_000)],
  ['a line that only looks like a fence', `\`\`\` \`\n${'*a_'.repeat(50_000)}`],
  ['brackets that do not match', ']('.repeat(50_000)],
  ['links in links', '[a]('.repeat(50_000)],
])('%s, too many to be read in good time, are shown as they are', (_, text) => {
  const html = shown(`${text}end`);
  expect(html).toContain('end');
  expect(html).not.toMatch(/<(ul|ol|blockquote|em|strong|a)\b/);
});

test('a long, ordinary message is rendered as Markdown', () => {
  const list = '- **one**: [two](https://example.org)\n  - `three`\n'.repeat(150);
  const code = `\`\`\`ts\n${"a['b'] *= c_d_e;\n".repeat(500)}\`\`\`\n`;
  const html = shown(`# Title\n\n${list}\nText\n\n> - deep\n>   - deeper\n\n${code}`);
  for (const tag of ['ul', 'strong', 'a', 'code', 'blockquote', 'pre']) expect(html).toContain(`<${tag}`);
});
