/** The cards of a conversation that wait for an answer, also those whose rows are not on the page. */
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import type { Item } from '../../../../acp/transcript/items.ts';
import { focusCard, OPEN_CARD } from '../../../waiting/focus.ts';
import { isListedOnlyOpen, type WaitingItem } from '../../../waiting/queue.ts';
import { useWaiting } from '../../../waiting/use-waiting.ts';
import type { Window } from './window.ts';

export interface OpenCards {
  /** In the order of the page. */
  ids: readonly string[];
  /** How many of them are out of view. */
  unseen: number;
  /** Scrolls to a card and focuses it. */
  visit: (id: string | undefined) => void;
}

interface Place {
  id: string;
  /** The index of its item; null: after the last item. */
  at: number | null;
}

export function useOpenCards(agent_id: string, items: readonly Item[], frame: Window): OpenCards {
  const { open } = useWaiting();
  const own = useMemo(() => open.filter((item) => item.agent_id === agent_id), [open, agent_id]);
  // Most agents wait for nothing, and then no item needs to be searched.
  const places = own.length === 0 ? NOTHING : listPlaces(own, items);
  const key = places.map(({ id }) => id).join('\n');
  const ids = useMemo(() => (key === '' ? [] : key.split('\n')), [key]);
  const latest = useRef({ places, frame });
  latest.current = { places, frame };
  const wanted = useRef<string | null>(null);

  const focusWanted = useCallback(() => {
    const card = find(latest.current.frame, wanted.current);
    if (!card) return false;
    wanted.current = null;
    focusCard(card);
    return true;
  }, []);
  // Its row may not be on the page yet.
  useEffect(() => {
    if (wanted.current !== null) focusWanted();
  });
  const visit = useCallback(
    (id: string | undefined) => {
      const place = latest.current.places.find((one) => one.id === id);
      if (!place) return;
      wanted.current = place.id;
      if (focusWanted()) return;
      if (place.at === null) latest.current.frame.followNewest();
      else latest.current.frame.show(place.at);
    },
    [focusWanted],
  );
  const unseen = useUnseen(ids, frame);
  return useMemo(() => ({ ids, unseen, visit }), [ids, unseen, visit]);
}

const NOTHING: readonly Place[] = [];

/** Requests that are no longer in the transcript have no card here. */
function listPlaces(own: readonly WaitingItem[], items: readonly Item[]): Place[] {
  const places = own.map((item): Place => {
    if (isListedOnlyOpen(item)) return { id: item.id, at: null };
    return { id: item.id, at: items.findIndex((one) => requestId(one) === item.id) };
  });
  const end = items.length;
  return places.filter(({ at }) => at !== -1).sort((a, b) => (a.at ?? end) - (b.at ?? end));
}

function requestId(item: Item): string | null {
  if (item.kind === 'permission') return item.review_id;
  return item.kind === 'elicitation' ? item.elicitation_id : null;
}

function find({ scroller }: Window, id: string | null): HTMLElement | undefined {
  const cards = scroller.current?.querySelectorAll<HTMLElement>(OPEN_CARD) ?? [];
  return [...cards].find((card) => card.dataset.waiting === id);
}

/** How many open cards cannot be seen. */
function useUnseen(ids: readonly string[], frame: Window): number {
  const [seen, setSeen] = useState<ReadonlySet<string> | null>(null);
  const { scroller, start, end } = frame;
  // biome-ignore lint/correctness/useExhaustiveDependencies: other rows are on the page if the window moves
  useEffect(() => {
    const root = scroller.current;
    if (!root || ids.length === 0) return;
    const visible = new Set<string>();
    const observer = new IntersectionObserver(
      (entries) => {
        for (const { target, isIntersecting } of entries) {
          const id = (target as HTMLElement).dataset.waiting!;
          if (isIntersecting) visible.add(id);
          else visible.delete(id);
        }
        setSeen(new Set(visible));
      },
      { root },
    );
    const observed = new Set<Element>();
    const observe = () => {
      for (const card of root.querySelectorAll(OPEN_CARD)) {
        if (observed.has(card)) continue;
        observed.add(card);
        observer.observe(card);
      }
    };
    observe();
    // Cards are loaded when they are first needed.
    const changes = new MutationObserver(observe);
    changes.observe(root, { childList: true, subtree: true });
    if (observed.size === 0) setSeen(new Set());
    return () => {
      observer.disconnect();
      changes.disconnect();
    };
  }, [ids, scroller, start, end]);
  return seen === null ? 0 : ids.filter((id) => !seen.has(id)).length;
}
