/**
 * Permission reviews as people see and answer them. The options are the agent's own; exactly one answer counts, and it is
 * committed together with the words for the agent, so that it reaches it through any restart.
 */
import { failpoint } from '../../base/failpoint.ts';
import { limits } from '../../base/limits.ts';
import { usernameOf } from '../../domain/actor.ts';
import { type Action, authorize, decide, viewOf } from '../../domain/policy.ts';
import { invalid, Problem, problems } from '../../domain/problem.ts';
import {
  type Decision,
  decisionOf,
  mustDecide,
  optionFor,
  type Review,
  type ReviewOption,
  type ReviewParty,
  type ReviewStatus,
  routeTo,
} from '../../domain/review.ts';
import type { Caller } from '../../domain/user.ts';
import { findSession } from '../../store/agents.ts';
import {
  findReview,
  listReviews,
  queuedReviews,
  type ReviewFilter,
  type ReviewRow,
  toReview,
  updateReview,
} from '../../store/reviews.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { TimerHandlers } from '../../timers/timers.ts';
import type { AgentsContext } from '../agents/context.ts';
import { type Page, type PageRequest, page, readCursor } from '../page.ts';
import { reviewResource } from '../resources.ts';
import { type Actor, resolveActor } from '../teams/cast.ts';
import { Exchange } from './exchange.ts';
import { awaitLeader, castOf, partyOf, passToHumans, type ReviewRouting } from './review-routing.ts';
import { closeReview, publishReview } from './review-rows.ts';

const ANSWER: Action = 'review.answer';

/** One of them. */
export interface ReviewAnswer {
  decision?: Decision | undefined;
  option_id?: string | undefined;
  outcome?: 'cancelled' | undefined;
}

/** A member of a team, as it answers what it is asked. */
export interface MemberAnswerer {
  actor_id: string;
  member_id: string;
  team_num: number;
  /** The run that it answers in: of others it learns nothing; null: in all of them. */
  run_num: number | null;
}

export interface ReviewsOptions {
  routing: ReviewRouting;
  /** Hears how long each answer was waited for. */
  onAnswered(waited_ms: number): void;
}

/** Who answers, as it is written down. */
interface By {
  name: string;
  user_id: string | null;
  ip: string | null;
  /** Authenticated on the internal surface and by no token of the user: whoever operates the service. */
  operator?: boolean;
}

export class Reviews {
  readonly #context: AgentsContext;
  readonly #options: ReviewsOptions;

  constructor(context: AgentsContext, options: ReviewsOptions) {
    this.#context = context;
    this.#options = options;
  }

