/** How many words a text has, in any language. Whatever is between letters and digits separates words. */
export function countWords(text: string): number {
  return text.match(/[\p{L}\p{N}]+/gu)?.length ?? 0;
}
