/** HTTP handlers of the presets. */

import type { Handlers } from '../../server/call.ts';
import { asShortList } from '../../server/list.ts';
import type { Presets } from './service.ts';

export function presetHandlers(presets: Presets): Pick<Handlers, 'listPresets'> {
  return {
    listPresets: async ({ caller, query }) =>
      asShortList(query, await presets.list(caller, query.node_id, query.refresh ?? false)),
  };
}
