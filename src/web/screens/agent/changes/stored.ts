/** A user's unsent comments and viewed marks on an agent's changes, stored in the browser. */
import { useCallback, useMemo, useSyncExternalStore } from 'react';
import { newKey } from '../../../api/client.ts';
import { useSession } from '../../../api/session.ts';
import { type Comment, type Comments, parseComments } from './comments.ts';
import { isViewed, parseViewed, type Viewed, withViewed } from './viewed.ts';

const listeners = new Set<() => void>();

function useStored(kind: string, agent_id: string): [string | null, (text: string | null) => void] {
  const user = useSession()?.user.id ?? '';
  const place = `svc.${kind}.${user}.${agent_id}`;
  const text = useSyncExternalStore(subscribe, () => localStorage.getItem(place));
  const set = useCallback(
    (next: string | null) => {
      if (next === null) localStorage.removeItem(place);
      else localStorage.setItem(place, next);
      for (const listener of listeners) listener();
    },
    [place],
  );
  return [text, set];
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  window.addEventListener('storage', listener);
  return () => {
    listeners.delete(listener);
    window.removeEventListener('storage', listener);
  };
}

export function useComments(agent_id: string): [Comments | null, (list: readonly Comment[]) => void] {
  const [text, set] = useStored('comments', agent_id);
  const comments = useMemo(() => parseComments(text), [text]);
  const change = useCallback(
    (list: readonly Comment[]) =>
      set(list.length === 0 ? null : JSON.stringify({ list, key: newKey() } satisfies Comments)),
    [set],
  );
  return [comments, change];
}

/** Viewed marks are valid for one head commit, and until the file changes. */
export function useViewed(
  agent_id: string,
  head: string | null,
): { is: (file: Viewed) => boolean; set: (file: Viewed, viewed: boolean) => void } {
  const [text, setText] = useStored('viewed', agent_id);
  const marks = parseViewed(text, head);
  return {
    is: (file) => isViewed(marks, file),
    set: (file, viewed) => setText(JSON.stringify(withViewed(marks, file, viewed))),
  };
}
