import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, test } from 'vitest';
import { outputEvent } from '../../../../acp/transcript/testing.ts';
import { Lines } from '../../../transcript/lines.ts';
import { LineRow } from './line-row.tsx';

function render(raw: string, pattern: RegExp | null): string {
  const lines = new Lines();
  lines.add([{ ...outputEvent(raw), seq: 1 } as never]);
  const usual = { chosen: false, current: false, wrap: false, times: false, digits: 1 };
  return renderToStaticMarkup(createElement(LineRow, { line: lines.at(1)!, index: 0, pattern, ...usual }));
}

test.each([
  ['colors', null],
  ['colors and matches', /./],
])('a line with very many %s has few elements, and says where its colors end', (_, pattern) => {
  const html = render('\x1b[31ma\x1b[32mb'.repeat(3_000), pattern);
  expect(html.match(/<(span|mark)/g)!.length).toBeLessThan(600);
  expect(html.match(/\[colors end\]/g)).toHaveLength(1);
  expect(html.replace(/<[^>]*>|\[colors end\]/g, '')).toBe(`1${'ab'.repeat(3_000)}`);
});

test('a line with usual colors has no such note', () => {
  expect(render('\x1b[31ma\x1b[32mb'.repeat(100), null)).not.toContain('colors end');
});
