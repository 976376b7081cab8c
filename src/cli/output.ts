/**
 * What commands print: data on stdout, messages on stderr. Data is JSON on request, a table on a terminal, and
 * tab-separated rows without a heading in a pipe.
 */
import { styleText } from 'node:util';
import stringWidth from 'fast-string-width';
import type { Io } from './context.ts';
import { limits } from './limits.ts';
import { printable, printableLines } from './terminal.ts';

/** Titles of columns that are never shortened. */
const KEPT_WHOLE = ['ID', 'STATUS'];
/** A column does not get narrower than this. */
const CELL_CHARS_MIN = 8;

export interface OutputOptions {
  json?: boolean | undefined;
}

export interface Column<T> {
  title: string;
  value: (row: T) => string | number | null | undefined;
  /** Replaces `value` on a terminal. */
  short?: (row: T) => string;
  /**
   * Left out on a terminal that is too narrow for the whole table, the last such column first. A number: not before it is
   * shortened to this many characters.
   */
  spare?: true | number;
}

export function supportsColor(stream: { isTTY?: boolean }, env: Io['env']): boolean {
  return Boolean(stream.isTTY) && !env.NO_COLOR && env.TERM !== 'dumb';
}

/** Writes data; resolves once the stream has accepted it, so that a slow reader slows the command down. */
export async function print(io: Io, data: string | Uint8Array): Promise<void> {
  if (data.length === 0) return;
  await new Promise<void>((resolve, reject) => {
    io.stdout.write(data, (error) => (error ? reject(error) : resolve()));
  });
}

/** Writes a line for the person at the terminal; never data. */
export function printStatus(io: Pick<Io, 'stderr'>, line: string): void {
  io.stderr.write(`${line}\n`);
}

export async function printJson(io: Io, value: unknown): Promise<void> {
  await print(io, jsonText(value, io.stdout.isTTY ? 2 : undefined));
}

