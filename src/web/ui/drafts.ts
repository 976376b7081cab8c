/**
 * Unsent text, stored in the browser until it is sent, through reloads, sign-outs and conflicts. Drafts are per user, so that
 * the next user of the browser does not see them.
 */
import { type RefObject, useCallback, useRef, useState, useSyncExternalStore } from 'react';
import { type LastAttempt, lastAttempt } from '../api/act-key.ts';
import { type Session, session, useSession } from '../api/session.ts';
import { readStored, store } from '../storage.ts';

const PREFIX = 'svc.draft.';

/** A function gets the stored text, which may be newer than the one that the page shows. */
export type SetDraft = (next: string | ((now: string) => string)) => void;

/** The drafts that this page has read, by their place in storage. */
const drafts = new Map<string, string>();
const listeners = new Set<() => void>();

/** Sets the text of a draft in this page and in storage; an empty text removes it. */
export function setDraft(place: string, next: Parameters<SetDraft>[0]): void {
  const now = readStored(place) ?? '';
  const text = typeof next === 'function' ? next(now) : next;
  store(place, text || null);
  // Whatever is sent after a change is a new request, even if it has the same text as the last one.
  if (text !== now || text === '') store(attemptPlace(place), null);
  drafts.set(place, text);
  for (const listener of listeners) listener();
}

export function getDraft(place: string): string {
  const text = drafts.get(place) ?? readStored(place) ?? '';
  drafts.set(place, text);
  return text;
}

/**
 * Follows a change by another tab. The text may have been sent there, and must not be sent twice. If that tab removed an older text
 * than the one that this page shows, the newer one has not been sent, and is stored again.
 */
function follow({ key, oldValue }: StorageEvent): void {
  for (const [place, text] of drafts) {
    if (key !== null && key !== place) continue;
    // Not the event's value: the draft may have changed again since.
    const stored = readStored(place);
    if (stored === null && text !== '' && text !== oldValue) store(place, text);
    else drafts.set(place, stored ?? '');
  }
  for (const listener of listeners) listener();
}

globalThis.addEventListener?.('storage', follow);

export function subscribeDrafts(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function attemptPlace(place: string): string {
  return `${place}.attempt`;
}

/**
 * The last attempt to send a draft. It is stored until the draft changes, so that a retry after a reload has no second effect.
 * Without a draft, nothing would show later that the attempt has failed, so the page keeps it in `held`.
 */
export function attemptOf(place: string, held: RefObject<string | null>): LastAttempt {
  const kept = attemptPlace(place);
  return lastAttempt(
    () => readStored(kept) ?? held.current,
    (text) => {
      const has_draft = readStored(place) !== null;
      store(kept, has_draft ? text : null);
      held.current = has_draft ? null : text;
    },
  );
}

/**
 * A draft, its setter, and the last attempt to send it; an empty text removes the draft. `key` names its purpose, such as
 * `prompt.agt_1`.
 */
export function useDraft(key: string): [string, SetDraft, LastAttempt] {
  const place = placeOf(useSession(), key);
  const read = () => getDraft(place);
  // The build renders first screens, which needs the third argument.
  const text = useSyncExternalStore(subscribeDrafts, read, read);
  const set: SetDraft = useCallback((next) => setDraft(place, next), [place]);
  return [text, set, attemptOf(place, useRef(null))];
}

/**
 * Like `useDraft`, but other tabs do not change it: for a form that also has values which are not stored, or that people fill in
 * differently in several tabs.
 */
export function useTabDraft(key: string): [string, (text: string) => void] {
  const place = placeOf(useSession(), key);
  const [held, setHeld] = useState({ place, text: readStored(place) ?? '' });
  const text = held.place === place ? held.text : (readStored(place) ?? '');
  const set = useCallback(
    (next: string) => {
      store(place, next || null);
      setHeld({ place, text: next });
    },
    [place],
  );
  return [text, set];
}

/** Writes the draft of a form that is not on the screen. */
export function storeDraft(key: string, text: string): void {
  setDraft(placeOf(session.get(), key), text);
}

/** Where a draft is stored. */
export function placeOf(current: Session | null, key: string): string {
  return `${PREFIX}${current?.user.id ?? ''}.${key}`;
}

/** The key of a second draft. If that one is not empty, the draft with this key is sent as JSON. */
export function jsonDraft(key: string): string {
  return `${key}.json`;
}

/** Removes a draft that was sent, but keeps what was typed meanwhile: `setDraft(unlessSent(text))`. */
export function unlessSent(sent: string): (now: string) => string {
  return (now) => (now === sent ? '' : now);
}

/** Null removes the fields. A function gets the stored ones, which may be newer than those that the page shows. */
type SetFields<T> = (next: Partial<T> | null | ((now: T) => Partial<T> | null)) => void;

/** The fields of a form as a draft. */
export function useFields<T extends Record<string, string | readonly string[]>>(
  key: string,
  empty: T,
): [T, SetFields<T>, LastAttempt] {
  const [text, setText, last] = useDraft(key);
  const set: SetFields<T> = (next) =>
    setText((stored) => {
      const now = parseFields(stored, empty);
      const changes = typeof next === 'function' ? next(now) : next;
      return changes === null ? '' : JSON.stringify({ ...now, ...changes });
    });
  return [parseFields(text, empty), set, last];
}

function parseFields<T>(text: string, empty: T): T {
  try {
    return text === '' ? empty : { ...empty, ...(JSON.parse(text) as Partial<T>) };
  } catch {
    // Malformed: ignore it.
    return empty;
  }
}
