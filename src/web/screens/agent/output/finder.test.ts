import { describe, expect, test } from 'vitest';
import { numbered, outputEvent } from '../../../../acp/transcript/testing.ts';
import { Lines } from '../../../transcript/lines.ts';
import type { Span } from '../../../transcript/spans.ts';
import { Finder, findMatches, splitPieces, step } from './finder.ts';

function printing() {
  const lines = new Lines();
  let seq = 0;
  const print = (text: string, more: Record<string, unknown> = {}) => {
    lines.add(numbered([outputEvent(text, more)], ++seq));
  };
  return { lines, print };
}

const query = { text: 'needle', regex: false, exact: false };
const spans = (...texts: string[]) => texts.map((text) => ({ text }) as Span);

describe('the finder', () => {
  test('finds matches in existing and in new lines', () => {
    const { lines, print } = printing();
    print('a needle\nhay\nNEEDLE\n');
    const finder = new Finder(lines, query);
    expect(finder.update()).toEqual({ lines: [1, 3], error: null });
    print('hay\nneedle\n');
    expect(finder.update().lines).toEqual([1, 3, 5]);
    expect(finder.update().lines).toEqual([1, 3, 5]);
  });

  test('searches a line again when it grows', () => {
    const { lines, print } = printing();
    print('nee', { partial: true });
    print('needle on stderr\n', { stream: 'stderr' });
    const finder = new Finder(lines, query);
    expect(finder.update().lines).toEqual([2]);
    print('dle', { partial: true });
    expect(finder.update().lines).toEqual([1, 2]);
    print(' and more\nneedle\n');
    expect(finder.update().lines).toEqual([1, 2, 3]);
  });

  test('drops matches in lines that the page no longer has', () => {
    const { lines, print } = printing();
    print('needle\n');
    const finder = new Finder(lines, query);
    expect(finder.update().lines).toEqual([1]);
    for (let at = 0; at < 210; at++) print('hay\n'.repeat(1000));
    expect(lines.first).toBeGreaterThan(1);
    expect(finder.update().lines).toEqual([]);
  });

  test('supports case-sensitive search and regular expressions', () => {
    const { lines, print } = printing();
    print('Needle 12\nneedle ab\n');
    expect(new Finder(lines, { ...query, exact: true }).update().lines).toEqual([2]);
    expect(new Finder(lines, { text: 'needle \\d', regex: true, exact: false }).update().lines).toEqual([1]);
    expect(new Finder(lines, { text: '(', regex: true, exact: false }).update().error).toContain('(');
  });

  test('goes to the next or previous match, and wraps around', () => {
    expect(step([3, 8, 20], 3, 1)).toBe(8);
    expect(step([3, 8, 20], 20, 1)).toBe(3);
    expect(step([3, 8, 20], 8, -1)).toBe(3);
    expect(step([3, 8, 20], 3, -1)).toBe(20);
    expect(step([], 3, 1)).toBeNull();
  });
});

describe('matches in a line', () => {
  test('are all found', () => {
    expect(findMatches('a needle, a Needle', /needle/i)).toEqual([
      [2, 8],
      [12, 18],
    ]);
    expect(findMatches('abc', /x*/)).toEqual([]);
  });

  test('can extend across changes of color', () => {
    const cut = splitPieces(spans('a nee', 'dle b'), /needle/);
    expect(cut.map(({ text, hit }) => [text, hit])).toEqual([
      ['a ', false],
      ['nee', true],
      ['dle', true],
      [' b', false],
    ]);
  });

  test('do not change the text', () => {
    const line = spans('one two', ' two', '', ' three');
    expect(
      splitPieces(line, /two/)
        .map(({ text }) => text)
        .join(''),
    ).toBe('one two two three');
    expect(splitPieces(line, /four/).map(({ text, hit }) => [text, hit])).toEqual([
      ['one two', false],
      [' two', false],
      ['', false],
      [' three', false],
    ]);
  });
});
