/** A user's unsent comments and viewed marks on an agent's changes, stored in the browser. */
import { useCallback, useMemo, useSyncExternalStore } from 'react';
import { newKey } from '../../../api/client.ts';
import { useSession } from '../../../api/session.ts';
import { readStored, store } from '../../../storage.ts';
import { placeOf, subscribeDrafts } from '../../../ui/drafts.ts';
import { type Comment, type CommentDraft, type Comments, parseComments, parseDraftKeys } from './comments.ts';
import { isViewed, parseViewed, type Viewed, withViewed } from './viewed.ts';

const listeners = new Set<() => void>();

type Update = (text: string | null) => string | null;

function useStored(kind: string, agent_id: string): [string | null, (update: Update) => void] {
  const user = useSession()?.user.id ?? '';
  const place = `svc.${kind}.${user}.${agent_id}`;
  const text = useSyncExternalStore(subscribe, () => readStored(place));
  const change = useCallback(
    (update: Update) => {
      store(place, update(readStored(place)));
      for (const listener of listeners) listener();
    },
    [place],
  );
  return [text, change];
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  window.addEventListener('storage', listener);
  return () => {
    listeners.delete(listener);
    window.removeEventListener('storage', listener);
  };
}

export type ChangeComments = (change: (list: readonly Comment[]) => readonly Comment[]) => void;

export function useComments(agent_id: string): [Comments | null, ChangeComments] {
  const [text, setText] = useStored('comments', agent_id);
  const comments = useMemo(() => parseComments(text), [text]);
  const changeComments: ChangeComments = useCallback(
    (change) =>
      setText((stored) => {
        const list = change(parseComments(stored)?.list ?? []);
        return list.length === 0 ? null : JSON.stringify({ list, key: newKey() } satisfies Comments);
      }),
    [setText],
  );
  return [comments, changeComments];
}

/** Where the user has begun comments that are not added yet: on an agent's changes, or only on those of a file. */
export function useCommentDrafts(agent_id: string, path?: string): readonly CommentDraft[] {
  const prefix = placeOf(useSession(), `comment.${agent_id}.`);
  const start = path === undefined ? prefix : `${prefix}${path}.`;
  // As text, because a snapshot must be the same value while nothing has changed.
  const keys = useSyncExternalStore(subscribeDrafts, () =>
    JSON.stringify(Object.keys(localStorage).filter((key) => key.startsWith(start))),
  );
  return useMemo(() => {
    const drafts = parseDraftKeys(JSON.parse(keys) as string[], prefix);
    return path === undefined ? drafts : drafts.filter((draft) => draft.path === path);
  }, [keys, prefix, path]);
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
    set: (file, viewed) =>
      setText((stored) => JSON.stringify(withViewed(parseViewed(stored, head), file, viewed))),
  };
}
