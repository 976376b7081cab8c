/** The entries of an agent's timeline, in lanes (pure). */
import type { StatusChange } from '../../../../acp/transcript/items.ts';
import { toolSpans, waitSpans } from '../../../../acp/transcript/spans.ts';
import type { View } from '../../../../acp/transcript/transcript.ts';
import { isFinal } from '../../../../features/agents/rules.ts';
import { noticeTone, stopText } from '../../../transcript/status-text.ts';

export const lanes = ['sessions', 'turns', 'tools', 'waits', 'warnings'] as const;
export type Lane = (typeof lanes)[number];

export interface Entry {
  readonly key: string;
  readonly lane: Lane;
  readonly label: string;
  /** The number of its first event. */
  readonly seq: number;
  /** Unix seconds. */
  readonly from: number;
  readonly to: number;
  /** It has not ended. */
  readonly open: boolean;
  readonly failed: boolean;
}

/** The most entries per lane; the newest are kept. */
const LANE_MAX = 400;

export function buildEntries(view: View, now: number): Entry[] {
  const all = [
    ...sessions(view, now),
    ...turns(view, now),
    ...tools(view, now),
    ...waits(view, now),
    ...warnings(view),
  ];
  const limited = lanes.flatMap((lane) => all.filter((entry) => entry.lane === lane).slice(-LANE_MAX));
  return limited.sort((a, b) => a.from - b.from || a.seq - b.seq);
}

function sessions({ sessions: all, items }: View, now: number): Entry[] {
  const ends = new Map<string, StatusChange>();
  for (const item of items) {
    if (item.kind === 'status' && item.session_id !== null && isFinal(item.status))
      ends.set(item.session_id, item);
  }
  return all.map(({ session_id, first_seq, started_ts }, at) => {
    const end = ends.get(session_id);
    const to = end?.ts ?? all[at + 1]?.started_ts ?? null;
    const how = end ? ` · ${end.status}${end.exit_code === null ? '' : `, exit ${end.exit_code}`}` : '';
    return {
      ...placeBar(`session ${session_id}`, first_seq, started_ts, to, now),
      lane: 'sessions',
      label: `Session ${at + 1}${how}`,
      failed: end?.status === 'failed',
    };
  });
}

function turns({ turns: all }: View, now: number): Entry[] {
  return all.map(({ n, prompt_seq, started_ts, ended_ts, stop_reason }) => {
    const stop = ended_ts === null ? null : stopText(stop_reason);
    return {
      ...placeBar(`turn ${n}`, prompt_seq, started_ts, ended_ts, now),
      lane: 'turns',
      label: `Turn ${n}${stop ? ` · ${stop.text}` : ''}`,
      failed: stop?.tone === 'failure',
    };
  });
}

function tools({ items }: View, now: number): Entry[] {
  const failed = new Set(
    items.flatMap((item) => (item.kind === 'tool' && item.status === 'failed' ? item.key : [])),
  );
  return toolSpans(items).map(({ key, seq, label, started_ts, ended_ts }) => ({
    ...placeBar(`tool ${key}`, seq, started_ts, ended_ts, now),
    lane: 'tools',
    label,
    failed: failed.has(key),
  }));
}

function waits({ items }: View, now: number): Entry[] {
  return waitSpans(items).map(({ key, seq, label, started_ts, ended_ts }) => ({
    ...placeBar(`wait ${key}`, seq, started_ts, ended_ts, now),
    lane: 'waits',
    label: `Permission: ${label}`,
    failed: false,
  }));
}

function warnings({ items }: View): Entry[] {
  return items.flatMap((item) =>
    item.kind === 'notice' && noticeTone(item.code) !== 'plain'
      ? {
          ...placeBar(`warning ${item.key}`, item.seq, item.ts, item.ts, item.ts),
          lane: 'warnings' as const,
          label: item.text || item.code,
          failed: noticeTone(item.code) === 'failure',
        }
      : [],
  );
}

function placeBar(key: string, seq: number, from: number, to: number | null, now: number) {
  return { key, seq, from, to: Math.max(from, to ?? now), open: to === null };
}
