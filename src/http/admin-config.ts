/** Configuration over HTTP: what is set and by whom, and the live changes of root. */
import type { LiveSettings } from '../services/settings.ts';
import type { Handlers } from './call.ts';

export function configHandlers(settings: LiveSettings): Pick<Handlers, 'getConfig' | 'updateConfig'> {
  return {
    getConfig: () => settings.list(),
    updateConfig: ({ caller, body }) => settings.change(caller, body),
  };
}
