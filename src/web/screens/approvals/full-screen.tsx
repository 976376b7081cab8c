/** One request on the whole screen of a phone, with its answers at the bottom. After an answer, the next one slides in. */
import type { UseQueryResult } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useMemo, useRef, useState } from 'react';
import { useSession } from '../../api/session.ts';
import { buttonClass } from '../../ui/button.tsx';
import { Screen } from '../../ui/screen.tsx';
import { Empty, Skeleton } from '../../ui/states.tsx';
import { Truncated } from '../../ui/truncated.tsx';
import { CardScreenContext } from '../../waiting/card-frame.tsx';
import { focusNextCard } from '../../waiting/focus.ts';
import { keyOf, linkNames, type WaitingItem } from '../../waiting/queue.ts';
import { AllRead } from './all-read.tsx';
import { ItemCard, type Names, useReviewViews } from './item-card.tsx';
import { filterItems, NO_LINK, nextItem, runOf, sourceName } from './shown.ts';

/** How long the answer is shown before the next request. */
const CONFIRMATION_MS = 600;
const NONE: ReadonlySet<string> = new Set();

export function FullScreen({
  items,
  linked,
  isLoading,
  names,
  reads,
}: {
  items: readonly WaitingItem[];
  /** The id of the item in the page's URL. */
  linked: string;
  /** It is not among `items` yet. */
  isLoading: boolean;
  names: Names;
  reads: readonly UseQueryResult[];
}) {
  const search = useSearch({ from: '/app/approvals' });
  const open = useMemo(() => filterItems(items, search, NONE), [items, search]);
  // A step may ask again after an earlier question was settled.
  const item = open.find(({ id }) => id === linked) ?? items.find(({ id }) => id === linked);
  const left = open.filter(({ id }) => id !== linked).length;
  return (
    <Screen
      title="Approvals"
      heading={item && sourceName(item, names.agents)}
      back={{ to: '/approvals', label: 'Approvals' }}
      primary={left > 0 && <span className="whitespace-nowrap text-muted">{left} left</span>}
      className="flex flex-col overflow-hidden"
    >
      <AllRead reads={reads}>
        {item ? (
          <Request key={keyOf(item)} item={item} next={nextItem(open, item)} left={left} names={names} />
        ) : isLoading ? (
          <Skeleton />
        ) : (
          <Empty title="The request in this link no longer waits for an answer.">
            <Link to="/approvals" search={{}} className={buttonClass()}>
              All approvals
            </Link>
          </Empty>
        )}
      </AllRead>
    </Screen>
  );
}

interface RequestProps {
  item: WaitingItem;
  next: WaitingItem | undefined;
  /** How many other requests are open. */
  left: number;
  names: Names;
}

function Request({ item, next, left, names }: RequestProps) {
  const me = useSession()?.user.username;
  const frame = useRef<HTMLDivElement>(null);
  const [answered_here, setAnsweredHere] = useState(false);
  const viewFor = useReviewViews();
  const screen = useMemo(() => ({ onSettled: setAnsweredHere }), []);
  // Somebody else may have been faster.
  const is_done = answered_here && [null, me].includes(answeredBy(item));
  const advances = is_done && next !== undefined;
  useAdvance(advances ? next : undefined);
  useEffect(() => {
    const card = frame.current?.querySelector<HTMLElement>('[data-waiting]');
    if (card) focusNextCard(card);
  }, []);
  return (
    <div ref={frame} className="flex min-h-0 flex-1 animate-next flex-col">
      <CardScreenContext value={screen}>
        <ItemCard item={item} names={names} viewFor={viewFor} named={false} />
      </CardScreenContext>
      <p role="status" className="sr-only">
        {!item.open && (left > 0 ? `${left} left` : 'Nothing else waits for you')}
      </p>
      {!item.open && !advances && <Onward item={item} next={next} names={names} is_done={is_done} />}
    </div>
  );
}

/** Opens the next request after the confirmation. Back returns to where the user came from. */
function useAdvance(next: WaitingItem | undefined): void {
  const navigate = useNavigate({ from: '/approvals' });
  const { kind, id } = next ?? {};
  useEffect(() => {
    if (kind === undefined) return;
    const timer = setTimeout(() => {
      const link = { [linkNames[kind]]: id };
      void navigate({ search: (old) => ({ ...old, ...NO_LINK, ...link }), replace: true });
    }, CONFIRMATION_MS);
    return () => clearTimeout(timer);
  }, [kind, id, navigate]);
}

/** Where to go from a settled request. */
function Onward({ item, next, names, is_done }: Omit<RequestProps, 'left'> & { is_done: boolean }) {
  const look = buttonClass('primary', 'min-h-12 min-w-0');
  const name = sourceName(item, names.agents);
  const run = runOf(item);
  const back = (
    <>
      <span className="whitespace-pre">{is_done ? 'Done, back to ' : 'Back to '}</span>
      <Truncated>{name}</Truncated>
    </>
  );
  return (
    <div className="flex shrink-0 flex-col p-3 pb-[calc(env(safe-area-inset-bottom)+12px)]">
      {next ? (
        <Link
          to="/approvals"
          search={(old) => ({ ...old, ...NO_LINK, [linkNames[next.kind]]: next.id })}
          replace
          className={look}
        >
          Next request
        </Link>
      ) : item.agent_id !== null ? (
        <Link to="/agents/$agent_id" params={{ agent_id: item.agent_id }} className={look}>
          {back}
        </Link>
      ) : (
        run && (
          <Link
            to="/teams/$team_id/runs/$run_id"
            params={{ team_id: run.team_id, run_id: run.run_id }}
            className={look}
          >
            {back}
          </Link>
        )
      )}
    </div>
  );
}

/** The name of who answered; null where it is not known. */
function answeredBy(item: WaitingItem): string | null {
  if (item.kind === 'permission') return item.review.answered_by;
  return item.kind === 'elicitation' ? item.elicitation.answered_by : null;
}
