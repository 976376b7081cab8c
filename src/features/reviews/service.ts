/**
 * Lists and answers permission reviews. The options come from the agent. Exactly one answer counts. It is committed together
 * with the message to the agent, so it is delivered even after a restart.
 */
import { truncateText } from '../../acp/json.ts';
import { failpoint } from '../../base/failpoint.ts';
import { limits } from '../../base/limits.ts';
import type { Page, PageRequest } from '../../core/page.ts';
import { type Action, authorize, decide, viewOf } from '../../core/policy.ts';
import { invalid, Problem, problems } from '../../core/problem.ts';
import { reviewResource } from '../../store/resources.ts';
import type { Reader, Tx } from '../../store/store.ts';
import { findUserByName } from '../../store/users.ts';
import type { TimerHandlers } from '../../work/timers.ts';
import type { Caller } from '../accounts/rules.ts';
import { parseUsername } from '../actors/rules/actor.ts';
import { AcpTransaction } from '../agents/acp-transaction.ts';
import type { AgentCore } from '../agents/core.ts';
import { findSession } from '../agents/queries/agents.ts';
import { BY_OPERATOR } from '../audit/rules/audit.ts';
import { type Actor, resolveActor } from '../teams/participants.ts';
import { pageOfRequests } from './agent-requests.ts';
import { findReview, listReviews, type ReviewRow, toReview, updateReview } from './queries.ts';
import { awaitLeader, canAnswer, getRole, passToHumans, type ReviewRouting } from './routing.ts';
import { closeReview, closeUnanswered, publishReview, reviewRequests } from './rows.ts';
import {
  assertMayDecide,
  type Decision,
  optionFor,
  type Review,
  type ReviewRole,
  type ReviewStatus,
  routeTo,
  toDecision,
} from './rules.ts';

const ANSWER: Action = 'review.answer';

/** Exactly one of these fields is set. */
export interface ReviewAnswer {
  decision?: Decision | undefined;
  option_id?: string | undefined;
  outcome?: 'cancelled' | undefined;
}

/** A member of a team who answers requests. */
export interface MemberAnswerer {
  actor_id: string;
  member_id: string;
  team_num: number;
  /** The run in which the member answers; other runs are invisible to it. Null: all runs. */
  run_num: number | null;
  /** The address of an operator who answers as the member; null for an agent, or if it is unknown. */
  ip: string | null;
  /** Whether an operator answers as the member, without a user's token. */
  operator?: boolean | undefined;
}

export interface ReviewsOptions {
  routing: ReviewRouting;
  /** Called with the time until each review was answered. */
  onAnswered(waited_ms: number): void;
}

/** The responder, as recorded. */
interface Answerer {
  name: string;
  user_id: string | null;
  ip: string | null;
  /** Whether an operator acts as this person or member, without a user's token. */
  operator?: boolean | undefined;
}

export class Reviews {
  readonly #core: AgentCore;
  readonly #options: ReviewsOptions;

  constructor(core: AgentCore, options: ReviewsOptions) {
    this.#core = core;
    this.#options = options;
  }

