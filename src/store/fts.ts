/** What people type into a search, as a query of SQLite's full-text index; nothing that they type has a meaning there. */

/**
 * Every word must occur: what stands between spaces, or between quotation marks, and then as it stands. Null when nothing is
 * left to search.
 */
export function ftsQuery(text: string): string | null {
  const words = [...text.matchAll(/"([^"]*)"|\S+/g)]
    .map(([whole, phrase]) => phrase ?? whole)
    .filter((word) => /[\p{L}\p{N}]/u.test(word));
  return words.length === 0 ? null : words.map((word) => `"${word.replaceAll('"', '""')}"`).join(' AND ');
}
