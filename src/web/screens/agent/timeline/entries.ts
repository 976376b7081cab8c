/** The entries of an agent's timeline, in lanes (pure). */
import type { Permission, StatusChange, ToolStatus } from '../../../../acp/transcript/items.ts';
import { toolSpans, waitSpans } from '../../../../acp/transcript/spans.ts';
import type { View } from '../../../../acp/transcript/transcript.ts';
import { isFinal } from '../../../../features/agents/rules.ts';
import { outcomeText, viewOfItem } from '../../../reviews/review-view.ts';
import { noticeTone, stopText } from '../../../transcript/status-text.ts';

export const lanes = ['sessions', 'turns', 'tools', 'waits', 'warnings'] as const;
export type Lane = (typeof lanes)[number];

/** How it ended, or how it is going: a status, as `StatusIcon` knows it, and its words. */
export interface Result {
  readonly status: string;
  readonly text: string;
}

export interface Entry {
  readonly key: string;
  readonly lane: Lane;
  readonly label: string;
  /** The number of the turn that it belongs to. */
  readonly turn: number | null;
  /** The number of its first event. */
  readonly seq: number;
  /** Unix seconds. */
  readonly from: number;
  /** Null: it has not ended. */
  readonly to: number | null;
  readonly result: Result | null;
}

/** An entry as a bar, which ends now if the entry has not ended. */
export interface TimedEntry extends Entry {
  readonly to: number;
  readonly is_open: boolean;
}

/** The most entries per lane; the newest are kept. */
const LANE_MAX = 400;

/** In the order in which they began. `is_over`: the agent has stopped, so whatever is open ended with its last event. */
export function buildEntries(view: View, is_over: boolean): Entry[] {
  const all = [...sessions(view), ...turns(view), ...tools(view), ...waits(view), ...warnings(view)];
  const end_ts = is_over ? lastMoment(view) : null;
  return lanes
    .flatMap((lane) => all.filter((entry) => entry.lane === lane).slice(-LANE_MAX))
    .map((entry) => ({ ...entry, to: entry.to ?? (end_ts === null ? null : Math.max(entry.from, end_ts)) }))
    .sort((a, b) => a.from - b.from || a.seq - b.seq);
}

/** `now`: Unix seconds. */
export function entriesAt(entries: readonly Entry[], now: number): TimedEntry[] {
  return entries.map((entry) => ({
    ...entry,
    to: Math.max(entry.from, entry.to ?? now),
    is_open: entry.to === null,
  }));
}

/** The times of the agent's messages and other items. */
export function listMoments({ items }: View): number[] {
  return items.flatMap((item) =>
    item.kind === 'agent_message' || item.kind === 'thought' ? [item.ts, item.ended_ts ?? item.ts] : item.ts,
  );
}

function lastMoment(view: View): number {
  return listMoments(view).reduce((last, ts) => Math.max(last, ts), view.sessions.at(-1)?.started_ts ?? 0);
}

function sessions({ sessions: all, items }: View): Entry[] {
  const ends = new Map<string, StatusChange>();
  for (const item of items) {
    if (item.kind === 'status' && item.session_id !== null && isFinal(item.status))
      ends.set(item.session_id, item);
  }
  return all.map(({ session_id, first_seq, started_ts }, at) => {
    const end = ends.get(session_id);
    const next = all[at + 1];
    return {
      key: `session ${session_id}`,
      lane: 'sessions',
      label: `Session ${at + 1}`,
      turn: null,
      seq: first_seq,
      from: started_ts,
      to: end?.ts ?? next?.started_ts ?? null,
      result: end ? sessionResult(end) : next ? null : { status: 'running', text: 'running' },
    };
  });
}

function sessionResult({ status, exit_code }: StatusChange): Result {
  return { status, text: exit_code === null ? status : `${status}, exit ${exit_code}` };
}

function turns({ turns: all }: View): Entry[] {
  return all.map(({ n, prompt_seq, started_ts, ended_ts, stop_reason }) => ({
    key: `turn ${n}`,
    lane: 'turns',
    label: `Turn ${n}`,
    turn: n,
    seq: prompt_seq,
    from: started_ts,
    to: ended_ts,
    result: ended_ts === null ? { status: 'running', text: 'working' } : turnResult(stop_reason),
  }));
}

function turnResult(reason: string | null): Result {
  if (reason === 'end_turn') return { status: 'completed', text: 'completed' };
  if (reason === 'cancelled') return { status: 'cancelled', text: 'cancelled' };
  const { text, tone } = stopText(reason);
  return { status: tone === 'failure' ? 'failed' : 'skipped', text };
}

const tool_results: Readonly<Record<ToolStatus, Result>> = {
  pending: { status: 'pending', text: 'pending' },
  in_progress: { status: 'running', text: 'running' },
  completed: { status: 'completed', text: 'completed' },
  failed: { status: 'failed', text: 'failed' },
  cancelled: { status: 'cancelled', text: 'cancelled' },
  unfinished: { status: 'skipped', text: 'end not reported' },
};

function tools({ items }: View): Entry[] {
  const statuses = new Map(items.flatMap((item) => (item.kind === 'tool' ? [[item.key, item.status]] : [])));
  return toolSpans(items).map(({ key, seq, label, turn, started_ts, ended_ts }) => ({
    key: `tool ${key}`,
    lane: 'tools',
    label,
    turn,
    seq,
    from: started_ts,
    to: ended_ts,
    result: tool_results[statuses.get(key)!],
  }));
}

function waits({ items }: View): Entry[] {
  const requests = new Map(
    items.flatMap((item): [string, Permission][] => (item.kind === 'permission' ? [[item.key, item]] : [])),
  );
  return waitSpans(items).map(({ key, seq, label, turn, started_ts, ended_ts }) => ({
    key: `wait ${key}`,
    lane: 'waits',
    label: `Permission: ${label}`,
    turn,
    seq,
    from: started_ts,
    to: ended_ts,
    result: waitResult(requests.get(key)!),
  }));
}

function waitResult(request: Permission): Result {
  if (request.outcome === null) return { status: 'needs_you', text: 'Waiting for an answer' };
  const text = outcomeText(viewOfItem(request, '', undefined), null);
  return { status: request.outcome.type === 'selected' ? 'completed' : 'cancelled', text };
}

function warnings({ items }: View): Entry[] {
  return items.flatMap((item): Entry[] =>
    item.kind === 'notice' && noticeTone(item.code) !== 'plain'
      ? [
          {
            key: `warning ${item.key}`,
            lane: 'warnings',
            label: item.text || item.code,
            turn: item.turn,
            seq: item.seq,
            from: item.ts,
            to: item.ts,
            result: noticeTone(item.code) === 'failure' ? { status: 'failed', text: 'failed' } : null,
          },
        ]
      : [],
  );
}
