/** Suggestions while the user types a command of the agent or a file name (pure). */
import type { AvailableCommand } from '@agentclientprotocol/sdk';

export interface Suggestion {
  key: string;
  label: string;
  note: string;
  /** The text of the field and the position of the caret after this is chosen. */
  text: string;
  caret: number;
}

/**
 * The position of the option that the user has selected, even if later results have moved it. Without a selection, that of the first
 * one.
 */
export function chosenAt(options: readonly Suggestion[], key: string | null): number {
  return Math.max(
    0,
    options.findIndex((option) => option.key === key),
  );
}

/** Commands that start with the text, then those that contain it. Empty: the text is not a command. */
export function suggestCommands(text: string, commands: readonly AvailableCommand[]): Suggestion[] {
  const [, written] = /^\/(\S*)$/.exec(text) ?? [];
  if (written === undefined) return [];
  const word = written.toLowerCase();
  const found = commands.filter(({ name }) => name.toLowerCase().includes(word));
  const begins = ({ name }: AvailableCommand) => name.toLowerCase().startsWith(word);
  const sorted = [...found.filter(begins), ...found.filter((command) => !begins(command))];
  return sorted.map(({ name, description, input }) => ({
    key: name,
    label: `/${name}`,
    note: [description, input?.hint].filter(Boolean).join(' · '),
    text: `/${name} `,
    caret: name.length + 2,
  }));
}

/** The file name at the caret, after an `@` at the beginning of a word. */
export interface FileWord {
  /** The position of the `@`. */
  from: number;
  word: string;
}

export function findFileWord(text: string, caret: number): FileWord | null {
  const [, word] = /(?:^|\s)@(\S*)$/.exec(text.slice(0, caret)) ?? [];
  return word === undefined ? null : { from: caret - word.length - 1, word };
}

/** Filters paths that may be results for a shorter text. A path with spaces is put in quotes, as agents expect. */
export function suggestFiles(
  text: string,
  caret: number,
  { from, word }: FileWord,
  paths: readonly string[],
): Suggestion[] {
  const fitting = paths.filter((path) => path.toLowerCase().includes(word.toLowerCase()));
  return fitting.map((path) => {
    const before = `${text.slice(0, from)}@${/\s/.test(path) ? `"${path}"` : path} `;
    const name = path.slice(path.lastIndexOf('/') + 1);
    return {
      key: path,
      label: name,
      note: path.slice(0, -name.length - 1),
      text: before + text.slice(caret).replace(/^ /, ''),
      caret: before.length,
    };
  });
}
