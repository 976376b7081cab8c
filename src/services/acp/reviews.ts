/**
 * Permission reviews as people see and answer them. The options are the agent's own; exactly one answer counts, and it is
 * committed together with the words for the agent, so that it reaches it through any restart.
 */
import { failpoint } from '../../base/failpoint.ts';
import { limits } from '../../base/limits.ts';
import { usernameOf } from '../../domain/actor.ts';
import { authorize } from '../../domain/policy.ts';
import { invalid, Problem, problems } from '../../domain/problem.ts';
import {
  type Decision,
  decisionOf,
  optionFor,
  type Review,
  type ReviewOption,
  type ReviewStatus,
  routeTo,
} from '../../domain/review.ts';
import type { Caller } from '../../domain/user.ts';
import { findSession } from '../../store/agents.ts';
import {
  findReview,
  listReviews,
  queuedReviews,
  type ReviewRow,
  toReview,
  updateReview,
} from '../../store/reviews.ts';
import type { Reader } from '../../store/store.ts';
import type { TimerHandlers } from '../../timers/timers.ts';
import type { AgentsContext } from '../agents/context.ts';
import { type Page, type PageRequest, page, readCursor } from '../page.ts';
import { Exchange } from './exchange.ts';
import { closeReview, publishReview } from './review-rows.ts';

/** One of them. */
export interface ReviewAnswer {
  decision?: Decision | undefined;
  option_id?: string | undefined;
  outcome?: 'cancelled' | undefined;
}

export class Reviews {
  readonly #context: AgentsContext;
  readonly #onAnswered: (waited_ms: number) => void;

  /** `onAnswered` hears how long each answer was waited for. */
  constructor(context: AgentsContext, onAnswered: (waited_ms: number) => void) {
    this.#context = context;
    this.#onAnswered = onAnswered;
  }

  /** Newest first: what the caller may answer. */
  list(
    caller: Caller,
    filter: { status?: ReviewStatus | undefined; agent_id?: string | undefined },
    request: PageRequest,
  ): Promise<Page<Review>> {
    authorize(caller, 'reviews.list');
    const limit = request.limit ?? limits.page_items_default;
    const paged = request.limit !== undefined || request.cursor !== undefined;
    const before_num = readCursor(request.cursor, 'number')?.[0];
    const owner_id = caller.role === 'root' ? null : caller.user_id;
    return this.#context.options.store.read((reader) => {
      const rows = listReviews(reader, {
        owner_id,
        ...filter,
        before_num,
        limit: paged ? limit + 1 : undefined,
      });
      return page(rows, paged ? limit : rows.length, toReview, (row) => [row.num]);
    });
  }

  get(caller: Caller, review_id: string): Promise<Review> {
    return this.#context.options.store.read((reader) => toReview(mustFind(reader, caller, review_id)));
  }

  /** Answers the review as it is then. Throws `permission review is already answered by <who>` to all but the first. */
  async respond(
    caller: Caller,
    review_id: string,
    answer: ReviewAnswer,
    idempotency_key: string | null,
  ): Promise<Review> {
    const { store, audit, idempotency } = this.#context.options;
    const answered = await store.write((tx) => {
      const row = mustFind(tx, caller, review_id);
      if (row.status !== 'pending') throw over(row);
      if (findSession(tx, row.session_id)?.stdin_lost === 1) throw problems.stdinLost();
      const option = answer.outcome === undefined ? chosen(row, answer) : null;
      const decision = option === null ? null : (answer.decision ?? decisionOf(option));
      const outcome = option ? { outcome: 'selected', optionId: option.option_id } : { outcome: 'cancelled' };
      const stdin_end = Exchange.run(this.#context, tx, row.session_id, (exchange) => {
        const review = { review_id: row.id, answered_by: caller.username };
        exchange.respond(JSON.parse(row.request_id), { result: { outcome } }, review);
        closeReview(this.#context, tx, row, {
          status: option ? 'answered' : 'cancelled',
          decision,
          option_id: option?.option_id ?? null,
          answered_by: caller.username,
          delivery: 'queued',
          stdin_end: exchange.stdin_end,
        });
        exchange.touch();
        return exchange.stdin_end;
      });
      if (stdin_end === null) throw problems.reviewCancelled();
      audit.record(tx, {
        event: 'permission_reviewed',
        agent_id: row.agent_id,
        user_id: caller.user_id,
        ip: caller.ip,
        details: { review_id, decision, option_id: option?.option_id ?? null, outcome: outcome.outcome },
      });
      tx.afterCommit(() => this.#onAnswered(this.#context.now() - row.created_at));
      const review = toReview(findReview(tx, review_id)!);
      if (idempotency_key !== null) {
        idempotency.keepWith(tx, caller, idempotency_key, { status: 200, location: null, body: review });
      }
      return review;
    });
    failpoint('review_answered');
    return answered;
  }

  /** Puts it before a certain human; whoever may answer still may. Throws `unknown actor: <id>`. */
  async route(caller: Caller, review_id: string, to_actor_id: string): Promise<Review> {
    const { store, audit } = this.#context.options;
    return store.write((tx) => {
      const row = mustFind(tx, caller, review_id);
      if (row.status !== 'pending') throw over(row);
      mustBeHuman(tx, row, to_actor_id);
      updateReview(tx, row.num, { route: routeTo('none', 'human'), routed_to: to_actor_id });
      audit.record(tx, {
        event: 'permission_routed',
        agent_id: row.agent_id,
        user_id: caller.user_id,
        ip: caller.ip,
        details: { review_id, to_actor_id },
      });
      publishReview(this.#context, tx, review_id);
      return toReview(findReview(tx, review_id)!);
    });
  }

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

  timers(): Pick<TimerHandlers, 'review_deadline'> {
    return {
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

function mustFind(reader: Reader, caller: Caller, review_id: string): ReviewRow {
  const row = findReview(reader, review_id);
  if (!row) throw problems.reviewNotFound();
  authorize(caller, 'review.answer', row, problems.reviewNotFound);
  return row;
}

/** A human who may answer: the agent's owner, or root. */
function mustBeHuman(reader: Reader, { owner_id }: ReviewRow, actor_id: string): void {
  const username = usernameOf(actor_id) ?? '';
  const user = reader.get(reader.sql.selectFrom('users').selectAll().where('username', '=', username));
  if (!user) throw invalid(`unknown actor: ${actor_id}`, 'unknown_actor');
  if (user.id !== owner_id && user.role !== 'root') throw problems.notAllowed();
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
