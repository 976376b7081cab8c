/** HTTP handlers of the settings: list them, change live ones, and allow folders (root). */

import type { Handlers } from '../../server/call.ts';
import type { LiveSettings } from './service.ts';

export function configHandlers(
  settings: LiveSettings,
): Pick<Handlers, 'getConfig' | 'updateConfig' | 'allowFolder'> {
  return {
    getConfig: () => settings.list(),
    updateConfig: ({ caller, body }) => settings.change(caller, body),
    allowFolder: async ({ caller, body }) => ({
      folders: await settings.allowFolder(caller, body.setting, body.path),
    }),
  };
}
