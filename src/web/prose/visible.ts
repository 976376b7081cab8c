/**
 * Text that people decide on, with nothing in it that hides: characters that turn the direction of writing, show nothing,
 * or move the cursor of a terminal stand there by their names (pure).
 */
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\ufff9-\uffff]|\u{e0001}|[\u{e0020}-\u{e007f}]/gu;

export function visible(text: string): string {
  return text.replace(/\r\n/g, '\n').replace(HIDDEN, nameOf);
}

function nameOf(character: string): string {
  return `⟦U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}⟧`;
}
