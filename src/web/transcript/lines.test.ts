import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Fields } from '../../acp/json.ts';
import { agentMessage, numbered, outputEvent } from '../../acp/transcript/testing.ts';
import type { EventRecord } from '../../core/event.ts';
import { bounds } from './bounds.ts';
import { findLines } from './find.ts';
import { Lines } from './lines.ts';
import { parseSpans, type Span } from './spans.ts';

function linesOf(...events: Fields[]): Lines {
  const lines = new Lines();
  lines.add(numbered(events));
  return lines;
}

function toRaw(lines: Lines): string[] {
  return Array.from({ length: lines.last }, (_, at) => lines.at(at + 1)!.raw);
}

function spansOf(lines: Lines, n: number): Span[] {
  const { raw, carry } = lines.at(n)!;
  return parseSpans(raw, carry);
}

function many(count: number, text: (at: number) => string): EventRecord[] {
  return numbered(Array.from({ length: count }, (_, at) => outputEvent(`${text(at)}\n`)));
}

describe('lines', () => {
  test('joins a line that continues in the next event of its stream', () => {
    const lines = linesOf(
      outputEvent('one\ntwo\nthr', { partial: true }),
      outputEvent('error\n', { stream: 'stderr' }),
      agentMessage('no output'),
      outputEvent('ee\n\nfive'),
    );
    expect(toRaw(lines)).toEqual(['one', 'two', 'three', 'error', '', 'five']);
    expect(lines.at(3)).toMatchObject({ n: 3, seq: 1, ts: 1, stream: 'stdout', open: false });
    expect(lines.at(4)).toMatchObject({ stream: 'stderr', seq: 2 });
  });

  test('an incomplete line is marked as open, and becomes a new object when it grows', () => {
    const lines = linesOf(outputEvent('par', { partial: true }));
    const before = lines.at(1)!;
    expect(before).toMatchObject({ raw: 'par', open: true });
    const { version } = lines;
    lines.add(numbered([outputEvent('tial\n')], 2));
    expect(lines.at(1)).toMatchObject({ raw: 'partial', open: false });
    expect(before.raw).toBe('par');
    expect(lines.version).not.toBe(version);
  });

  test('another session starts on a new line, in the default colors', () => {
    const lines = linesOf(
      outputEvent('\x1b[31mcut', { partial: true }),
      outputEvent('new\n', { session_id: 'ses_2' }),
    );
    expect(toRaw(lines)).toEqual(['\x1b[31mcut', 'new']);
    expect(lines.at(1)?.open).toBe(false);
    expect(spansOf(lines, 2)).toMatchObject([{ text: 'new', fg: null }]);
  });

  test('bytes that are not text are replaced, and their line is marked as binary', () => {
    const lines = linesOf(
      outputEvent(btoa('ok\xff\n'), { encoding: 'base64' }),
      outputEvent('!', { encoding: 'base64' }),
    );
    expect(lines.at(1)).toMatchObject({ raw: 'ok\ufffd', binary: true });
    expect(lines.at(2)).toMatchObject({ binary: true });
  });

  test('a color continues in the next line of its stream, but not in the other stream', () => {
    const lines = linesOf(
      outputEvent('\x1b[31mred\n'),
      outputEvent('plain\n', { stream: 'stderr' }),
      outputEvent('more\n'),
    );
    expect([1, 2, 3].map((n) => spansOf(lines, n)[0]?.fg)).toEqual(['red', null, 'red']);
  });

  test('a line that is too long continues in the next row, and is copied as one line', () => {
    const long = 'x'.repeat(2.5 * bounds.line_chars);
    const lines = linesOf(
      outputEvent(long.slice(0, 100_000), { partial: true }),
      outputEvent(`${long.slice(100_000)}\nend\n`),
    );
    expect(lines.last).toBe(4);
    expect(lines.copy(1, 4)).toBe(`${long}\nend`);
  });

  test('keeps only the newest lines, with their numbers', () => {
    const lines = new Lines();
    lines.add(many(bounds.lines + 5_000, (at) => `line ${at + 1}`));
    expect(lines.last).toBe(bounds.lines + 5_000);
    expect(lines.last - lines.first).toBeLessThan(bounds.lines);
    expect(lines.last - lines.first).toBeGreaterThan(bounds.lines - 2_000);
    expect(lines.at(lines.first)?.raw).toBe(`line ${lines.first}`);
    expect(lines.at(lines.first - 1)).toBeUndefined();
    expect(lines.at(lines.last + 1)).toBeUndefined();
  });
});

describe('copying', () => {
  test('a copy of all lines is the printed text, however it was split into events', () => {
    const piece = fc.oneof(fc.constantFrom('\n', '\r\n', '\x1b[31m', '\r', 'a'), fc.string({ maxLength: 8 }));
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const text = pieces.join('');
        const events = pieces
          .filter((data) => data !== '')
          .map((data) => outputEvent(data, data.endsWith('\n') ? {} : { partial: true }));
        const lines = linesOf(...events);
        expect(lines.copy(1, lines.last)).toBe(text.replace(/\n$/, ''));
      }),
      { numRuns: 300 },
    );
  });

  test('a range beyond the lines copies only those that exist', () => {
    const lines = linesOf(outputEvent('one\ntwo\nthree\n'));
    expect(lines.copy(2, 3)).toBe('two\nthree');
    expect(lines.copy(-5, 99)).toBe('one\ntwo\nthree');
    expect(lines.copy(7, 9)).toBe('');
  });
});

describe('finding', () => {
  const lines = linesOf(outputEvent('Fail: a.ts\n\x1b[31mFa\x1b[1mil\x1b[0m b.ts\n[ok] (1+1)\nfine\n'));

  test('searches the visible text, whatever its colors and, by default, its case', () => {
    expect(findLines(lines, 'fail').lines).toEqual([1, 2]);
    expect(findLines(lines, 'fail', { case: true }).lines).toEqual([]);
    expect(findLines(lines, 'Fail', { case: true }).lines).toEqual([1, 2]);
  });

  test('the query is plain text unless it is a regular expression', () => {
    expect(findLines(lines, '(1+1)').lines).toEqual([3]);
    expect(findLines(lines, '^f', { regex: true }).lines).toEqual([1, 2, 4]);
    expect(findLines(lines, '\\b[ab]\\.ts$', { regex: true }).lines).toEqual([1, 2]);
  });

  test('an invalid expression is an error, and an empty query finds nothing', () => {
    expect(findLines(lines, '(', { regex: true })).toEqual({
      lines: [],
      error: expect.stringContaining('('),
    });
    expect(findLines(lines, '')).toEqual({ lines: [], error: null });
  });

  test('the search can start at a later line', () => {
    expect(findLines(lines, 'f', { from: 3 }).lines).toEqual([4]);
  });

  test('finds every match in 100,000 colored lines', () => {
    const log = new Lines();
    log.add(
      many(100_000, (at) => `\x1b[32m${at}\x1b[0m some words that stand in a line of a log, number ${at}`),
    );
    expect(findLines(log, 'number 2').lines).toHaveLength(11_111);
    expect(findLines(log, '^3 some', { regex: true }).lines).toEqual([4]);
  });
});
