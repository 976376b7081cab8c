/** Search text from users, without any query syntax. */

/**
 * The words and phrases in a search text, all of which must occur. Words are separated by spaces; text in quotation marks
 * is a phrase. Empty if there is nothing to search for.
 */
export function searchPhrases(text: string): string[] {
  return [...text.matchAll(/"([^"]*)"|\S+/g)]
    .map(([whole, phrase]) => phrase ?? whole)
    .filter((word) => /[\p{L}\p{N}]/u.test(word));
}

/** A full-text query of SQLite for all of these phrases. */
export function ftsQuery(phrases: readonly string[]): string {
  return phrases.map((phrase) => `"${phrase.replaceAll('"', '""')}"`).join(' AND ');
}
