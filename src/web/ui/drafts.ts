/**
 * Unsent text, stored in the browser until it is sent, through reloads, sign-outs and conflicts. Drafts are per user, so that
 * the next user of the browser does not see them.
 */
import { useCallback, useState } from 'react';
import { useSession } from '../api/session.ts';
import { readStored, store } from '../storage.ts';

const PREFIX = 'svc.draft.';

/** A draft and its setter; an empty text removes it. `key` names its purpose, such as `prompt.agt_1`. */
export function useDraft(key: string): [string, (text: string) => void] {
  const user = useSession()?.user.id ?? '';
  const place = `${PREFIX}${user}.${key}`;
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

/** The fields of a form as a draft; null removes it. */
export function useFields<T extends Record<string, string | readonly string[]>>(
  key: string,
  empty: T,
): [T, (next: Partial<T> | null) => void] {
  const [text, setText] = useDraft(key);
  let stored: Partial<T> = {};
  try {
    if (text !== '') stored = JSON.parse(text) as Partial<T>;
  } catch {
    // Malformed: ignore it.
  }
  const fields = { ...empty, ...stored };
  return [fields, (next) => setText(next === null ? '' : JSON.stringify({ ...fields, ...next }))];
}
