/** `svc presets …`: lists the presets, and which of them are installed on a node. */
import type { Command } from 'commander';
import { type ApiOptions, connect } from '../../../cli/api.ts';
import type { Context } from '../../../cli/context.ts';
import { remote } from '../../../cli/options.ts';
import { type Column, printRows, printStatus } from '../../../cli/output.ts';
import { printable } from '../../../cli/terminal.ts';
import type { PresetRecord } from '../rules/preset.ts';

interface Options extends ApiOptions {
  json?: boolean;
  node?: string;
  refresh?: boolean;
}

const columns: Column<PresetRecord>[] = [
  { title: 'ID', value: (preset) => preset.id },
  { title: 'NAME', value: (preset) => preset.name },
  { title: 'INSTALLED', value: installed },
  { title: 'VERSION', value: (preset) => preset.version },
  { title: 'SIGNED IN', value: (preset) => (preset.installed ? preset.signed_in : null) },
  { title: 'ASKS', value: ({ permission }) => (permission.guarantee === 'ask' ? 'yes' : 'no') },
  { title: 'COMMAND', value: (preset) => preset.command, spare: true },
];

function installed({ installed: found, command }: PresetRecord): string | null {
  if (found !== null) return found ? 'yes' : 'no';
  return command === null ? null : 'unknown';
}

/** The next step before the preset can be used, or null. */
function next(preset: PresetRecord): string | null {
  if (preset.installed === false) return preset.install_hint;
  return preset.installed && preset.signed_in !== 'yes' ? preset.sign_in_hint : null;
}

export function addPresets(program: Command, context: Context): void {
  const { io } = context;
  const presets = program.command('presets').description('list agents that svc can set up by name');

  remote(presets, 'ls', 'list presets, and which are installed and signed in on a node')
    .alias('list')
    .option('--node <id>', 'node to check; default: the main node, or the only node')
    .option('--refresh', 'check again instead of using a result from the last minute')
    .action(async (options: Options) => {
      const api = await connect(context, options);
      const query = { node_id: options.node, refresh: options.refresh };
      const found = await api.call('listPresets', { query });
      // On a terminal, a column would have too little room for a command that is to be copied.
      if (!io.stdout.isTTY || options.json)
        return printRows(io, found, [...columns, { title: 'NEXT', value: next }], options);
      await printRows(io, found, columns, options);
      const steps = found.filter((preset) => next(preset) !== null);
      if (steps.length > 0) printStatus(io, '\nto install a preset or sign in:');
      for (const preset of steps) printStatus(io, printable(`  ${preset.id}: ${next(preset)}`));
    });
}
