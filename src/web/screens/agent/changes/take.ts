/** The texts that take an agent's changes elsewhere (pure). */

/** The command that merges the agent's branch into what is checked out in its repository. */
export function mergeCommand(repository: string, branch: string): string {
  return `git -C ${shellWord(repository)} merge ${shellWord(branch)}`;
}

/** A text as one word of a POSIX shell. */
export function shellWord(text: string): string {
  return /^[A-Za-z0-9_./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
