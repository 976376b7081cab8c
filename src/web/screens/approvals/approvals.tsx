/** Approvals: all pending reviews and elicitations, the oldest first, and recent decisions. */
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { Fragment, type RefObject, useEffect, useMemo, useRef, useState } from 'react';
import { call } from '../../api/client.ts';
import { keys } from '../../api/keys.ts';
import {
  type AgentRecord,
  agentsQuery,
  type ElicitationRecord,
  elicitationQuery,
  elicitationsQuery,
  type ReviewRecord,
  reviewsQuery,
  teamsQuery,
} from '../../api/queries.ts';
import { ElicitationCard } from '../../elicitations/card.tsx';
import { type AgentRequest, isReview } from '../../reviews/agent-request.ts';
import { ReviewCard } from '../../reviews/card.tsx';
import { type ReviewView, toReviewView } from '../../reviews/review-view.ts';
import { appearance } from '../../shell/appearance.ts';
import { hasModifier, isTyping } from '../../ui/keys.ts';
import { Screen } from '../../ui/screen.tsx';
import { Select } from '../../ui/select.tsx';
import { Empty, QueryState } from '../../ui/states.tsx';
import { AnswerMany } from './many.tsx';
import { filterRequests, listChoices, listRecent, type RequestFilter } from './shown.ts';

const RECENT = 20;
const filters = ['team', 'agent', 'kind'] as const;
const NO_AGENTS: AgentRecord[] = [];

export function Approvals() {
  const search = useSearch({ from: '/app/approvals' });
  const read = useQuery(reviewsQuery);
  const elicitations = useQuery(elicitationsQuery);
  const requests = useWithLinked(read.data, elicitations.data, search);
  const names = useNames();
  return (
    <Screen title="Approvals" toolbar={<Filters requests={requests} names={names} />}>
      <QueryState read={read}>
        {() => (
          <QueryState read={elicitations}>
            {() => <RequestList requests={requests} names={names} />}
          </QueryState>
        )}
      </QueryState>
    </Screen>
  );
}

interface Names {
  agents: AgentRecord[];
  /** The names of teams by id. */
  teams: ReadonlyMap<string, string>;
}

function useNames(): Names {
  const { data: agents = NO_AGENTS } = useQuery(agentsQuery);
  const { data: teamList } = useQuery(teamsQuery);
  const teams = useMemo(() => new Map((teamList ?? []).map(({ id, name }) => [id, name])), [teamList]);
  return { agents, teams };
}