/** JSON with a newline at the end. Escapes control characters and characters that reorder text. */
export function jsonText(value: unknown, indent?: number): string {
  const text = JSON.stringify(value, null, indent).replace(
    /[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return `${text}\n`;
}

export async function printRows<T>(
  io: Io,
  rows: readonly T[],
  columns: readonly Column<T>[],
  options: OutputOptions,
): Promise<void> {
  if (options.json) return printJson(io, rows);
  const cells = rows.map((row) =>
    columns.map(({ value, short }) =>
      printable(String((io.stdout.isTTY && short ? short : value)(row) ?? '-')),
    ),
  );
  if (!io.stdout.isTTY) return print(io, cells.map((row) => `${row.join('\t')}\n`).join(''));
  if (rows.length === 0) return printStatus(io, 'none');
  const wanted = columns.map(({ title }, at) =>
    Math.max(title.length, ...cells.map((row) => stringWidth(row[at]!))),
  );
  const room = io.stdout.columns ?? limits.terminal_columns;
  const shown = shownColumns(columns, wanted, room);
  const titles = columns.map((column) => column.title);
  const widths = fittedWidths(
    shown.map((at) => columns[at]!),
    shown.map((at) => wanted[at]!),
    room,
  );
  const line = (row: string[]) =>
    shown
      .map((at) => row[at]!)
      .map((cell, at) => shorten(cell, widths[at]!))
      .map((cell, at) => (at === shown.length - 1 ? cell : pad(cell, widths[at]!)))
      .join('  ');
  const heading = line(titles);
  const styled = supportsColor(io.stdout, io.env)
    ? styleText('dim', heading, { validateStream: false })
    : heading;
  await print(io, [styled, ...cells.map(line)].map((text) => `${text}\n`).join(''));
}

type Shape = Pick<Column<never>, 'title' | 'spare'>;

/** The indexes of the columns that are not left out. */
function shownColumns(columns: readonly Shape[], wanted: readonly number[], room: number): number[] {
  const shown = [...columns.keys()];
  const least = (at: number) => {
    const { spare } = columns[at]!;
    return typeof spare === 'number' ? Math.min(wanted[at]!, spare) : wanted[at]!;
  };
  while (shown.reduce((sum, at) => sum + least(at) + 2, -2) > room) {
    const last = shown.findLastIndex((at) => columns[at]!.spare !== undefined);
    if (last === -1) break;
    shown.splice(last, 1);
  }
  return shown;
}

/**
 * Narrows columns until a table fits its terminal: those that could also be left out, then the widest ones. Ids stay whole,
 * because people copy them, and so does the status, because it says who has to act.
 */
function fittedWidths(columns: readonly Shape[], wanted: readonly number[], room: number): number[] {
  const widths = [...wanted];
  const gaps = 2 * (widths.length - 1);
  const overrun = () => widths.reduce((sum, width) => sum + width, gaps) - room;
  for (const [at, { spare }] of columns.entries()) {
    if (typeof spare === 'number')
      widths[at] = Math.max(Math.min(widths[at]!, spare), widths[at]! - Math.max(0, overrun()));
  }
  for (;;) {
    if (overrun() <= 0) return widths;
    const shrinkable = [...widths.keys()].filter((at) => {
      const { title } = columns[at]!;
      return !KEPT_WHOLE.includes(title) && widths[at]! > Math.max(title.length, CELL_CHARS_MIN);
    });
    if (shrinkable.length === 0) return widths;
    const widest = shrinkable.reduce((best, at) => (widths[at]! > widths[best]! ? at : best));
    widths[widest]!--;
  }
}

/** A path keeps its end, and other text its beginning. */
function shorten(cell: string, width: number): string {
  return cut(cell, width, { keeps_end: cell.startsWith('/') });
}

/** Shortens text to a width in columns, in linear time, with an ellipsis for what is left out at its end or its beginning. */
export function cut(text: string, width: number, { keeps_end = false } = {}): string {
  if (stringWidth(text) <= width) return text;
  const segments = new Intl.Segmenter().segment(text);
  const kept: string[] = [];
  let left = width - 1;
  for (const { segment } of keeps_end ? [...segments].reverse() : segments) {
    left -= stringWidth(segment);
    if (left < 0) break;
    kept.push(segment);
  }
  return keeps_end ? `…${kept.reverse().join('')}` : `${kept.join('')}…`;
}

/**
 * Prints one record: JSON on request, else `field  value` lines. On a terminal, text of several lines is shown as such; in a
 * pipe, each field is one line.
 */
export async function printRecord(io: Io, record: object, options: OutputOptions): Promise<void> {
  if (options.json) return printJson(io, record);
  const fields = Object.entries(record).filter(([, value]) => !isEmpty(value));
  const width = Math.max(...fields.map(([name]) => name.length));
  const line = (name: string, value: string) =>
    io.stdout.isTTY && value.includes('\n')
      ? `${name}\n${printableLines(value.trimEnd()).replace(/^/gm, '  ')}\n`
      : `${name.padEnd(width)}  ${printable(value)}\n`;
  await print(io, fields.map(([name, value]) => line(name, fieldText(value))).join(''));
}

/** Prints the result of a command for one record: JSON on request, a status line on a terminal, or a table row in a pipe. */
export async function report<T extends object>(
  io: Io,
  record: T,
  { line, columns }: { line: string; columns: readonly Column<T>[] },
  options: OutputOptions,
): Promise<void> {
  if (options.json) await printJson(io, record);
  else if (io.stdout.isTTY) printStatus(io, printable(line));
  else await printRows(io, [record], columns, options);
}

/** The non-empty fields of an object as `name=value`, also nested ones. Null for an empty object. */
export function partsText(value: object): string | null {
  return parts('', value).join(', ') || null;
}

function parts(prefix: string, value: object): string[] {
  const known = Object.entries(value).filter(([, part]) => !isEmpty(part));
  return known.flatMap(([name, part]) =>
    isObject(part) ? parts(`${prefix}${name}.`, part) : [`${prefix}${name}=${fieldText(part)}`],
  );
}

function fieldText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isEmpty(value: unknown): boolean {
  return (
    value === null || value === undefined || (typeof value === 'object' && Object.keys(value).length === 0)
  );
}

export function pad(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - stringWidth(text)));
}
