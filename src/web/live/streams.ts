/** The streams of the session that is open in this page, and what follows from them: lists that stay current, an end. */
import { useSyncExternalStore } from 'react';
import { applyFrame } from '../api/fleet.ts';
import { queries } from '../api/queries.ts';
import { renewing } from '../api/renewing.ts';
import { session } from '../api/session.ts';
import { openStreams, type Streams, type StreamsState } from '../streams/connect.ts';

let opened: Streams | null = null;

/** Opened when a signed-in page first asks, and then for as long as the page is there. */
export function streams(): Streams {
  if (opened) return opened;
  const mine = openStreams({ token: session.get()?.token ?? null });
  opened = mine;
  let token = session.get()?.token ?? null;
  session.subscribe(() => {
    const now = session.get()?.token ?? null;
    if (now === token) return;
    token = now;
    mine.setToken(now);
  });
  mine.onFleet((frames) => {
    for (const frame of frames) applyFrame(queries, frame);
  });
  mine.onReload(() => void queries.invalidateQueries());
  mine.onSignedOut(() => {
    const refused = token;
    // Another tab may be about to say which token is good now.
    if (refused !== null) void renewing(async () => session.end(refused));
  });
  return mine;
}

export function useStreams(): StreamsState {
  const { state } = streams();
  return useSyncExternalStore(state.subscribe, state.getSnapshot);
}
