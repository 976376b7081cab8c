/** An agent's log over the wire as numbered events; the contract's client keeps the position across broken connections. */
import { limits } from '../base/limits.ts';
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
  let lost = false;
  const frames = api.client.follow(
    'followAgent',
    { params: { agent_id }, query: from === 'start' ? {} : from, signal },
    {
      ...(finite && { fruitless_max: limits.cli_fruitless_max }),
      onState: (state) => {
        if (state === 'reconnecting' && !lost) say(io, `${api.url} does not answer; trying again`);
        else if (state === 'connected' && lost) say(io, `${api.url} is back`);
        lost = state === 'reconnecting';
      },
    },
  );
  for await (const { id, data } of frames) {
    const event = data.type === 'heartbeat' ? null : (data as unknown as EventRecord);
    if (id !== null) yield { seq: Number(id), event };
  }
}
