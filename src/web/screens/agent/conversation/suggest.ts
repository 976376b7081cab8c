/** The agent's own commands while one of them is being written (pure). */
import type { AvailableCommand } from '@agentclientprotocol/sdk';

/** Those that begin like the text, then those that have it somewhere; null: no command is being written. */
export function commandsFor(text: string, commands: readonly AvailableCommand[]): AvailableCommand[] | null {
  const [, written] = /^\/(\S*)$/.exec(text) ?? [];
  if (written === undefined) return null;
  const word = written.toLowerCase();
  const found = commands.filter(({ name }) => name.toLowerCase().includes(word));
  const begins = ({ name }: AvailableCommand) => name.toLowerCase().startsWith(word);
  const sorted = [...found.filter(begins), ...found.filter((command) => !begins(command))];
  return sorted.length === 0 ? null : sorted;
}

/** What stands in the field when a command was chosen. */
export function written({ name }: AvailableCommand): string {
  return `/${name} `;
}
