/**
 * Lists and answers elicitations. Everyone who may answer an agent's permission reviews may answer these; they are never
 * routed to leaders of teams. Exactly one answer counts. It is committed together with the message to the agent, so it is
 * delivered even if the service restarts. The input is stored only in that message.
 */
import { failpoint } from '../../base/failpoint.ts';
import type { Page, PageRequest } from '../../core/page.ts';
import { authorize, viewOf } from '../../core/policy.ts';
import { invalid, Problem, problems } from '../../core/problem.ts';
import type { Tx } from '../../store/store.ts';
import type { TimerHandlers } from '../../work/timers.ts';
import type { Caller } from '../accounts/rules.ts';
import { AcpTransaction } from '../agents/acp-transaction.ts';
import type { AgentCore } from '../agents/core.ts';
import { findSession } from '../agents/queries/agents.ts';
import { pageOfRequests } from '../reviews/agent-requests.ts';
import { checkedContent } from './content.ts';
import {
  type ElicitationRow,
  findElicitation,
  listElicitations,
  parseForm,
  toElicitation,
} from './queries.ts';
import { closeElicitation, elicitationRequests } from './rows.ts';
import { type Elicitation, type ElicitationAction, type ElicitationStatus, statusOf } from './rules.ts';

export interface ElicitationAnswer {
  action: ElicitationAction;
  /** The input; only for `accept` of a form. */
  content?: Record<string, unknown> | undefined;
}

export class Elicitations {
  readonly #core: AgentCore;

  constructor(core: AgentCore) {
    this.#core = core;
  }

  /** Elicitations that the caller may answer, newest first. Without a page: see `pageOfRequests`. */
  list(
    caller: Caller,
    filter: { status?: ElicitationStatus | undefined; agent_id?: string | undefined },
    request: PageRequest,
  ): Promise<Page<Elicitation>> {
    authorize(caller, 'reviews.list');
    const seen = { view: viewOf(caller), ...filter };
    return this.#core.store.read((reader) =>
      pageOfRequests((item) => listElicitations(reader, item), seen, request, toElicitation),
    );
  }

  /** Throws a 404, also for an elicitation that the caller may not see. */
  get(caller: Caller, elicitation_id: string): Promise<Elicitation> {
    return this.#core.store.read(async (reader) =>
      toElicitation(await elicitationRequests.mustFind(reader, caller, 'review.read', elicitation_id)),
    );
  }

  /**
   * Throws a 409 `elicitation is already <status> by <name>` for all answers except the first, and a 400 that names the
   * field if `content` does not fit the form. If it throws, nothing has changed.
   */
  async respond(
    caller: Caller,
    elicitation_id: string,
    answer: ElicitationAnswer,
    idempotency_key: string | null,
  ): Promise<Elicitation> {
    const { store, idempotency } = this.#core;
    const answered = await store.write(async (tx) => {
      const row = await elicitationRequests.mustFind(tx, caller, 'review.answer', elicitation_id);
      const elicitation = await this.#answer(tx, row, caller, answer);
      if (idempotency_key !== null) {
        const rest = { status: 200, location: null, body: elicitation };
        await idempotency.storeWith(tx, caller, idempotency_key, rest);
      }
      return elicitation;
    });
    failpoint('elicitation_answered');
    return answered;
  }

  async #answer(
    tx: Tx,
    row: ElicitationRow,
    caller: Caller,
    answer: ElicitationAnswer,
  ): Promise<Elicitation> {
    if (row.status !== 'pending') throw elicitationOver(row);
    if ((await findSession(tx, row.session_id))?.stdin_lost === 1) throw problems.stdinLost();
    const { action } = answer;
    const content = buildContent(row, answer);
    const answered_by = caller.username;
    const done = await AcpTransaction.run(this.#core, tx, row.session_id, async (transaction) => {
      const result = { action, ...(content && { content }) };
      const about = { elicitation_id: row.id, answered_by };
      transaction.respond(JSON.parse(row.request_id), { result }, about);
      const { stdin_end } = transaction;
      const changes = { status: statusOf[action], answered_by, delivery: 'queued', stdin_end } as const;
      await closeElicitation(this.#core, tx, row, changes);
      transaction.publishAtEnd();
      return true;
    });
    if (done === null) throw problems.elicitationCancelled();
    await this.#auditEnd(tx, row, caller, { action, content });
    return toElicitation((await findElicitation(tx, row.id))!);
  }

  /** `by`: null if nobody answered in time. */
  async #auditEnd(
    tx: Tx,
    row: ElicitationRow,
    by: Caller | null,
    { action, content }: { action: ElicitationAction; content: Record<string, unknown> | null },
  ): Promise<void> {
    await this.#core.audit.record(tx, {
      event: 'elicitation_answered',
      agent_id: row.agent_id,
      user_id: by?.user_id ?? null,
      ip: by?.ip ?? null,
      details: {
        ...{ elicitation_id: row.id, mode: row.mode, action },
        ...(content && { fields: Object.keys(content) }),
        ...(row.url !== null && { host: new URL(row.url).host }),
        ...(by === null && { why: 'no answer in time' }),
      },
    });
  }

  /** Marks answers as delivered when this many bytes of the session's stdin have been written. */
  written(session_id: string, length: number): Promise<void> {
    return elicitationRequests.markDelivered(this.#core, session_id, length);
  }

  timers(): Pick<TimerHandlers, 'elicitation_deadline'> {
    return {
      elicitation_deadline: async (tx, { ref }) => {
        const row = await findElicitation(tx, ref);
        if (row?.status !== 'pending') return;
        const done = await AcpTransaction.run(this.#core, tx, row.session_id, async (transaction) => {
          const about = { elicitation_id: row.id, answered_by: null };
          transaction.respond(JSON.parse(row.request_id), { result: { action: 'cancel' } }, about);
          const { stdin_end } = transaction;
          await closeElicitation(this.#core, tx, row, { status: 'expired', delivery: 'queued', stdin_end });
          transaction.publishAtEnd();
          return true;
        });
        if (done !== null) await this.#auditEnd(tx, row, null, { action: 'cancel', content: null });
      },
    };
  }
}

/** Null if the answer has no content. */
function buildContent(
  row: ElicitationRow,
  { action, content }: ElicitationAnswer,
): Record<string, unknown> | null {
  const form = parseForm(row);
  if (action === 'accept' && form !== null) return checkedContent(form, content ?? {});
  if (content !== undefined) throw invalid('content is only for action accept of a form');
  return null;
}

function elicitationOver({ status, answered_by }: ElicitationRow): Problem {
  const by = answered_by === null ? '' : ` by ${answered_by}`;
  return new Problem('conflict', 'elicitation_over', `elicitation is already ${status}${by}`);
}
