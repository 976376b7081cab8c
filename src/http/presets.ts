/** Presets over HTTP. */
import type { Presets } from '../services/presets.ts';
import type { Handlers } from './call.ts';

export function presetHandlers(presets: Presets): Pick<Handlers, 'listPresets'> {
  return {
    listPresets: ({ caller, query }) => presets.list(caller, query.node_id, query.refresh ?? false),
  };
}
