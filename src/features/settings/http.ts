/** HTTP handlers of the settings: list them, change live ones, allow folders, and examine those (root). */

import type { Handlers } from '../../server/call.ts';
import { asShortList } from '../../server/list.ts';
import { diagnose } from './diagnosis.ts';
import type { LiveSettings } from './service.ts';

export function configHandlers(
  settings: LiveSettings,
): Pick<Handlers, 'getConfig' | 'updateConfig' | 'allowFolder' | 'getDiagnosis'> {
  return {
    getConfig: ({ query }) => asShortList(query, settings.list()),
    updateConfig: ({ caller, body }) => settings.change(caller, body),
    getDiagnosis: () => diagnose(settings),
    allowFolder: async ({ caller, body }) => ({
      folders: await settings.allowFolder(caller, body.setting, body.path),
    }),
  };
}
