/** Approvals: everything that waits for the user, the longest wait first, and recent decisions. */
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { Fragment, type RefObject, useEffect, useMemo, useRef, useState } from 'react';
import { call } from '../../api/client.ts';
import { keys } from '../../api/keys.ts';
import { type AgentRecord, elicitationQuery, type ReviewRecord } from '../../api/queries.ts';
import { buttonClass } from '../../ui/button.tsx';
import { useHandheld } from '../../ui/media.ts';
import { guardMovedRows } from '../../ui/moved-rows.ts';
import { Screen } from '../../ui/screen.tsx';
import { Select } from '../../ui/select.tsx';
import { Empty } from '../../ui/states.tsx';
import { CardKeysContext } from '../../waiting/card-frame.tsx';
import { useCardKeys } from '../../waiting/card-keys.ts';
import { focusCard } from '../../waiting/focus.ts';
import {
  elicitationItem,
  isListedOnlyOpen,
  keyOf,
  type LinkSearch,
  linkedId,
  reviewItem,
  type WaitingItem,
} from '../../waiting/queue.ts';
import { useWaiting } from '../../waiting/use-waiting.ts';
import { AllRead } from './all-read.tsx';
import { FullScreen } from './full-screen.tsx';
import { ItemCard, type Names, useNames, useReviewViews } from './item-card.tsx';
import { AnswerMany } from './many.tsx';
import { PhoneQueue, QueueList } from './queue-list.tsx';
import {
  answeredInLastDay,
  filterItems,
  type ItemFilter,
  keysInPlace,
  listChoices,
  listRecent,
  NO_LINK,
  SETTLED_MAX,
  selectName,
} from './shown.ts';

const RECENT = 20;
const NONE: ReadonlySet<string> = new Set();
const filters = ['team', 'agent', 'kind'] as const;

export function Approvals() {
  const search = useSearch({ from: '/app/approvals' });
  const { items: listed, reads } = useWaiting();
  const { items: known, isLoading } = useWithLinked(listed, search);
  const items = useRemembered(known);
  const names = useNames();
  const linked = linkedId(search);
  const fills_screen = useHandheld() && linked !== undefined;
  // Reviews and elicitations can still be read when they are settled, unless they were deleted with their agent.
  const is_gone = linked !== undefined && !isLoading && !items.some(({ id }) => id === linked);
  if (fills_screen) return <FullScreen {...{ items, linked, isLoading, names, reads }} />;
  return (
    <Screen title="Approvals" toolbar={<Filters items={items} names={names} />}>
      <AllRead reads={reads}>
        <ItemList items={items} is_gone={is_gone} names={names} />
      </AllRead>
    </Screen>
  );
}

/** A filter with a single choice is not shown. */
function Filters({ items, names: { agents, teams } }: { items: readonly WaitingItem[]; names: Names }) {
  const search = useSearch({ from: '/app/approvals' });
  const navigate = useNavigate({ from: '/approvals' });
  const choices = useMemo(
    () => listChoices(items, search, { agents, teams }),
    [items, search, agents, teams],
  );
  const change = (next: ItemFilter) => {
    void navigate({
      search: (old) => ({ ...old, ...next, ...NO_LINK }),
      replace: true,
    });
  };
  return filters
    .filter((name) => search[name] !== undefined || choices[name].length > 2)
    .map((name) => (
      <Select
        key={name}
        aria-label={`Filter by ${name}`}
        choices={choices[name]}
        value={search[name] ?? ''}
        onChange={(value) => change({ [name]: value || undefined })}
        className="min-w-36 flex-1 sm:max-w-44 sm:flex-none"
      />
    ));
}

/** `items`: without the filter. */
function NoneShown({ items }: { items: readonly WaitingItem[] }) {
  if (items.some(({ open }) => open)) return <Empty title="No approvals match this filter." />;
  const title = 'No approvals are waiting.';
  if (items.length > 0) return <Empty title={title} />;
  return (
    <Empty
      title={`${title} Permission requests, forms, questions of steps and sign-ins appear here.`}
      cli="svc reviews ls"
      operation="listReviews"
    >
      <Link to="/agents" search={{}} className={buttonClass()}>
        Open agents
      </Link>
    </Empty>
  );
}

