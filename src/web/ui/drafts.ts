/**
 * What somebody was writing, kept in this browser until it is sent: over reloads, sign-outs and conflicts. By person, so
 * that the next one at this machine does not find it.
 */
import { useCallback, useState } from 'react';
import { useSession } from '../api/session.ts';

const PREFIX = 'svc.draft.';

/** A text with its setter; an empty text is forgotten. `key` names what it is for, such as `prompt.agt_1`. */
export function useDraft(key: string): [string, (text: string) => void] {
  const user = useSession()?.user.id ?? '';
  const place = `${PREFIX}${user}.${key}`;
  const [held, setHeld] = useState({ place, text: localStorage.getItem(place) ?? '' });
  const text = held.place === place ? held.text : (localStorage.getItem(place) ?? '');
  const set = useCallback(
    (next: string) => {
      if (next === '') localStorage.removeItem(place);
      else {
        try {
          localStorage.setItem(place, next);
        } catch {
          // The storage is full: what is written stays on the page.
        }
      }
      setHeld({ place, text: next });
    },
    [place],
  );
  return [text, set];
}

/** Fields of a form that outlive the page; null forgets them. */
export function useFields<T extends Record<string, string | readonly string[]>>(
  key: string,
  empty: T,
): [T, (next: Partial<T> | null) => void] {
  const [text, setText] = useDraft(key);
  let kept: Partial<T> = {};
  try {
    if (text !== '') kept = JSON.parse(text) as Partial<T>;
  } catch {
    // Not ours: as if nothing were written.
  }
  const fields = { ...empty, ...kept };
  return [fields, (next) => setText(next === null ? '' : JSON.stringify({ ...fields, ...next }))];
}
