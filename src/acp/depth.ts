/** How deeply JSON is nested, before it is parsed: what is nested millions deep takes minutes to parse and to write again. */
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** Square and curly brackets differ in this bit alone. */
const CURLY = 0x20;
const OPENS = 0x7b;
const CLOSES = 0x7d;

/** Brackets in strings do not count. Of what is no JSON any answer will do. */
export function isDeeper(json: string, levels_max: number): boolean {
  // A level takes two characters at least.
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

function stringEnd(json: string, from: number): number {
  for (let at = json.indexOf('"', from + 1); at >= 0; at = json.indexOf('"', at + 1)) {
    let before = at;
    while (json.charCodeAt(before - 1) === BACKSLASH) before--;
    if ((at - before) % 2 === 0) return at;
  }
  return json.length;
}
