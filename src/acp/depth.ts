/**
 * Bounds the depth and the number of values of JSON before it is parsed. JSON that is nested millions of levels deep takes
 * minutes to parse and serialize; millions of empty objects take as long, and a hundred times their size in memory.
 */
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** Square and curly brackets differ only in this bit. */
const CURLY = 0x20;
const OPENS = 0x7b;
const CLOSES = 0x7d;
const COMMA = 0x2c;

/** Whether JSON has more than `levels_max` levels. Ignores brackets in strings. The result for invalid JSON is arbitrary. */
export function exceedsDepth(json: string, levels_max: number): boolean {
  // A level takes at least two characters.
  if (json.length <= 2 * levels_max) return false;
  let level = 0;
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) at = stringEnd(json, at);
    else if ((code | CURLY) === OPENS && ++level > levels_max) return true;
    else if ((code | CURLY) === CLOSES) level--;
  }
  return false;
}

/**
 * Whether JSON has more than `values_max` values: objects, arrays and their entries. An empty object or array counts
 * as two. Ignores commas and brackets in strings. The result for invalid JSON is arbitrary.
 */
export function exceedsValueCount(json: string, values_max: number): boolean {
  // A value takes at least one character.
  if (json.length <= values_max) return false;
  let values = 1;
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) at = stringEnd(json, at);
    else if ((code === COMMA || (code | CURLY) === OPENS) && ++values > values_max) return true;
  }
  return values > values_max;
}

function stringEnd(json: string, from: number): number {
  for (let at = json.indexOf('"', from + 1); at >= 0; at = json.indexOf('"', at + 1)) {
    let before = at;
    while (json.charCodeAt(before - 1) === BACKSLASH) before--;
    if ((at - before) % 2 === 0) return at;
  }
  return json.length;
}
