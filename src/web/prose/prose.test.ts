import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, test } from 'vitest';
import { escapeHidden } from '../../core/visible.ts';
import { webAddress } from './links.ts';
import { Prose } from './markdown.tsx';

test('only http and https URLs become links', () => {
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

test('shows invisible characters in a command by their code points', () => {
  expect(escapeHidden('rm \u202e-rf\u001b[2K')).toBe('rm ⟦U+202E⟧-rf⟦U+001B⟧[2K');
  expect(escapeHidden('a\tb\nc ü 👩‍💻')).toBe('a\tb\nc ü 👩‍💻');
});

const shown = (text: string) => renderToStaticMarkup(createElement(Prose, { text }));

test.each([
  ['nested lists', '- '.repeat(2_000)],
  ['nested numbered lists', '1. '.repeat(20_000)],
  ['nested quotes', '>'.repeat(5_000)],
  ['alternating nested lists', '- a\n  - '.repeat(20_000)],
  ['empty items', '-\n'.repeat(50_000)],
  ['unclosed emphasis', '*a_'.repeat(50_000)],
  ['a line that only looks like a fence', `\`\`\` \`\n${'*a_'.repeat(50_000)}`],
  ['unmatched brackets', ']('.repeat(50_000)],
  ['definitions and references', `${'[a]'.repeat(50_000)}\n\n[a]: https://example.org\n\n`],
  ['nested links', '[a]('.repeat(50_000)],
  ['marks after fenced code', `\`\`\`\nx\n\`\`\`\n${'*a_'.repeat(50_000)}`],
  ['the end of a URL', `http://a.b/${')'.repeat(16_000)}`],
  ['entities at the end of a URL', `www.a.b/${'&a;'.repeat(10_000)}`],
  ['unclosed comments', 'x <!--a'.repeat(10_000)],
  ['unclosed processing instructions', 'x <?a'.repeat(10_000)],
  ['unclosed declarations', 'x <!A '.repeat(10_000)],
  ['unclosed titles of links', `${'[a](b "c '.repeat(300)}${'d'.repeat(50_000)}`],
  ['a table with rows of few cells', `${'|a'.repeat(500)}|\n${'|-'.repeat(500)}|\n${'b\n'.repeat(2_000)}`],
  ['a table in a quote', `>${'|a'.repeat(500)}|\n>${'|-'.repeat(500)}|\n${'>b\n'.repeat(1_000)}`],
  ['very many lines', 'a\r'.repeat(50_000)],
])('shows Markdown that is too slow to parse as plain text: %s', (_, text) => {
  const html = shown(`${text}end`);
  expect(html).toContain('end');
  expect(html).not.toMatch(/<(ul|ol|blockquote|em|strong|a|table)\b/);
});

test('a long, ordinary message is rendered as Markdown', () => {
  const list = '- **one**: [two](https://example.org)\n  - `three`\n'.repeat(150);
  const code = `\`\`\`ts\n${"a['b'] *= c_d_e;\n".repeat(500)}\`\`\`\n`;
  const html = shown(`# Title\n\n${list}\nText\n\n> - deep\n>   - deeper\n\n${code}`);
  for (const tag of ['ul', 'strong', 'a', 'code', 'blockquote', 'pre']) expect(html).toContain(`<${tag}`);
});

test('links whose URLs are in another block, before or after, have them', () => {
  const html = shown(
    [
      '[early]: https://example.org/early',
      '- See [the docs][1], [API] and [Early].',
      '```\na[1]\n```',
      'No [link].\n',
      '[1]: https://example.org/docs "Docs"\n[api]: <https://example.org/api>\n[1]: https://example.org/other',
      'The last.',
    ].join('\n\n'),
  );
  for (const page of ['early', 'docs', 'api']) expect(html).toContain(`href="https://example.org/${page}"`);
  expect(html).not.toContain('other');
  expect(html).toContain('No [link].');
  expect(html).toMatch(/a\[1\](?!:)/);
  // The definition may be the last line.
  expect(shown('A [link][1].\n\nMore.\n\n[1]: https://example.org/a')).toContain(
    'href="https://example.org/a"',
  );
});

test('footnotes are shown as they were written', () => {
  const html = shown('A claim[^1], another[^b].\n\n[^1]: The *source*.\n[^b]: https://example.org/b\n');
  expect(html).toContain('A claim[^1], another[^b].');
  expect(html).toContain('<p class="measure my-1.5">[^1]: The <em>source</em>.</p>');
  expect(html).toMatch(/\[\^b\]: <a href="https:\/\/example.org\/b"/);
  expect(shown('> [^1]: one\n> [^2]: two\n')).toMatch(/\[\^1\]: one<br\/>\s*\[\^2\]: two/);
  // The list stays one without paragraphs.
  expect(shown('- one\n  [^1]: two\n- [^2]: three\n').match(/<li>|<p|\[\^\d\]:/g)).toEqual([
    ...['<li>', '[^1]:', '<li>', '[^2]:'],
  ]);
  for (const start of ['- item\n\n  ', '> ', '- '])
    expect(shown(`${start}\`\`\`\n${start.startsWith('>') ? '> ' : '  '}[^a]: b\n`)).toContain('>[^a]: b');
});
