/** Follows an agent's log as numbered events. The client keeps its position if the connection breaks. */

import type { Api } from '../../../cli/api.ts';
import type { Io } from '../../../cli/context.ts';
import { printStatus } from '../../../cli/output.ts';
import type { StreamState } from '../../../client/client.ts';
import type { EventRecord } from '../../../core/event.ts';
import { limits } from '../limits.ts';

export interface FollowOptions {
  /** Where to start: after an event, or at the beginning of the log. */
  from: { after: number } | 'start';
  signal: AbortSignal;
  /** Stops after several consecutive attempts without an answer, instead of retrying without limit. */
  finite?: boolean;
}

/** `seq`: the position after the event; frames of one connection repeat it. `event`: null for heartbeats. */
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
      onState: onConnectionChange((lost) => reportConnection(io, api, lost)),
    },
  );
  for await (const { id, data } of frames) {
    const event = data.type === 'heartbeat' ? null : (data as unknown as EventRecord);
    if (id !== null) yield { seq: Number(id), event };
  }
}

/** Reduces the states of a connection to two changes: lost, and restored. */
export function onConnectionChange(change: (lost: boolean) => void): (state: StreamState) => void {
  let lost = false;
  return (state) => {
    if (state === 'connecting' || (state === 'reconnecting') === lost) return;
    lost = !lost;
    change(lost);
  };
}

export function reportConnection(io: Io, { url }: Pick<Api, 'url'>, lost: boolean): void {
  printStatus(io, lost ? `${url} does not answer; trying again` : `${url} is back`);
}
