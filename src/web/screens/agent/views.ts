/** The tabs of an agent's page. Each is loaded before the navigation completes, so that nothing flickers. */
import type { ComponentType } from 'react';
import type { AgentRecord } from '../../api/queries.ts';
import type { AgentTab } from '../../router.tsx';

type View = ComponentType<{ agent: AgentRecord }>;

const sources: Record<AgentTab, () => Promise<View>> = {
  conversation: async () => (await import('./conversation/tab.tsx')).ConversationTab,
  output: async () => (await import('./output/output.tsx')).OutputTab,
  changes: async () => (await import('./changes/changes.tsx')).ChangesTab,
  events: async () => (await import('./events/events.tsx')).EventsTab,
  timeline: async () => (await import('./timeline/timeline.tsx')).TimelineTab,
};
const loaded: Partial<Record<AgentTab, View>> = {};

export async function loadView(tab: AgentTab): Promise<void> {
  loaded[tab] ??= await sources[tab]();
}

/** Null if it is not loaded yet. */
export function getView(tab: AgentTab): View | null {
  return loaded[tab] ?? null;
}
