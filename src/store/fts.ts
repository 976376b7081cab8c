/** Converts search text from users to a full-text query of SQLite, without any query syntax. */

/**
 * Every word must occur. Words are separated by spaces; text in quotation marks matches as a phrase. Null if nothing is
 * left to search for.
 */
export function ftsQuery(text: string): string | null {
  const words = [...text.matchAll(/"([^"]*)"|\S+/g)]
    .map(([whole, phrase]) => phrase ?? whole)
    .filter((word) => /[\p{L}\p{N}]/u.test(word));
  return words.length === 0 ? null : words.map((word) => `"${word.replaceAll('"', '""')}"`).join(' AND ');
}
