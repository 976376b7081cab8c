/**
 * What a feature adds to screens of other features. Every part is loaded when it is needed. `features.ts` lists the features;
 * nothing else imports their folders.
 */
import type { AnyRoute } from '@tanstack/react-router';
import type { LucideIcon } from 'lucide-react';
import type { ComponentType } from 'react';
import type { RunRecord } from './api/queries.ts';
import type { MemberRecord, MembersRecord } from './screens/run/facts.ts';

export interface WebFeature {
  /** Screens inside the frame. */
  routes?: readonly AnyRoute[];
  /** Entries of the navigation and the command palette. */
  places?: readonly Place[];
  /** What the command palette also finds in the newest teams. */
  found?: Found;
  /** Where the records of the fleet feed are cached, by the kind of the frame. */
  records?: Record<string, (record: Row) => CachedRecord>;
  /** The queries that are read again after an announcement of the fleet feed, by its kind. Its items are in the field of this name. */
  announced?: Record<string, (items: readonly Row[]) => readonly CacheKey[]>;
  /** Tabs of the settings, by the last segment of their URL. */
  settings?: Record<string, SettingsTab>;
  /** Below the form of the sign-in page. Renders nothing if it cannot be loaded. */
  sign_in?: ComponentType;
  /** What a new root user is offered before they continue; null: nothing. */
  offer?: () => Promise<ComponentType<{ onDone: () => void }> | null>;
  /** After the other panels of a run. */
  run_panel?: Part<RunPanelProps>;
  /** A tab of every member of a run. It is the first choice for members without an agent. */
  member_tab?: MemberTab;
}

export interface RunPanelProps {
  run: RunRecord;
  live: boolean;
  members: MembersRecord | undefined;
  /** The member that the page shows. */
  member_id: string | undefined;
  /** Called when the user begins to do something for this member, so that the page keeps showing it. */
  onUse: () => void;
}

export interface Place {
  to: string;
  label: string;
  icon: LucideIcon;
  /** Only for root. */
  root?: true;
  /** Where it is in the sidebar; below the agents, next to the account, if it has none. */
  group?: 'Work' | 'Teams' | 'Admin';
  /** `g`, then this letter, opens it. */
  jump?: string;
  /** The number of items that wait there, beside its label. */
  useCount?: () => number;
}

/** Records of teams that the command palette finds. */
export interface Found {
  heading: string;
  icon: LucideIcon;
  query: (team_id: string) => { queryKey: CacheKey; queryFn: () => Promise<Row[]> };
  entry: (record: Row) => FoundEntry;
}

interface FoundEntry {
  id: string;
  label: string;
  status: string;
  /** Its path, with the search parameters. */
  href: string;
}

export type Row = Record<string, unknown>;
export type CacheKey = readonly unknown[];

/** Where a record is in the query cache. */
export interface CachedRecord {
  list: CacheKey;
  /** The key of the single record, for kinds that screens read one by one. */
  one?: CacheKey;
  /** The field that identifies a record within its list. */
  id: 'id' | 'step_key';
}

export interface SettingsTab {
  label: string;
  part: Part<object>;
}

export interface MemberTab {
  name: string;
  label: string;
  /** Shown after the label, unless it is 0. */
  count(member: MemberRecord): number;
  part: Part<MemberTabProps>;
}

export interface MemberTabProps {
  run: RunRecord;
  live: boolean;
  /** The member. */
  actor_id: string;
}

/** A component that the loader of a route loads before the screen is shown, so that nothing flickers. */
export interface Part<P> {
  load(): Promise<void>;
  /** Null if it is not loaded yet. */
  view(): ComponentType<P> | null;
}

export function part<P>(source: () => Promise<ComponentType<P>>): Part<P> {
  let loaded: ComponentType<P> | null = null;
  return {
    load: async () => {
      loaded ??= await source();
    },
    view: () => loaded,
  };
}
