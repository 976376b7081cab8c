/** HTTP handlers of the settings: list them, and change live ones (root). */

import type { Handlers } from '../../server/call.ts';
import type { LiveSettings } from './service.ts';

export function configHandlers(settings: LiveSettings): Pick<Handlers, 'getConfig' | 'updateConfig'> {
  return {
    getConfig: () => settings.list(),
    updateConfig: ({ caller, body }) => settings.change(caller, body),
  };
}
