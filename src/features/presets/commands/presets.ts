/** `svc presets …`: lists the presets, and which of them are installed on a node. */
import type { Command } from 'commander';
import { type ApiOptions, connect } from '../../../cli/api.ts';
import type { Context } from '../../../cli/context.ts';
import { remote } from '../../../cli/options.ts';
import { type Column, printRows } from '../../../cli/output.ts';
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
  { title: 'COMMAND', value: (preset) => preset.command },
  { title: 'NEXT', value: next },
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
      await printRows(io, await api.call('listPresets', { query }), columns, options);
    });
}
