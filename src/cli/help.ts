/** `svc help`: the help of a command at any depth, and what svc says of a name that it does not know. */
import type { Command } from 'commander';
import { closest, distance } from 'fastest-levenshtein';
import { usage } from './failure.ts';
import { printable } from './terminal.ts';

/** Among names of at most this length, two different letters make another word. */
const SHORT_NAME_CHARS = 5;

export function addHelp(svc: Command): void {
  svc
    .command('help [command...]')
    .description('display help for a command')
    .usage('[command...]')
    .action((names: readonly string[]) => {
      let command = svc;
      for (const name of names) {
        const next = findSubcommand(command, name);
        if (!next) throw usage(unknownCommand(command, name));
        command = next;
      }
      command.outputHelp();
    });
}

/** The error for a name that is not one of `parent`'s commands. Suggests the closest one if the name is likely a typo. */
export function unknownCommand(parent: Command, name: string): string {
  const names = parent.commands.map((command) => command.name());
  const near = names.length > 0 ? closest(name, names) : '';
  const help = ['svc help', ...pathOf(parent)].join(' ');
  const guess = isTypo(name, near) ? `: did you mean ${near}?` : ` (${help} lists them)`;
  return `unknown command ${printable(name)}${guess}`;
}

/**
 * Makes a command and those below it name their own help after an error, and reject unknown names as `svc help` does, also
 * before `--help`. Commander has other forms of both.
 */
export function addErrorHelp(command: Command): void {
  const path = pathOf(command).join(' ');
  const help = command.commands.length > 0 ? `svc help ${path} lists its commands` : `see svc help ${path}`;
  if (path !== '') command.showHelpAfterError(`(${help})`);
  for (const below of command.commands) addErrorHelp(below);
  if (command.commands.length === 0) return;
  const reject = (name: string) => {
    throw usage(unknownCommand(command, name));
  };
  command.on('beforeHelp', () => {
    const [name] = command.args;
    if (name !== undefined && !name.startsWith('-') && !findSubcommand(command, name)) reject(name);
  });
  // For `svc` itself, its default command does this.
  if (path !== '') command.on('command:*', ([name]: string[]) => reject(name!));
}

function findSubcommand(parent: Command, name: string): Command | undefined {
  return parent.commands.find((command) => command.name() === name || command.aliases().includes(name));
}

/** At most two letters are wrong; in a short name one, or two that are swapped. */
function isTypo(name: string, meant: string): boolean {
  const difference = distance(name, meant);
  if (difference <= 1 || Math.min(name.length, meant.length) > SHORT_NAME_CHARS) return difference <= 2;
  return difference === 2 && sorted(name) === sorted(meant);
}

function sorted(name: string): string {
  return [...name].sort().join('');
}

function pathOf(command: Command): string[] {
  return command.parent ? [...pathOf(command.parent), command.name()] : [];
}
