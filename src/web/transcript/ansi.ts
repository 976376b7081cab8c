/**
 * Makes a line of an agent's output safe to show: anything that would move a cursor, set a title or reorder text is removed or
 * made visible. `spans.ts` keeps the colors.
 */
import { bounds } from './bounds.ts';
import { escapeSpecial, isPlainText } from './escape.ts';

export const COLORS = /(?:\x1b\[|\x9b)([\d;:]*)m/g;
/** Everything that a terminal does not print as text. */
export const SEQUENCE =
  // CSI; OSC, DCS, SOS, PM and APC with their strings; other escapes; each also if cut off at the end of the line. No string
  // contains the start of another sequence, so nothing is scanned twice.
  /(?:\x1b\[|\x9b)[0-?]*[ -/]*(?:[@-~]|$)|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]*(?:\x07|\x1b\\|\x9c|$)|\x1b[ -/]*(?:[0-~]|$)/g;

/** The text of a line as it is shown, without colors; searches look in this text. */
export function plainText(raw: string): string {
  if (isPlainText(raw)) return raw;
  return escapeSpecial(lastWritten(raw).text.replace(SEQUENCE, ''));
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
export function lastWritten(raw: string): { before: string; text: string } {
  let end = raw.length;
  while (raw[end - 1] === '\r') end--;
  const line = raw.slice(0, end);
  const at = line.lastIndexOf('\r') + 1;
  return { before: line.slice(0, at), text: line.slice(at) };
}

/** `38:2::1:2:3` is another form of `38;2;1;2;3`, and `4:3` a variant of `4`. */
export function semicolons(codes: string): string {
  return codes
    .split(';')
    .map((code) => {
      const [first, mode, ...rest] = code.split(':');
      if (first !== '38' && first !== '48') return first;
      return [first, mode, ...(rest.length > 3 ? rest.slice(1) : rest)].filter((part) => part).join(';');
    })
    .join(';');
}
