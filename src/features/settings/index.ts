/** The HTTP routes of the settings. Their values are part of the core. */
import type { Core, Feature } from '../feature.ts';
import { configHandlers } from './http.ts';

export function openSettingsRoutes({ settings }: Core): Feature {
  return { name: 'settings', routes: configHandlers(settings) };
}
