/**
 * The sub-agents of a session (pure). Agents report them in two ways: as separate sessions, announced by `subagent_update`
 * in the session that created them, or within the agent's session, by a mark that names the tool call that launched the
 * sub-agent. Messages from a sub-agent never change the state of the agent's own session.
 */

import { lastFitting } from './fitting.ts';
import { asRecord, type Fields, isRecord } from './json.ts';
import { limits } from './limits.ts';
import { readText } from './message.ts';
import {
  type Announcement,
  type Launch,
  readAnnouncement,
  readLaunch,
  readLaunchCallIds,
  readMarkedName,
  type SubagentWork,
  unreportedWork,
} from './subagent-reports.ts';

export interface Subagent extends SubagentWork {
  /** The id of its session, or of the tool call that launched it if it has none. */
  id: string;
  has_session: boolean;
  /** The sub-agent that created this one; null if the agent did. */
  parent_id: string | null;
  name: string | null;
  description: string | null;
}

/** The sub-agent that a message comes from; null if it comes from the agent itself. */
export type Source = {
  id: string;
  /** `unknown`: the message names a session that was not announced. */
  by: 'session' | 'call' | 'unknown';
} | null;

/** The sub-agent that asks for permission. */
export interface Requester {
  id: string;
  name: string | null;
  unknown_session: boolean;
}

/** The parts of the state that distinguish an agent's sessions. */
interface Sessions {
  /** Null until a session is open. Until then, every session is treated as the agent's own. */
  acp_session_id: string | null;
  subagents: Subagent[];
}

/** `params`: those of a request or a notification from the agent. */
export function findSource({ acp_session_id, subagents }: Sessions, params: unknown): Source {
  const session = readText(params, 'sessionId');
  if (session !== null && session !== acp_session_id) {
    if (subagents.some(({ id, has_session }) => has_session && id === session)) {
      return { id: session, by: 'session' };
    }
    if (acp_session_id !== null) {
      return { id: session.slice(0, limits.subagent_id_chars_max), by: 'unknown' };
    }
  }
  const { update, toolCall } = asRecord(params);
  const call = firstId([...readLaunchCallIds(update), ...readLaunchCallIds(toolCall)]);
  return call === null ? null : { id: call, by: 'call' };
}

/** The sub-agent behind a permission request; null if the agent itself asks. */
export function findRequester({ subagents }: Sessions, source: Source): Requester | null {
  if (source === null) return null;
  const { id, by } = source;
  const name = subagents.find((subagent) => subagent.id === id)?.name ?? null;
  return { id, name, unknown_session: by === 'unknown' };
}

/** The part of a message, the payload of an `acp_event`, that `updateSubagents` reads. */
export function findReport(payload: unknown): Fields {
  const { update, toolCall } = asRecord(asRecord(payload).params);
  return asRecord(update ?? toolCall);
}

/** `about`: an update, or the tool call of a permission request. Returns the same list if nothing is new. */
export function updateSubagents(
  { acp_session_id, subagents }: Sessions,
  source: Source,
  about: unknown,
): Subagent[] {
  if (!isRecord(about) || source?.by === 'unknown') return subagents;
  const parent_id = source?.id ?? null;
  if (about.sessionUpdate === 'subagent_update') {
    const announcement = readAnnouncement(about);
    const id = firstId(announcement.ids);
    if (id === null || id === acp_session_id || id === parent_id) return subagents;
    return withAnnounced(subagents, id, parent_id, announcement);
  }
  // Ids of tool calls are unique only within a session.
  if (source?.by === 'session') return subagents;
  const marked = source === null ? subagents : withMarked(subagents, source.id, readMarkedName(about));
  return withLaunched(marked, parent_id, readLaunch(about));
}

/** Prefixes the id of a tool call with the id of the sub-agent's session, because ids are unique only within a session. */
export function scopedCall(source: Source, call: Fields): Fields {
  const { toolCallId } = call;
  if (source === null || source.by === 'call' || typeof toolCallId !== 'string') return call;
  return { ...call, toolCallId: `${source.id} ${toolCallId}` };
}

// --- sessions ---------------------------------------------------------------------------------------------------------

/** Omitted fields keep their value; null clears them. */
function withAnnounced(
  subagents: Subagent[],
  id: string,
  parent_id: string | null,
  { name, description, work }: Announcement,
): Subagent[] {
  const before = subagents.find((subagent) => subagent.id === id);
  // Only the session that created a sub-agent may report on it.
  if (before && (!before.has_session || before.parent_id !== parent_id)) return subagents;
  return withChanged(subagents, {
    ...(before ?? newSubagent(id, parent_id)),
    has_session: true,
    ...(name !== undefined && { name: brief(name) }),
    ...(description !== undefined && { description: brief(description) }),
    ...briefWork(work),
  });
}

// --- marks within the agent's session ---------------------------------------------------------------------------------

function withMarked(subagents: Subagent[], id: string, name: string | null): Subagent[] {
  if (subagents.some((subagent) => subagent.id === id)) return subagents;
  return withChanged(subagents, { ...newSubagent(id, null), name: brief(name), status: 'running' });
}

function withLaunched(subagents: Subagent[], parent_id: string | null, launch: Launch): Subagent[] {
  const id = firstId([launch.id]);
  const before = subagents.find((subagent) => subagent.id === id);
  if (id === null || before?.has_session || (launch.name === null && !before)) return subagents;
  return withChanged(subagents, {
    ...(before ?? newSubagent(id, parent_id)),
    ...(launch.name !== null && { name: brief(launch.name) }),
    description: brief(launch.description) ?? before?.description ?? brief(launch.title),
    ...briefWork(launch.work),
  });
}

// --- the list ---------------------------------------------------------------------------------------------------------

function newSubagent(id: string, parent_id: string | null): Subagent {
  return { id, has_session: false, parent_id, name: null, description: null, ...unreportedWork };
}

/**
 * Keeps at most `subagents_max`. A new one replaces the first idle one, or the first of all if none is idle. The first are
 * also dropped if the others do not fit into the stored state.
 */
function withChanged(subagents: Subagent[], one: Subagent): Subagent[] {
  const at = subagents.findIndex(({ id }) => id === one.id);
  if (at >= 0) return isSame(subagents[at]!, one) ? subagents : lastFitting(subagents.with(at, one));
  if (subagents.length < limits.subagents_max) return lastFitting([...subagents, one]);
  const idle = subagents.findIndex(({ status }) => status === 'idle');
  return lastFitting([...subagents.toSpliced(Math.max(0, idle), 1), one]);
}

function isSame(a: Subagent, b: Subagent): boolean {
  return (Object.keys(a) as (keyof Subagent)[]).every((key) => a[key] === b[key]);
}

/** The first text that is an id, and short enough to be kept. */
function firstId(texts: readonly (string | null)[]): string | null {
  const is_id = (text: string | null) =>
    text !== null && text !== '' && text.length <= limits.subagent_id_chars_max;
  return texts.find(is_id) ?? null;
}

function brief(text: string | null): string | null {
  return text?.slice(0, limits.subagent_text_chars_max) ?? null;
}

function briefWork(work: SubagentWork | null | undefined): Partial<SubagentWork> {
  return work ? { status: work.status, stop_reason: brief(work.stop_reason) } : {};
}
