/** An agent's log over the wire as numbered events; the contract's client keeps the position across broken connections. */
import { limits } from '../base/limits.ts';
import type { StreamState } from '../contract/client.ts';
import type { EventRecord } from '../domain/event.ts';
import type { Api } from './api.ts';
import type { Io } from './context.ts';
import { say } from './output.ts';

export interface FollowOptions {
  /** Start after this event; or this many events before the newest; or at the start of the log. */
  from: { after: number } | { tail: number } | 'start';
  signal: AbortSignal;
  /** Give up when the plane does not answer several times in a row, instead of trying on and on. */
  finite?: boolean;
}

/** `seq` is the position after it; frames of the connection itself repeat one. Null for heartbeats. */
export interface Followed {
  seq: number;
  event: EventRecord | null;
}

export async function* follow(
  io: Io,
  api: Api,
  agent_id: string,
  { from, signal, finite }: FollowOptions,
): AsyncGenerator<Followed> {
  const frames = api.client.follow(
    'followAgent',
    { params: { agent_id }, query: from === 'start' ? {} : from, signal },
    {
      ...(finite && { fruitless_max: limits.cli_fruitless_max }),
      onState: onLink((lost) => tellLink(io, api, lost)),
    },
  );
  for await (const { id, data } of frames) {
    const event = data.type === 'heartbeat' ? null : (data as unknown as EventRecord);
    if (id !== null) yield { seq: Number(id), event };
  }
}

/** Hears of a connection only that it was lost, and that it is back. */
export function onLink(change: (lost: boolean) => void): (state: StreamState) => void {
  let lost = false;
  return (state) => {
    if (state === 'connecting' || (state === 'reconnecting') === lost) return;
    lost = !lost;
    change(lost);
  };
}

export function tellLink(io: Io, { url }: Pick<Api, 'url'>, lost: boolean): void {
  say(io, lost ? `${url} does not answer; trying again` : `${url} is back`);
}