  /** Reviews that the caller may answer, newest first. Without a page: see `pageOfRequests`. */
  list(
    caller: Caller,
    filter: { status?: ReviewStatus | undefined; agent_id?: string | undefined },
    request: PageRequest,
  ): Promise<Page<Review>> {
    authorize(caller, 'reviews.list');
    const seen = { view: viewOf(caller), ...filter };
    return this.#core.store.read((reader) =>
      pageOfRequests((item) => listReviews(reader, item), seen, request, toReview),
    );
  }

  /** Throws a 404, also for a review that the caller may not see. */
  get(caller: Caller, review_id: string): Promise<Review> {
    return this.#core.store.read(async (reader) =>
      toReview(await reviewRequests.mustFind(reader, caller, 'review.read', review_id)),
    );
  }

  /**
   * Answers the review. Throws `permission review is already answered by <name>` for all answers except the first. `message`
   * becomes the agent's next prompt: both count, or neither does.
   */
  async respond(
    caller: Caller,
    review_id: string,
    answer: ReviewAnswer,
    idempotency_key: string | null,
    message?: string,
  ): Promise<Review> {
    const { store, idempotency, extensions } = this.#core;
    const answered = await store.write(async (tx) => {
      const row = await reviewRequests.mustFind(tx, caller, ANSWER, review_id);
      const { username: name, user_id, ip, token_id } = caller;
      const review = await this.#answer(tx, row, { name, user_id, ip, operator: token_id === '' }, answer);
      if (message !== undefined) await extensions.promptAgent(tx, caller, row.agent_id, message);
      if (idempotency_key !== null) {
        await idempotency.storeWith(tx, caller, idempotency_key, {
          status: 200,
          location: null,
          body: review,
        });
      }
      return review;
    });
    failpoint('review_answered');
    return answered;
  }

  /**
   * Routes it to a person or to the team's leader; everyone who may answer can still do so. Throws `unknown actor: <id>`, and
   * `leader_cannot_answer` for an agent while agents cannot call the plane.
   */
  route(caller: Caller, review_id: string, to_actor_id: string): Promise<Review> {
    const { store } = this.#core;
    return store.write(async (tx) => {
      const row = await reviewRequests.mustFind(tx, caller, ANSWER, review_id);
      return this.#route(tx, row, caller, to_actor_id);
    });
  }

  // --- for members of teams -------------------------------------------------------------------------------------------

  /** Reviews that are waiting for the member's answer, newest first. */
  listFor(member: MemberAnswerer): Promise<Review[]> {
    const waiting = { routed_to: member.actor_id, status: 'pending' } as const;
    return this.#core.store.read(async (reader) =>
      (await listReviews(reader, waiting)).filter((row) => isWithin(row, member)).map(toReview),
    );
  }

  /** Like `respond`, for a member. Throws unless it is the leader to which the review was routed. */
  async respondAs(member: MemberAnswerer, review_id: string, answer: ReviewAnswer): Promise<Review> {
    const answered = await this.#core.store.write(async (tx) => {
      const row = await this.#mustFindFor(tx, member, review_id);
      const { actor_id: name, ip, operator } = member;
      return this.#answer(tx, row, { name, user_id: null, ip, operator }, answer);
    });
    failpoint('review_answered');
    return answered;
  }

  /** Finds the review. A review of another team or run does not exist for the caller. */
  async #mustFindFor(reader: Reader, member: MemberAnswerer, review_id: string): Promise<ReviewRow> {
    const row = await findReview(reader, review_id);
    if (!row || !isWithin(row, member)) throw problems.reviewNotFound();
    const participants = await this.#options.routing.participants(reader, row);
    const is_routed_to = row.routed_to === member.actor_id;
    // The leader may repeat its answer to a review that has ended. The error then names the first responder.
    if (row.status === 'pending' || !is_routed_to) {
      assertMayDecide(
        getRole(participants, row),
        getRole(participants, { ...row, member_id: member.member_id }),
        {
          is_routed_to,
        },
      );
    }
    return row;
  }

  async #answer(tx: Tx, row: ReviewRow, by: Answerer, answer: ReviewAnswer): Promise<Review> {
    if (row.status !== 'pending') throw reviewOver(row);
    if ((await findSession(tx, row.session_id))?.stdin_lost === 1) throw problems.stdinLost();
    const option = answer.outcome === undefined ? chosenOption(row, answer) : null;
    const decision = option === null ? null : (answer.decision ?? toDecision(option));
    const outcome = option ? { outcome: 'selected', optionId: option.option_id } : { outcome: 'cancelled' };
    const stdin_end = await AcpTransaction.run(this.#core, tx, row.session_id, async (transaction) => {
      const review = { review_id: row.id, answered_by: by.name };
      transaction.respond(JSON.parse(row.request_id), { result: { outcome } }, review);
      await closeReview(this.#core, tx, row, {
        status: option ? 'answered' : 'cancelled',
        decision,
        option_id: option?.option_id ?? null,
        answered_by: by.name,
        delivery: 'queued',
        stdin_end: transaction.stdin_end,
      });
      transaction.publishAtEnd();
      return transaction.stdin_end;
    });
    if (stdin_end === null) throw problems.reviewCancelled();
    await this.#auditEnd(tx, row, by, { decision, option });
    tx.afterCommit(() => this.#options.onAnswered(this.#core.clock.now() - row.created_at));
    return toReview((await findReview(tx, row.id))!);
  }

  /** `by`: null if nobody answered in time. `option`: null if the review was cancelled. */
  async #auditEnd(
    tx: Tx,
    row: ReviewRow,
    by: Answerer | null,
    { decision, option }: { decision: Decision | null; option: Review['options'][number] | null },
  ): Promise<void> {
    const outcome = option ? 'selected' : 'cancelled';
    await this.#core.audit.record(tx, {
      event: 'permission_reviewed',
      agent_id: row.agent_id,
      user_id: by?.user_id ?? null,
      ip: by?.ip ?? null,
      details: {
        ...{ review_id: row.id, decision, option_id: option?.option_id ?? null, outcome },
        ...namesOf(row, option),
        ...(by === null && { why: 'no answer in time' }),
        ...(by?.user_id === null && { actor_id: by.name }),
        ...(by?.operator && BY_OPERATOR),
      },
    });
  }

  async #route(tx: Tx, row: ReviewRow, { user_id, ip }: Caller, route_to: string): Promise<Review> {
    if (row.status !== 'pending') throw reviewOver(row);
    const participants = await this.#options.routing.participants(tx, row);
    const username = parseUsername(route_to);
    const target =
      username === null && participants !== null ? await resolveActor(tx, participants, route_to) : null;
    const to_actor_id = target === null ? await requireHuman(tx, row, route_to, username) : target.actor_id;
    const route = routeTo(getRole(participants, row), roleOfActor(target));
    if (target?.kind === 'member' && !canAnswer(target.member, this.#core.actor_calls))
      throw problems.leaderCannotAnswer();
    // The time limit stays the same, so that routing the review again does not extend it.
    if (to_actor_id === row.routed_to) return toReview(row);
    await updateReview(tx, row.num, { route, routed_to: to_actor_id });
    await this.#core.facts.record(tx, 'review_routed', row.id, { review_id: row.id });
    if (route === 'leader')
      await awaitLeader(this.#core, this.#options.routing, tx, (await findReview(tx, row.id))!);
    else await this.#core.timers.clear(tx, 'review_to_humans', row.id);
    await this.#core.audit.record(tx, {
      event: 'permission_routed',
      agent_id: row.agent_id,
      user_id,
      ip,
      details: { review_id: row.id, to_actor_id },
    });
    await publishReview(this.#core, tx, row.id);
    return toReview((await findReview(tx, row.id))!);
  }

  // --- automatic changes -----------------------------------------------------------------------------------------

  /** Marks answers as delivered when this many bytes of the session's stdin have been written. */
  written(session_id: string, length: number): Promise<void> {
    return reviewRequests.markDelivered(this.#core, session_id, length);
  }

  timers(): Pick<TimerHandlers, 'review_deadline' | 'review_to_humans'> {
    return {
      review_to_humans: async (tx, { ref }) => {
        const row = await findReview(tx, ref);
        if (row?.status !== 'pending' || row.route !== 'leader') return;
        await passToHumans(this.#core, tx, row);
        await publishReview(this.#core, tx, ref);
      },
      review_deadline: async (tx, { ref }) => {
        const row = await findReview(tx, ref);
        if (row?.status !== 'pending') return;
        const done = await AcpTransaction.run(this.#core, tx, row.session_id, async (transaction) => {
          const result = { outcome: { outcome: 'cancelled' } };
          const review = { review_id: row.id, answered_by: null };
          transaction.respond(JSON.parse(row.request_id), { result }, review);
          const { stdin_end } = transaction;
          await closeUnanswered(this.#core, tx, row, { status: 'expired', delivery: 'queued', stdin_end });
          transaction.publishAtEnd();
          return true;
        });
        if (done !== null) await this.#auditEnd(tx, row, null, { decision: null, option: null });
      },
    };
  }
}

function isWithin(row: ReviewRow, { team_num, run_num }: MemberAnswerer): boolean {
  return row.team_num === team_num && (run_num === null || row.run_num === run_num);
}

/** Returns the actor id of a person who may answer. */
async function requireHuman(
  reader: Reader,
  row: ReviewRow,
  route_to: string,
  username: string | null,
): Promise<string> {
  const user = await findUserByName(reader, username ?? '');
  if (!user) throw invalid(`unknown actor: ${route_to}`, 'unknown_actor');
  const { id: user_id, role } = user;
  const human = { user_id, username: user.username, role, token_id: '', grant: null, ip: null };
  if (decide(human, ANSWER, await reviewResource(reader, row)) !== 'allow') throw problems.notAllowed();
  return route_to;
}

function roleOfActor(actor: Actor | null): ReviewRole {
  return actor?.kind === 'member' ? actor.role : 'human';
}

function chosenOption(row: ReviewRow, { decision, option_id }: ReviewAnswer): Review['options'][number] {
  const options = JSON.parse(row.options) as Review['options'];
  if (option_id !== undefined) {
    const option = options.find((option) => option.option_id === option_id);
    if (!option) throw problems.unknownOption();
    const option_decision = toDecision(option);
    if (decision !== undefined && option_decision !== null && option_decision !== decision)
      throw problems.optionMismatch();
    return option;
  }
  const option = decision === undefined ? null : optionFor(decision, options);
  if (!option) throw problems.optionIdRequired();
  return option;
}

/** What was asked, and the answer, in the words of the agent. Both were redacted when the review was stored. */
function namesOf(row: ReviewRow, option: Review['options'][number] | null): Record<string, string> {
  const { title } = JSON.parse(row.tool_call) as Review['tool_call'];
  return {
    ...(option && { option_name: truncateText(option.name, limits.name_chars_max) }),
    ...(typeof title === 'string' && { title: truncateText(title, limits.name_chars_max) }),
  };
}

function reviewOver({ status, answered_by }: ReviewRow): Problem {
  const by = answered_by === null ? '' : ` by ${answered_by}`;
  return new Problem('conflict', 'review_over', `permission review is already ${status}${by}`);
}
