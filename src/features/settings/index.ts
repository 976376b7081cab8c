/** The settings over HTTP; their values belong to the core. */
import type { Core, Feature } from '../feature.ts';
import { configHandlers } from './http.ts';

export function openSettingsRoutes({ settings }: Core): Feature {
  return { name: 'settings', routes: configHandlers(settings) };
}
