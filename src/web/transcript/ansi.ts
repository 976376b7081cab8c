/**
 * Makes a line of an agent's output safe to show: colors stay; anything that would move a cursor, set a title or reorder text is
 * removed or made visible.
 */
import Anser from 'anser';
import { bounds } from './bounds.ts';
import { escapeSpecial, isPlainText } from './escape.ts';

export interface Span {
  readonly text: string;
  /** A name (`red`, `bright-red`) for the theme, or `#rrggbb`; null for the default. */
  readonly fg: string | null;
  readonly bg: string | null;
  readonly bold: boolean;
  readonly dim: boolean;
  readonly italic: boolean;
  readonly underline: boolean;
  readonly strike: boolean;
  /** It is the rest of a line that changes its color too often, and has no colors. */
  readonly is_rest?: true;
}

const COLOR = /^(?:\x1b\[|\x9b)([\d;:]*)m$/;
const COLORS = /(?:\x1b\[|\x9b)([\d;:]*)m/g;
const SEQUENCE =
  // CSI; OSC, DCS, SOS, PM and APC with their strings; other escapes; each also if cut off at the end of the line. No string
  // contains the start of another sequence, so nothing is scanned twice.
  /(?:\x1b\[|\x9b)[0-?]*[ -/]*(?:[@-~]|$)|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]*(?:\x07|\x1b\\|\x9c|$)|\x1b[ -/]*(?:[0-~]|$)/g;

/** The text of a line as it is shown, without colors; searches look in this text. */
export function plainText(raw: string): string {
  if (isPlainText(raw)) return raw;
  return escapeSpecial(lastWritten(raw).text.replace(SEQUENCE, ''));
}

/** `carry`: the colors that are on at the start of the line. */
export function parseSpans(raw: string, carry = ''): Span[] {
  if (carry === '' && isPlainText(raw)) return raw === '' ? [] : [plain(raw)];
  const { before, text } = lastWritten(raw);
  const end = colorsEnd(text);
  const colored = colorsAfter(carry, before) + text.slice(0, end).replace(SEQUENCE, colorOnly);
  const spans = Anser.ansiToJson(colored, { json: true, use_classes: true, remove_empty: true }).map(toSpan);
  const rest = escapeSpecial(text.slice(end).replace(SEQUENCE, ''));
  return rest === '' ? spans : [...spans, { ...plain(rest), is_rest: true }];
}

/** Where a line has had its colors. */
function colorsEnd(text: string): number {
  let count = 0;
  for (const { index } of text.matchAll(COLORS)) if (count++ === bounds.line_colors) return index;
  return text.length;
}

/** The colors that are on after `raw`, as the sequences that set them. */
export function colorsAfter(carry: string, raw: string): string {
  let colors = carry;
  for (const [, codes] of raw.matchAll(COLORS)) {
    if (/^[0;]*$/.test(codes!)) colors = '';
    else if (/^0+;/.test(codes!)) colors = `\x1b[${semicolons(codes!)}m`;
    else colors += `\x1b[${semicolons(codes!)}m`;
  }
  return colors.length > bounds.carry_chars ? '' : colors;
}

/** A carriage return starts the line over, as in progress bars, so the last version is shown. */
function lastWritten(raw: string): { before: string; text: string } {
  let end = raw.length;
  while (raw[end - 1] === '\r') end--;
  const line = raw.slice(0, end);
  const at = line.lastIndexOf('\r') + 1;
  return { before: line.slice(0, at), text: line.slice(at) };
}

function colorOnly(sequence: string): string {
  const codes = COLOR.exec(sequence)?.[1];
  return codes === undefined ? '' : `\x1b[${semicolons(codes)}m`;
}

/** `38:2::1:2:3` is another form of `38;2;1;2;3`, and `4:3` a variant of `4`. */
function semicolons(codes: string): string {
  return codes
    .split(';')
    .map((code) => {
      const [first, mode, ...rest] = code.split(':');
      if (first !== '38' && first !== '48') return first;
      return [first, mode, ...(rest.length > 3 ? rest.slice(1) : rest)].filter((part) => part).join(';');
    })
    .join(';');
}

function plain(text: string): Span {
  const usual = {
    fg: null,
    bg: null,
    bold: false,
    dim: false,
    italic: false,
    underline: false,
    strike: false,
  };
  return { text, ...usual };
}

function toSpan(entry: Anser.AnserJsonEntry): Span {
  const { content, fg, bg, fg_truecolor, bg_truecolor, decorations } = entry;
  return {
    text: escapeSpecial(content),
    fg: toColor(fg, fg_truecolor),
    bg: toColor(bg, bg_truecolor),
    bold: decorations.includes('bold'),
    dim: decorations.includes('dim'),
    italic: decorations.includes('italic'),
    underline: decorations.includes('underline'),
    strike: decorations.includes('strikethrough'),
  };
}

/** The library has names for 16 colors, numbers for 240 more, and `r, g, b` for all others. */
function toColor(name: string | null, rgb: string | null): string | null {
  if (name === null) return null;
  if (name === 'ansi-truecolor') return rgb === null ? null : hex(rgb.split(',').map(Number));
  const palette = /^ansi-palette-(\d+)$/.exec(name)?.[1];
  return palette === undefined ? name.replace(/^ansi-/, '') : hex(paletteColor(Number(palette)));
}

/** The palette of xterm: a cube of 6 × 6 × 6 colors from 16 on, grays from 232 on. */
function paletteColor(index: number): number[] {
  if (index >= 232) return Array<number>(3).fill(8 + 10 * (index - 232));
  const level = (step: number) => (step === 0 ? 0 : 55 + 40 * step);
  const cube = index - 16;
  return [Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map(level);
}

function hex(rgb: number[]): string {
  return `#${rgb.map((level) => level.toString(16).padStart(2, '0')).join('')}`;
}
