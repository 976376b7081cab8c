/** The event streams of this page's session. They keep the query cache current, and end an invalid session. */
import { useSyncExternalStore } from 'react';
import { applyFrame, readAgain } from '../api/fleet.ts';
import { queries } from '../api/queries.ts';
import { renewing } from '../api/renewing.ts';
import { session } from '../api/session.ts';
import { idleBadge, toView } from '../streams/badge.ts';
import { openStreams, type Streams, type StreamsState } from '../streams/connect.ts';

let opened: Streams | null = null;

/** Opened on first use, and kept for the lifetime of the page. */
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
  mine.onReload(() => readAgain(queries));
  mine.onSignedOut(() => {
    const refused = token;
    // Another tab may be about to store a new token.
    if (refused !== null) void renewing(async () => session.end(refused));
  });
  return mine;
}

const subscribe = (listener: () => void) => streams().state.subscribe(listener);
const getState = () => streams().state.getSnapshot();
/** Of the prerendered page. */
const idle: StreamsState = { ...toView(idleBadge(0), 0), fleet: 'connected' };

export function useStreams(): StreamsState {
  return useSyncExternalStore(subscribe, getState, () => idle);
}