function ItemList({
  items,
  is_gone,
  names,
}: {
  items: readonly WaitingItem[];
  /** The item in the page's URL is not among them. */
  is_gone: boolean;
  names: Names;
}) {
  const search = useSearch({ from: '/app/approvals' });
  const linked = linkedId(search);
  const is_handheld = useHandheld();
  const seen = useSeen(items, linked);
  const shown = useMemo(() => filterItems(items, search, seen), [items, search, seen]);
  const recent = useMemo(
    () => listRecent(items, is_handheld ? NONE : seen, RECENT),
    [items, is_handheld, seen],
  );
  const viewFor = useReviewViews();
  const { selected, toggle, clear } = useSelection();
  const list = useRef<HTMLDivElement>(null);
  const cardKeys = useCardKeys(list);
  useLinked(list, linked, shown);
  const open = shown.filter((item) => item.open);
  const has_queue = useStaysTrue(open.length > 0);
  const reviews = open.filter((item) => item.kind === 'permission').map(viewFor);
  return (
    <>
      <ActingAlone agents={names.agents} />
      {is_gone && <Gone />}
      {open.length === 0 && <NoneShown items={items} />}
      {is_handheld ? (
        <PhoneQueue items={open} agents={names.agents} />
      ) : (
        <div ref={list} className="flex min-w-0">
          {has_queue && (
            <QueueList
              items={open}
              agents={names.agents}
              cards={list}
              selection={reviews.length > 1 ? { selected, toggle } : null}
            />
          )}
          <CardKeysContext value={cardKeys}>
            <ul
              ref={guardMovedRows}
              aria-label="Waiting"
              className="flex min-w-0 max-w-page flex-1 flex-col gap-3 p-3 md:px-4"
            >
              {shown.map((item) => (
                <li key={keyOf(item)} data-row={keyOf(item)} className="flex min-w-0 items-start gap-2">
                  {reviews.length > 1 && item.kind === 'permission' && (
                    <input
                      type="checkbox"
                      aria-label={selectName(item, names.agents)}
                      checked={selected.has(item.id) && item.open}
                      disabled={!item.open}
                      onChange={() => toggle(item.id)}
                      className="mt-3 size-6 shrink-0 max-sm:hidden min-[68.75rem]:hidden"
                    />
                  )}
                  <ItemCard item={item} names={names} viewFor={viewFor} className="flex-1" />
                </li>
              ))}
            </ul>
          </CardKeysContext>
        </div>
      )}
      <AnswerMany reviews={reviews.filter(({ review_id }) => selected.has(review_id))} onDone={clear} />
      <div className="flex">
        {has_queue && !is_handheld && <div className="hidden w-80 shrink-0 min-[68.75rem]:block" />}
        <RecentDecisions items={recent} last_day={answeredInLastDay(items, Date.now())} names={names} />
      </div>
    </>
  );
}

function Gone() {
  return (
    <p role="status" className="max-w-page px-3 pt-3 text-muted md:px-4">
      The request in this link no longer waits for an answer.
    </p>
  );
}

