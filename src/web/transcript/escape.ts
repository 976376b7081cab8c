/** Makes characters with an invisible effect visible in an agent's text. */

/** Marks that reorder text, and line separators that are not `\n`. */
const REORDERING = '\\u061c\\u200e\\u200f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069';
const SPECIAL = new RegExp(`[\\0-\\x08\\x0a-\\x1f\\x7f-\\x9f${REORDERING}]`);
const EACH_SPECIAL = new RegExp(SPECIAL, 'g');
/** Whether it contains only text and tabs. */
export function isPlainText(text: string): boolean {
  return !SPECIAL.test(text);
}

export function escapeSpecial(text: string): string {
  return text.replace(EACH_SPECIAL, visible);
}

function visible(char: string): string {
  const code = char.charCodeAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  return code === 0x7f ? '\u2421' : `<U+${code.toString(16).toUpperCase().padStart(4, '0')}>`;
}
