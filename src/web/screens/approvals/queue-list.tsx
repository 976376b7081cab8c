/** The open requests: in a column beside their cards, to jump to one, or on phones, where each opens its own page. */
import { Link } from '@tanstack/react-router';
import { ChevronRight, TriangleAlert } from 'lucide-react';
import type { RefObject } from 'react';
import type { AgentRecord } from '../../api/queries.ts';
import { Contained } from '../../ui/contained.tsx';
import { guardMovedRows } from '../../ui/moved-rows.ts';
import { ShortAgo } from '../../ui/time.tsx';
import { Truncated } from '../../ui/truncated.tsx';
import { focusCard } from '../../waiting/focus.ts';
import { keyOf, linkNames, type WaitingItem } from '../../waiting/queue.ts';
import { waitingText } from '../../waiting/text.ts';
import { selectName, shortKindName, sourceName } from './shown.ts';

export function QueueList({
  items,
  agents,
  cards,
  selection,
}: {
  items: readonly WaitingItem[];
  agents: readonly AgentRecord[];
  /** Contains the cards. */
  cards: RefObject<HTMLElement | null>;
  /** The reviews that are answered together; null if there is only one. */
  selection: { selected: ReadonlySet<string>; toggle: (id: string) => void } | null;
}) {
  const show = ({ id }: WaitingItem) => {
    const card = cards.current?.querySelector<HTMLElement>(`[data-waiting="${CSS.escape(id)}"]`);
    if (card) focusCard(card);
  };
  return (
    <nav
      aria-label="Queue"
      className="sticky top-0 hidden max-h-[calc(100dvh-6rem)] w-80 shrink-0 flex-col self-start overflow-y-auto border-line border-r min-[68.75rem]:flex"
    >
      <ul ref={guardMovedRows}>
        {items.map((item) => (
          <li
            key={keyOf(item)}
            data-row={keyOf(item)}
            className="flex items-center gap-2 border-line border-b px-3 hover:bg-surface"
          >
            {selection && (
              <input
                type="checkbox"
                aria-label={selectName(item, agents)}
                checked={selection.selected.has(item.id)}
                disabled={item.kind !== 'permission'}
                onChange={() => selection.toggle(item.id)}
                className="size-4 shrink-0 disabled:invisible"
              />
            )}
            <button
              type="button"
              onClick={() => show(item)}
              className="flex min-w-0 flex-1 flex-col py-1.5 text-left"
            >
              <Contained retryOn={item}>
                <RowText item={item} agents={agents} />
              </Contained>
            </button>
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** Each row opens its request on the whole screen. */
export function PhoneQueue({
  items,
  agents,
}: {
  items: readonly WaitingItem[];
  agents: readonly AgentRecord[];
}) {
  return (
    <ul aria-label="Waiting">
      {items.map((item) => (
        <li key={keyOf(item)} className="border-line border-b">
          <Link
            to="/approvals"
            search={(old) => ({ ...old, [linkNames[item.kind]]: item.id })}
            className="flex h-16 min-w-0 items-center gap-3 pr-2 pl-3 active:bg-surface"
          >
            <TriangleAlert aria-hidden className="size-4 shrink-0 text-needs" />
            <span className="flex min-w-0 flex-1 flex-col">
              <Contained retryOn={item}>
                <RowText item={item} agents={agents} />
              </Contained>
            </span>
            <ChevronRight aria-hidden className="size-4 shrink-0 text-muted" />
          </Link>
        </li>
      ))}
    </ul>
  );
}

function RowText({ item, agents }: { item: WaitingItem; agents: readonly AgentRecord[] }) {
  return (
    <>
      <span className="flex w-full items-baseline gap-2">
        <Truncated className="font-medium">{sourceName(item, agents)}</Truncated>
        <span className="shrink-0 text-muted text-sm">{shortKindName(item)}</span>
        <ShortAgo at={item.since} className="ml-auto text-muted text-sm" />
      </span>
      <Truncated className="w-full text-muted text-sm">{waitingText(item)}</Truncated>
    </>
  );
}