function RecentDecisions({
  items,
  last_day,
  names,
}: {
  items: readonly WaitingItem[];
  /** See `answeredInLastDay`. */
  last_day: string;
  names: Names;
}) {
  const viewFor = useReviewViews();
  // Those that are shown in place are only counted.
  if (items.length === 0 && !last_day) return null;
  return (
    <section className="min-w-0 max-w-page flex-1 px-3 pb-6 md:px-4">
      <div className="flex flex-wrap items-baseline gap-x-3 py-2 text-muted">
        <h2 className="font-medium">Recent decisions</h2>
        {last_day && <p className="text-sm">{last_day}</p>}
      </div>
      <ul className="flex flex-col gap-1">
        {items.map((item) => (
          <li key={keyOf(item)}>
            <ItemCard item={item} names={names} viewFor={viewFor} />
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Whether it has ever been true. The column of the queue stays, so that cards do not move sideways under the pointer. */
function useStaysTrue(now: boolean): boolean {
  const [ever, setEver] = useState(now);
  if (now && !ever) setEver(true);
  return ever || now;
}

/** The ids of the reviews that are selected for a common answer. */
function useSelection() {
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const toggle = (id: string) => {
    const next = new Set(selected);
    if (!next.delete(id)) next.add(id);
    setSelected(next);
  };
  return { selected, toggle, clear: () => setSelected(new Set()) };
}

/** Running agents that write, run or fetch without asking: nothing they do shows up in the list below. */
function ActingAlone({ agents }: { agents: readonly AgentRecord[] }) {
  const acting = agents.filter(({ status, asks }) => status === 'running' && asks === 'acts');
  if (acting.length === 0) return null;
  return (
    <p role="status" className="border-line border-b px-3 py-2 text-needs md:px-4">
      {acting.map(({ id, name }, at) => (
        <Fragment key={id}>
          {at > 0 && ', '}
          <Link to="/agents/$agent_id" params={{ agent_id: id }} className="break-all font-medium underline">
            {name}
          </Link>
        </Fragment>
      ))}
      {acting.length === 1
        ? ' acts on its own: its actions do not wait for approval.'
        : ' act on their own: their actions do not wait for approval.'}
    </p>
  );
}

/** The items, plus the review or elicitation in the page's URL if the lists no longer contain it. */
function useWithLinked(
  items: readonly WaitingItem[],
  { review: review_id, elicitation: elicitation_id }: LinkSearch,
): { items: readonly WaitingItem[]; isLoading: boolean } {
  const lacks = (id: string | undefined) => id !== undefined && !items.some((item) => item.id === id);
  const { data: review, isLoading: loads_review } = useQuery({
    queryKey: keys.review(review_id),
    queryFn: () => call('getReview', { params: { review_id: review_id! } }),
    enabled: lacks(review_id),
  });
  const { data: elicitation, isLoading: loads_elicitation } = useQuery({
    ...elicitationQuery(elicitation_id ?? ''),
    enabled: lacks(elicitation_id),
  });
  const all = useMemo(() => {
    const linked = [
      ...(review ? [reviewItem(review as ReviewRecord)] : []),
      ...(elicitation ? [elicitationItem(elicitation)] : []),
    ];
    return [...items, ...linked.filter(({ id }) => !items.some((item) => item.id === id))];
  }, [items, review, elicitation]);
  return { items: all, isLoading: loads_review || loads_elicitation };
}

/**
 * Adds the last questions, runs and sign-ins that were settled while the page was open, because their lists contain only
 * open ones.
 */
function useRemembered(items: readonly WaitingItem[]): readonly WaitingItem[] {
  const remembered = useRef(new Map<string, WaitingItem>());
  return useMemo(() => {
    const known = remembered.current;
    for (const item of items.filter(isListedOnlyOpen)) {
      // At the end, so the others are in the order in which they were settled.
      known.delete(keyOf(item));
      known.set(keyOf(item), item);
    }
    const current = new Set(items.map(keyOf));
    const settled = [...known].filter(([key]) => !current.has(key));
    for (const [key] of settled.slice(0, -SETTLED_MAX)) known.delete(key);
    return [...items, ...settled.slice(-SETTLED_MAX).map(([, item]) => ({ ...item, open: false }))];
  }, [items]);
}

/** The keys of the items that stay visible when they are settled. */
function useSeen(items: readonly WaitingItem[], linked: string | undefined): ReadonlySet<string> {
  const [seen, setSeen] = useState<ReadonlySet<string>>(new Set());
  const next = keysInPlace(seen, items, linked);
  if ([...next].join() === [...seen].join()) return seen;
  setSeen(next);
  return next;
}

/** The item in the page's URL gets the focus once, when it is loaded. */
function useLinked(
  list: RefObject<HTMLElement | null>,
  linked: string | undefined,
  shown: readonly WaitingItem[],
): void {
  const done = useRef<string>(undefined);
  useEffect(() => {
    if (linked === undefined || linked === done.current) return;
    if (!shown.some(({ id }) => id === linked)) return;
    const card = list.current?.querySelector<HTMLElement>(`[data-waiting="${CSS.escape(linked)}"]`);
    if (!card) return;
    done.current = linked;
    focusCard(card);
  }, [list, linked, shown]);
}
