/** `svc help`: the help of a command at any depth, and what svc says of a name that it does not know. */
import type { Command } from 'commander';
import { closest, distance } from 'fastest-levenshtein';
import { usage } from './failure.ts';
import { printable } from './terminal.ts';

export function addHelp(svc: Command): void {
  svc
    .command('help [command...]')
    .description('display help for a command')
    .usage('[command...]')
    .action((names: readonly string[]) => {
      let command = svc;
      for (const name of names) {
        const next = command.commands.find((one) => one.name() === name || one.aliases().includes(name));
        if (!next) throw usage(unknownCommand(command, name));
        command = next;
      }
      command.outputHelp();
    });
}

/** The error for a name that is none of `parent`'s commands, with the closest one if it differs by two letters at most. */
export function unknownCommand(parent: Command, name: string): string {
  const names = parent.commands.map((command) => command.name());
  const near = names.length > 0 ? closest(name, names) : '';
  const help = ['svc help', ...pathOf(parent)].join(' ');
  const guess = distance(name, near) <= 2 ? `: did you mean ${near}?` : ` (${help} lists them)`;
  return `unknown command ${printable(name)}${guess}`;
}

function pathOf(command: Command): string[] {
  return command.parent ? [...pathOf(command.parent), command.name()] : [];
}
