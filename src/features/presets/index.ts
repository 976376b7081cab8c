/** Presets: known agent programs, and which of them are installed on a node. */
import type { Core, Feature } from '../feature.ts';
import { presetHandlers } from './http.ts';
import { Presets } from './service.ts';

export function openPresets({ clock, nodes }: Core): Feature {
  const presets = new Presets({ clock, nodes });
  return { name: 'presets', routes: presetHandlers(presets) };
}
