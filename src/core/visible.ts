/**
 * Makes text safe to show to people who base a decision on it (pure). Characters that are hidden or imitate others are
 * replaced by their code points, such as `⟦U+202E⟧`, and blanks that could push text out of view by their number, such as
 * `⟨300 spaces⟩`.
 */

/**
 * Characters without a fixed appearance (controls, format and bidi characters, private use, unassigned), characters that
 * renderers leave out, blanks other than the space, and three symbols that render as nothing. An emoji is matched first
 * and as a whole, so the joiners and variation selectors in it stay.
 */
const EMOJI_OR_HIDDEN = pattern(
  String.raw`\p{RGI_Emoji}|([[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800\ufffc\u{1d159}]--[\t\n ]])`,
);

const WORD = pattern(String.raw`[\p{L}\p{M}\p{N}_]+`);

/**
 * In a word with Latin letters: letters, marks and digits of a script that is not written together with Latin (Unicode
 * Technical Standard 39, section 5.2, "highly restrictive", which allows Chinese, Japanese and Korean).
 */
const FOREIGN = pattern(
  String.raw`[[\p{L}\p{M}\p{N}]--[\p{scx=Latin}\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Bopomofo}\p{scx=Hangul}\p{scx=Common}\p{scx=Inherited}]]`,
);

/** Letters and digits in a special form, such as fullwidth or mathematical. Superscripts are in other categories. */
const STYLED = pattern(String.raw`[[\p{Lu}\p{Ll}\p{Nl}\p{Nd}]--\p{ASCII}]`);

/** More than 80 blanks, or more than 5 empty lines. */
const LONG_GAP = /\n(?:[\t ]*\n){6,}|(?<![\t ])[\t ]{81,}/g;

const PLAIN = /^[\t\n -~]*$/;

/**
 * Replaces long runs of blanks and of empty lines, every character that is invisible or blank, every letter or digit that is a
 * variant of an ASCII one, and, in words with Latin letters, every letter of a script that is not normally mixed with Latin. Line
 * ends become `\n`; other tabs and spaces stay. Not detected: words made up entirely of letters that resemble ASCII, lookalikes
 * within the Latin script, and punctuation.
 */
export function escapeHidden(text: string): string {
  const lines = text.replaceAll('\r\n', '\n').replace(LONG_GAP, nameGap);
  if (PLAIN.test(lines)) return lines;
  return lines
    .replace(WORD(), plainWord)
    .replace(EMOJI_OR_HIDDEN(), (emoji, hidden?: string) => (hidden === undefined ? emoji : nameOf(hidden)));
}

function nameGap(gap: string): string {
  if (gap.startsWith('\n')) return `\n⟨${gap.split('\n').length - 2} empty lines⟩\n`;
  const name = !gap.includes('\t') ? 'spaces' : !gap.includes(' ') ? 'tabs' : 'spaces and tabs';
  return `⟨${gap.length} ${name}⟩`;
}

function plainWord(word: string): string {
  const unstyled = word.replace(STYLED(), (one) =>
    /^[A-Za-z0-9]$/.test(one.normalize('NFKC')) ? nameOf(one) : one,
  );
  return /\p{Script=Latin}/v.test(word) ? unstyled.replace(FOREIGN(), nameOf) : unstyled;
}

function nameOf(character: string): string {
  return `⟦U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}⟧`;
}

/**
 * Compiles a pattern when it is first needed. Most text is ASCII, and as literals the patterns would take 35 of the 180 ms of
 * processor time in which each command starts.
 */
function pattern(source: string): () => RegExp {
  let compiled: RegExp | undefined;
  return () => {
    compiled ??= new RegExp(source, 'gv');
    return compiled;
  };
}