/** A filter with a single choice is not shown. */
function Filters({
  requests,
  names: { agents, teams },
}: {
  requests: readonly AgentRequest[];
  names: Names;
}) {
  const search = useSearch({ from: '/app/approvals' });
  const navigate = useNavigate({ from: '/approvals' });
  const choices = useMemo(
    () => listChoices(requests, search, { agents, teams }),
    [requests, search, agents, teams],
  );
  const change = (next: RequestFilter) => {
    void navigate({
      search: (old) => ({ ...old, ...next, review: undefined, elicitation: undefined }),
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
        className="w-auto max-w-44"
      />
    ));
}

function RequestList({ requests, names }: { requests: readonly AgentRequest[]; names: Names }) {
  const search = useSearch({ from: '/app/approvals' });
  const linked = search.elicitation ?? search.review;
  const seen = useSeen(requests, linked);
  const shown = useMemo(() => filterRequests(requests, search, seen), [requests, search, seen]);
  const recent = useMemo(() => listRecent(requests, seen, RECENT), [requests, seen]);
  const viewFor = useReviewViews();
  const { selected, toggle, clear } = useSelection();
  const list = useRef<HTMLUListElement>(null);
  useCardKeys(list);
  useLinked(list, linked, shown);
  const open = shown
    .filter(isReview)
    .map(viewFor)
    .filter(({ settled }) => settled === null);
  const card = (request: AgentRequest, className?: string) => (
    <RequestCard request={request} names={names} viewFor={viewFor} {...(className && { className })} />
  );
  return (
    <>
      <ActingAlone agents={names.agents} />
      {shown.every(({ status }) => status !== 'pending') && (
        <Empty
          title="No approvals are waiting. Agents’ permission requests and forms appear here; questions of steps appear on the page of their run."
          {...(requests.length === 0 && { cli: 'svc reviews ls' })}
        />
      )}
      <ul ref={list} aria-label="Waiting" className="mx-auto flex max-w-4xl flex-col gap-3 p-3 md:px-4">
        {shown.map((request) => (
          <li key={request.id} className="flex min-w-0 items-start gap-2">
            {open.length > 1 && isReview(request) && (
              <input
                type="checkbox"
                aria-label={`Select ${viewFor(request).call.title}`}
                checked={selected.has(request.id) && request.status === 'pending'}
                disabled={request.status !== 'pending'}
                onChange={() => toggle(request.id)}
                className="mt-3 size-6 shrink-0 max-sm:hidden"
              />
            )}
            {card(request, 'flex-1')}
          </li>
        ))}
      </ul>
      <AnswerMany reviews={open.filter(({ review_id }) => selected.has(review_id))} onDone={clear} />
      {recent.length > 0 && (
        <section className="mx-auto max-w-4xl px-3 pb-6 md:px-4">
          <h2 className="py-2 font-medium text-muted">Recent decisions</h2>
          <ul className="flex flex-col gap-1">
            {recent.map((request) => (
              <li key={request.id}>{card(request)}</li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

function RequestCard({
  request,
  names,
  viewFor,
  className,
}: {
  request: AgentRequest;
  names: Names;
  viewFor: (review: ReviewRecord) => ReviewView;
  className?: string;
}) {
  const agent = names.agents.find(({ id }) => id === request.agent_id);
  const rest = { named: true, ...(className && { className }) };
  if (!isReview(request)) return <ElicitationCard elicitation={request} agent={agent} {...rest} />;
  const team = request.team_id === null ? undefined : names.teams.get(request.team_id);
  return <ReviewCard review={viewFor(request)} agent={agent} team={team} {...rest} />;
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
    <p role="status" className="mx-auto max-w-4xl px-3 pt-3 text-needs md:px-4">
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

/** The lists, plus the item in the page's URL if the lists no longer contain it. */
function useWithLinked(
  reviews: readonly ReviewRecord[] | undefined,
  elicitations: readonly ElicitationRecord[] | undefined,
  {
    review: review_id,
    elicitation: elicitation_id,
  }: { review?: string | undefined; elicitation?: string | undefined },
): readonly AgentRequest[] {
  const lacks = (rows: readonly AgentRequest[] | undefined, id: string | undefined) =>
    rows !== undefined && id !== undefined && !rows.some((row) => row.id === id);
  const { data: review } = useQuery({
    queryKey: keys.review(review_id),
    queryFn: () => call('getReview', { params: { review_id: review_id! } }),
    enabled: lacks(reviews, review_id),
  });
  const { data: elicitation } = useQuery({
    ...elicitationQuery(elicitation_id ?? ''),
    enabled: lacks(elicitations, elicitation_id),
  });
  return useMemo(() => {
    const listed: AgentRequest[] = [...(reviews ?? []), ...(elicitations ?? [])];
    const linked = [review, elicitation].filter((item) => item !== undefined);
    return [...listed, ...linked.filter(({ id }) => !listed.some((row) => row.id === id))];
  }, [reviews, elicitations, review, elicitation]);
}

/** The ids that were pending while the page was open, and the linked one: they stay visible when settled. */
function useSeen(requests: readonly AgentRequest[], linked: string | undefined): ReadonlySet<string> {
  const [seen, setSeen] = useState<ReadonlySet<string>>(new Set());
  const fresh = requests.filter(({ id, status }) => (status === 'pending' || id === linked) && !seen.has(id));
  if (fresh.length > 0) setSeen(new Set([...seen, ...fresh.map(({ id }) => id)]));
  return seen;
}

/** Returns the same view for the same review record. */
function useReviewViews(): (review: ReviewRecord) => ReviewView {
  const known = useRef(new WeakMap<ReviewRecord, ReviewView>()).current;
  return (review) => {
    const view = known.get(review) ?? toReviewView(review);
    known.set(review, view);
    return view;
  };
}

/** `j` and `k` move the focus between cards. */
function useCardKeys(list: RefObject<HTMLUListElement | null>): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const step = { j: 1, k: -1 }[event.key];
      if (!step || hasModifier(event) || isTyping(event) || !appearance().shortcuts) return;
      const cards = [
        ...(list.current?.querySelectorAll<HTMLElement>('[data-review], [data-elicitation]') ?? []),
      ];
      if (cards.length === 0) return;
      const at = cards.findIndex((card) => card.contains(document.activeElement));
      const next = at === -1 ? (step > 0 ? 0 : cards.length - 1) : at + step;
      event.preventDefault();
      focusOn(cards[Math.min(cards.length - 1, Math.max(0, next))]!);
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, [list]);
}

/** The item in the page's URL gets the focus once, when it is loaded. */
function useLinked(
  list: RefObject<HTMLUListElement | null>,
  linked: string | undefined,
  shown: readonly AgentRequest[],
): void {
  const done = useRef<string>(undefined);
  useEffect(() => {
    if (linked === undefined || linked === done.current) return;
    if (!shown.some(({ id }) => id === linked)) return;
    const id = CSS.escape(linked);
    const card = list.current?.querySelector<HTMLElement>(
      `[data-review="${id}"], [data-elicitation="${id}"]`,
    );
    if (!card) return;
    done.current = linked;
    focusOn(card);
  }, [list, linked, shown]);
}

function focusOn(card: HTMLElement): void {
  card.focus({ preventScroll: true });
  card.scrollIntoView({ block: 'nearest' });
}
