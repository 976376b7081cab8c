/** How much of an agent's output and Markdown a page handles. */
const KI = 1024;

export const bounds = {
  /** Maximum nesting of lists and quotes at the start of a line of Markdown. */
  markdown_opening_chars: 200,
  /** Marks of lists and quotes in one Markdown text. */
  markdown_containers: 2_000,
  /** Emphasis and link marks in one block. */
  markdown_marks: 1_000,
  /** In one block, the product of its length and of the places from where a parser may read to its end. */
  markdown_scanned_chars: 5_000_000,
  /** Punctuation at the end of a URL, which a parser reads again from each character. */
  markdown_tail_chars: 100,
  /** Lines of one block; each costs more in a table, by the number of its columns. */
  markdown_lines: 2_000,
  /** Definitions of links in one Markdown text. */
  markdown_definitions: 500,
  /** Characters in all copies of definitions in one Markdown text. */
  markdown_copied_chars: 256 * KI,
  lines: 200_000,
  lines_chars: 64 * KI * KI,
  /** A longer line continues in the next row. */
  line_chars: 64 * KI,
  /** Colors that a line takes over from the ones before. */
  carry_chars: 256,
  /** Changes of color in one line. */
  line_colors: 300,
  /** Matches of a search that are marked in one line. */
  matches: 200,
} as const;
