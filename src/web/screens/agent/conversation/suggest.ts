/** What can be chosen while a command of the agent, or the name of a file, is being written (pure). */
import type { AvailableCommand } from '@agentclientprotocol/sdk';

export interface Suggestion {
  key: string;
  label: string;
  note: string;
  /** What the field holds, and where one writes on, once this was chosen. */
  text: string;
  caret: number;
}

/** Those that begin like the text, then those that have it somewhere. Empty: no command is being written. */
export function commandsFor(text: string, commands: readonly AvailableCommand[]): Suggestion[] {
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

/** The name of a file that is being written at the caret, after an `@` that begins a word. */
export interface FileWord {
  /** Where the `@` stands. */
  from: number;
  word: string;
}

export function fileWordAt(text: string, caret: number): FileWord | null {
  const [, word] = /(?:^|\s)@(\S*)$/.exec(text.slice(0, caret)) ?? [];
  return word === undefined ? null : { from: caret - word.length - 1, word };
}

/** Of paths that may have been asked for by fewer letters. A name with a space in it stands between quotes, as agents read it. */
export function filesFor(
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