  /** Newest first: what the caller may answer. Without a page: what waits, and the newest of the rest. */
  list(
    caller: Caller,
    filter: { status?: ReviewStatus | undefined; agent_id?: string | undefined },
    request: PageRequest,
  ): Promise<Page<Review>> {
    authorize(caller, 'reviews.list');
    const limit = request.limit ?? limits.page_items_default;
    const before_num = readCursor(request.cursor, 'number')?.[0];
    const seen = { view: viewOf(caller), ...filter };
    return this.#context.options.store.read((reader) => {
      if (request.limit === undefined && request.cursor === undefined) {
        return { items: pendingAndNewest(reader, seen).map(toReview) };
      }
      const rows = listReviews(reader, { ...seen, before_num, limit: limit + 1 });
      return page(rows, limit, toReview, (row) => [row.num]);
    });
  }

  get(caller: Caller, review_id: string): Promise<Review> {
    return this.#context.options.store.read((reader) =>
      toReview(mustFind(reader, caller, 'review.read', review_id)),
    );
  }

  /** Answers the review as it is then. Throws `permission review is already answered by <who>` to all but the first. */
  async respond(
    caller: Caller,
    review_id: string,
    answer: ReviewAnswer,
    idempotency_key: string | null,
  ): Promise<Review> {
    const { store, idempotency } = this.#context.options;
    const answered = await store.write((tx) => {
      const row = mustFind(tx, caller, ANSWER, review_id);
      const { username: name, user_id, ip, token_id } = caller;
      const review = this.#answer(tx, row, { name, user_id, ip, operator: token_id === '' }, answer);
      if (idempotency_key !== null) {
        idempotency.keepWith(tx, caller, idempotency_key, { status: 200, location: null, body: review });
      }
      return review;
    });
    failpoint('review_answered');
    return answered;
  }

  /** Puts it before a certain human, or the team's leader; humans who may answer still may. Throws `unknown actor: <id>`. */
  route(caller: Caller, review_id: string, to_actor_id: string): Promise<Review> {
    const { store } = this.#context.options;
    return store.write((tx) => {
      const row = mustFind(tx, caller, ANSWER, review_id);
      const { username: name, user_id, ip } = caller;
      return this.#route(tx, row, { name, user_id, ip }, to_actor_id);
    });
  }

  // --- for members of teams -------------------------------------------------------------------------------------------

  /** Newest first: what waits for the member's answer. */
  listFor(member: MemberAnswerer): Promise<Review[]> {
    const waiting = { routed_to: member.actor_id, status: 'pending' } as const;
    return this.#context.options.store.read((reader) =>
      listReviews(reader, waiting)
        .filter((row) => isWithin(row, member))
        .map(toReview),
    );
  }

  /** As `respond`, by a member. Throws unless it is the leader that the review was put before. */
  async respondAs(member: MemberAnswerer, review_id: string, answer: ReviewAnswer): Promise<Review> {
    const answered = await this.#context.options.store.write((tx) => {
      const row = mustFindFor(tx, member, review_id);
      return this.#answer(tx, row, { name: member.actor_id, user_id: null, ip: null }, answer);
    });
    failpoint('review_answered');
    return answered;
  }

  /** As `route`, by the leader that the review was put before. */
  routeAs(member: MemberAnswerer, review_id: string, to_actor_id: string): Promise<Review> {
    return this.#context.options.store.write((tx) => {
      const row = mustFindFor(tx, member, review_id);
      return this.#route(tx, row, { name: member.actor_id, user_id: null, ip: null }, to_actor_id);
    });
  }

  #answer(tx: Tx, row: ReviewRow, by: By, answer: ReviewAnswer): Review {
    if (row.status !== 'pending') throw over(row);
    if (findSession(tx, row.session_id)?.stdin_lost === 1) throw problems.stdinLost();
    const option = answer.outcome === undefined ? chosen(row, answer) : null;
    const decision = option === null ? null : (answer.decision ?? decisionOf(option));
    const outcome = option ? { outcome: 'selected', optionId: option.option_id } : { outcome: 'cancelled' };
    const stdin_end = Exchange.run(this.#context, tx, row.session_id, (exchange) => {
      const review = { review_id: row.id, answered_by: by.name };
      exchange.respond(JSON.parse(row.request_id), { result: { outcome } }, review);
      closeReview(this.#context, tx, row, {
        status: option ? 'answered' : 'cancelled',
        decision,
        option_id: option?.option_id ?? null,
        answered_by: by.name,
        delivery: 'queued',
        stdin_end: exchange.stdin_end,
      });
      exchange.touch();
      return exchange.stdin_end;
    });
    if (stdin_end === null) throw problems.reviewCancelled();
    this.#context.options.audit.record(tx, {
      event: 'permission_reviewed',
      agent_id: row.agent_id,
      user_id: by.user_id,
      ip: by.ip,
      details: {
        ...{ review_id: row.id, decision, option_id: option?.option_id ?? null, outcome: outcome.outcome },
        ...(by.user_id === null && { actor_id: by.name }),
        ...(by.operator && { authenticated_by: 'internal_grpc' }),
      },
    });
    tx.afterCommit(() => this.#options.onAnswered(this.#context.now() - row.created_at));
    return toReview(findReview(tx, row.id)!);
  }

  #route(tx: Tx, row: ReviewRow, by: By, asked: string): Review {
    if (row.status !== 'pending') throw over(row);
    const cast = castOf(tx, row);
    const username = usernameOf(asked);
    const target = username === null && cast !== null ? resolveActor(tx, cast, asked) : null;
    const to_actor_id = target === null ? mustBeHuman(tx, row, asked, username) : target.actor_id;
    const route = routeTo(partyOf(cast, row), partyOfActor(target));
    // Its time goes on: nobody gets more by asking for it again.
    if (to_actor_id === row.routed_to) return toReview(row);
    updateReview(tx, row.num, { route, routed_to: to_actor_id });
    this.#context.options.facts.record(tx, 'review_routed', row.id, { review_id: row.id });
    if (route === 'leader') awaitLeader(this.#context, this.#options.routing, tx, findReview(tx, row.id)!);
    else this.#context.options.timers.clear(tx, 'review_to_humans', row.id);
    this.#context.options.audit.record(tx, {
      event: 'permission_routed',
      agent_id: row.agent_id,
      user_id: by.user_id,
      ip: by.ip,
      details: {
        review_id: row.id,
        to_actor_id,
        ...(by.user_id === null && { actor_id: by.name }),
      },
    });
    publishReview(this.#context, tx, row.id);
    return toReview(findReview(tx, row.id)!);
  }

  // --- what follows by itself -----------------------------------------------------------------------------------------

  /** Stdin of a session has so many bytes now: answers up to there are with the agent. */
  async written(session_id: string, length: number): Promise<void> {
    const { store } = this.#context.options;
    const arrived = (reader: Reader) => arrivedReviews(reader, session_id, length);
    if ((await store.read(arrived)).length === 0) return;
    await store.write((tx) => {
      for (const row of arrived(tx)) {
        updateReview(tx, row.num, { delivery: 'written' });
        publishReview(this.#context, tx, row.id);
      }
    });
  }

  timers(): Pick<TimerHandlers, 'review_deadline' | 'review_to_humans'> {
    return {
      review_to_humans: (tx, { ref }) => {
        const row = findReview(tx, ref);
        if (row?.status !== 'pending' || row.route !== 'leader') return;
        passToHumans(this.#context, tx, row);
        publishReview(this.#context, tx, ref);
      },
      review_deadline: (tx, { ref }) => {
        const row = findReview(tx, ref);
        if (row?.status !== 'pending') return;
        Exchange.run(this.#context, tx, row.session_id, (exchange) => {
          const result = { outcome: { outcome: 'cancelled' } };
          const review = { review_id: row.id, answered_by: null };
          exchange.respond(JSON.parse(row.request_id), { result }, review);
          const { stdin_end } = exchange;
          closeReview(this.#context, tx, row, { status: 'expired', delivery: 'queued', stdin_end });
          exchange.touch();
        });
      },
    };
  }
}

function mustFind(reader: Reader, caller: Caller, action: Action, review_id: string): ReviewRow {
  const row = findReview(reader, review_id);
  if (!row) throw problems.reviewNotFound();
  authorize(caller, action, reviewResource(reader, row), problems.reviewNotFound);
  return row;
}

function isWithin(row: ReviewRow, { team_num, run_num }: MemberAnswerer): boolean {
  return row.team_num === team_num && (run_num === null || row.run_num === run_num);
}

/** Another team's, or another run's, is as good as none. */
function mustFindFor(reader: Reader, member: MemberAnswerer, review_id: string): ReviewRow {
  const row = findReview(reader, review_id);
  if (!row || !isWithin(row, member)) throw problems.reviewNotFound();
  const cast = castOf(reader, row);
  const is_routed_to = row.routed_to === member.actor_id;
  // One that it answered already may be asked for again, to hear who was first.
  if (row.status === 'pending' || !is_routed_to) {
    mustDecide(partyOf(cast, row), partyOf(cast, { ...row, member_id: member.member_id }), { is_routed_to });
  }
  return row;
}

/** Answers the actor id of a human who may answer. */
function mustBeHuman(reader: Reader, row: ReviewRow, asked: string, username: string | null): string {
  const user = reader.get(
    reader.sql
      .selectFrom('users')
      .selectAll()
      .where('username', '=', username ?? ''),
  );
  if (!user) throw invalid(`unknown actor: ${asked}`, 'unknown_actor');
  const { id: user_id, role } = user;
  const human = { user_id, username: user.username, role, token_id: '', grant: null, ip: null };
  if (decide(human, ANSWER, reviewResource(reader, row)) !== 'allow') throw problems.notAllowed();
  return asked;
}

function partyOfActor(actor: Actor | null): ReviewParty {
  return actor?.kind === 'member' ? actor.role : 'human';
}

/** Everything that waits, and so many more as a page has at most. */
function pendingAndNewest(reader: Reader, filter: Omit<ReviewFilter, 'limit'>): ReviewRow[] {
  const newest = listReviews(reader, { ...filter, limit: limits.page_items_max });
  if (filter.status !== undefined && filter.status !== 'pending') return newest;
  const last_num = newest.length < limits.page_items_max ? 0 : newest.at(-1)!.num;
  return [...newest, ...listReviews(reader, { ...filter, status: 'pending', before_num: last_num })];
}

function arrivedReviews(reader: Reader, session_id: string, length: number): ReviewRow[] {
  const session = reader.get(reader.sql.selectFrom('sessions').select('num').where('id', '=', session_id));
  if (!session) return [];
  return queuedReviews(reader, session.num).filter(
    ({ stdin_end }) => stdin_end !== null && stdin_end <= length,
  );
}

function chosen(row: ReviewRow, { decision, option_id }: ReviewAnswer): ReviewOption {
  const options = JSON.parse(row.options) as ReviewOption[];
  if (option_id !== undefined) {
    const option = options.find((one) => one.option_id === option_id);
    if (!option) throw problems.unknownOption();
    const meant = decisionOf(option);
    if (decision !== undefined && meant !== null && meant !== decision) throw problems.optionMismatch();
    return option;
  }
  const option = decision === undefined ? null : optionFor(decision, options);
  if (!option) throw problems.optionIdRequired();
  return option;
}

function over({ status, answered_by }: ReviewRow): Problem {
  const by = answered_by === null ? '' : ` by ${answered_by}`;
  return new Problem('conflict', 'review_over', `permission review is already ${status}${by}`);
}
