/** `svc presets …`: the agents that svc knows by name, and which of them a node has. */
import type { Command } from 'commander';
import type { PresetRecord } from '../domain/preset.ts';
import { type ApiOptions, connect } from './api.ts';
import type { Context } from './context.ts';
import { remote } from './options.ts';
import { type Column, printRows } from './output.ts';

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

/** What is left to do before it can be used. */
function next(preset: PresetRecord): string | null {
  if (preset.installed === false) return preset.install_hint;
  return preset.installed && preset.signed_in !== 'yes' ? preset.sign_in_hint : null;
}

export function addPresets(program: Command, context: Context): void {
  const { io } = context;
  const presets = program.command('presets').description('the agents that svc knows by name');

  remote(presets, 'ls', 'list them, and which are installed and signed in on a node')
    .alias('list')
    .option('--node <id>', 'the node that is asked; default: this plane’s own')
    .option('--refresh', 'ask it again, also within a minute')
    .action(async (options: Options) => {
      const api = await connect(context, options);
      const query = { node_id: options.node, refresh: options.refresh };
      await printRows(io, await api.call('listPresets', { query }), columns, options);
    });
}
