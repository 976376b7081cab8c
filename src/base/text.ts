/** Text with a bounded size. */

/**
 * Cuts text to at most `bytes_max` bytes of UTF-8, between characters. Replaces lone surrogates, which cannot be encoded.
 */
export function cutText(text: string, bytes_max: number): string {
  const bytes = Buffer.from(text.slice(0, bytes_max));
  let end = Math.min(bytes_max, bytes.length);
  while (end < bytes.length && (bytes[end]! & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}
