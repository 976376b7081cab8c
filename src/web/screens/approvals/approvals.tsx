/** Everything that waits for an answer of this person, the longest wait first, and what was decided lately. */
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { Fragment, type RefObject, useEffect, useMemo, useRef, useState } from 'react';
import { call } from '../../api/client.ts';
import {
  type AgentRecord,
  agentsQuery,
  type ReviewRecord,
  reviewsQuery,
  teamsQuery,
} from '../../api/queries.ts';
import { ReviewCard } from '../../reviews/card.tsx';
import { type Question, questionOf } from '../../reviews/question.ts';
import { appearance } from '../../shell/appearance.ts';
import { hasModifier, isTyping } from '../../ui/keys.ts';
import { Screen } from '../../ui/screen.tsx';
import { Select } from '../../ui/select.tsx';
import { Empty, Reading } from '../../ui/states.tsx';
import { AnswerMany } from './many.tsx';
import { choicesOf, recentReviews, shownReviews, type Wanted } from './shown.ts';

const RECENT = 20;
const filters = ['team', 'agent', 'kind'] as const;

export function Approvals() {
  const search = useSearch({ from: '/app/approvals' });
  const navigate = useNavigate({ from: '/approvals' });
  const read = useQuery(reviewsQuery);
  const { data: agents = [] } = useQuery(agentsQuery);
  const { data: teamList = [] } = useQuery(teamsQuery);
  const teams = useMemo(() => new Map(teamList.map(({ id, name }) => [id, name])), [teamList]);
  const reviews = useWithLinked(read.data, search.review);
  const seen = useSeen(reviews, search.review);
  const shown = useMemo(() => shownReviews(reviews, search, seen), [reviews, search, seen]);
  const questions = useQuestions(shown);
  const choices = useMemo(
    () => choicesOf(reviews, search, { agents, teams }),
    [reviews, search, agents, teams],
  );
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const list = useRef<HTMLUListElement>(null);
  useStepping(list);
  useLinked(list, search.review, shown);

  const open = questions.filter(({ settled }) => settled === null);
  const chosen = open.filter(({ review_id }) => selected.has(review_id));
  const recent = useQuestions(useMemo(() => recentReviews(reviews, seen, RECENT), [reviews, seen]));
  const toggle = (id: string) => {
    const next = new Set(selected);
    if (!next.delete(id)) next.add(id);
    setSelected(next);
  };
  const change = (next: Wanted) => {
    void navigate({ search: (old) => ({ ...old, ...next, review: undefined }), replace: true });
  };
  // One kind of everything needs no filter.
  const isOpen = (name: keyof Wanted) => search[name] !== undefined || choices[name].length > 2;
  const card = (question: Question) => ({
    question,
    agent: agents.find(({ id }) => id === question.agent_id),
    team: question.team_id === null ? undefined : teams.get(question.team_id),
    named: true,
  });
  return (
    <Screen
      title="Approvals"
      toolbar={filters
        .filter(isOpen)
        .map((name) => (
          <Select
            key={name}
            aria-label={`Filter by ${name}`}
            choices={choices[name]}
            value={search[name] ?? ''}
            onChange={(value) => change({ [name]: value || undefined })}
            className="w-auto max-w-44"
          />
        ))}
    >
      <Reading read={read}>
        {() => (
          <>
            <ActingAlone agents={agents} />
            {open.length === 0 && (
              <Empty title="Nothing needs you." {...(reviews.length === 0 && { cli: 'svc reviews ls' })} />
            )}
            <ul ref={list} aria-label="Waiting" className="mx-auto flex max-w-4xl flex-col gap-3 p-3 md:px-4">
              {questions.map((question) => (
                <li key={question.review_id} className="flex min-w-0 items-start gap-2">
                  {open.length > 1 && (
                    <input
                      type="checkbox"
                      aria-label={`Select ${question.call.title}`}
                      checked={selected.has(question.review_id) && question.settled === null}
                      disabled={question.settled !== null}
                      onChange={() => toggle(question.review_id)}
                      className="mt-3 size-6 shrink-0 max-sm:hidden"
                    />
                  )}
                  <ReviewCard {...card(question)} className="flex-1" />
                </li>
              ))}
            </ul>
            <AnswerMany questions={chosen} onDone={() => setSelected(new Set())} />
            {recent.length > 0 && (
              <section className="mx-auto max-w-4xl px-3 pb-6 md:px-4">
                <h2 className="py-2 font-medium text-muted">Recent decisions</h2>
                <ul className="flex flex-col gap-1">
                  {recent.map((question) => (
                    <li key={question.review_id}>
                      <ReviewCard {...card(question)} />
                    </li>
                  ))}
                </ul>
              </section>
            )}
          </>
        )}
      </Reading>
    </Screen>
  );
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

/** The list, and the review that the address names where the list no longer holds it. */
function useWithLinked(
  reviews: readonly ReviewRecord[] | undefined,
  review_id: string | undefined,
): readonly ReviewRecord[] {
  const missing =
    reviews !== undefined && review_id !== undefined && !reviews.some(({ id }) => id === review_id);
  const { data: linked } = useQuery({
    queryKey: ['review', review_id],
    queryFn: () => call('getReview', { params: { review_id: review_id! } }),
    enabled: missing,
  });
  return useMemo(() => {
    const all = reviews ?? [];
    return missing && linked ? [...all, linked] : all;
  }, [reviews, missing, linked]);
}

/** Those that waited while somebody looked, and the one that a link led to: they stay in sight when they are settled. */
function useSeen(reviews: readonly ReviewRecord[], review_id: string | undefined): ReadonlySet<string> {
  const [seen, setSeen] = useState<ReadonlySet<string>>(new Set());
  const fresh = reviews.filter(
    ({ id, status }) => (status === 'pending' || id === review_id) && !seen.has(id),
  );
  if (fresh.length > 0) setSeen(new Set([...seen, ...fresh.map(({ id }) => id)]));
  return seen;
}

/** A question stays the same object while its review does. */
function useQuestions(reviews: readonly ReviewRecord[]): Question[] {
  const known = useRef(new WeakMap<ReviewRecord, Question>()).current;
  return reviews.map((review) => {
    const question = known.get(review) ?? questionOf(review);
    known.set(review, question);
    return question;
  });
}

/** `j` and `k` go from card to card; the digits of a card work where the focus is. */
function useStepping(list: RefObject<HTMLUListElement | null>): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const step = { j: 1, k: -1 }[event.key];
      if (!step || hasModifier(event) || isTyping(event) || !appearance().shortcuts) return;
      const cards = [...(list.current?.querySelectorAll<HTMLElement>('[data-review]') ?? [])];
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

/** The review that the address names gets the focus once, when it is there. */
function useLinked(
  list: RefObject<HTMLUListElement | null>,
  review_id: string | undefined,
  shown: readonly ReviewRecord[],
): void {
  const done = useRef<string>(undefined);
  useEffect(() => {
    if (review_id === undefined || review_id === done.current) return;
    if (!shown.some(({ id }) => id === review_id)) return;
    const card = list.current?.querySelector<HTMLElement>(`[data-review="${CSS.escape(review_id)}"]`);
    if (!card) return;
    done.current = review_id;
    focusOn(card);
  }, [list, review_id, shown]);
}

function focusOn(card: HTMLElement): void {
  card.focus({ preventScroll: true });
  card.scrollIntoView({ block: 'nearest' });
}
