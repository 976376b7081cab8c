/**
 * Decides who is notified of what. It consumes the facts that matter to people, and creates a message for each device
 * and an intent to send it, in the transaction that moves the cursor, so each fact is handled once. Everyone who may
 * act on something is notified of it, by the same policy. Root may act on everything but is notified only of its own,
 * unless a device asks for all.
 */
import type { Clock } from '../../base/clock.ts';
import { MAIN_NODE } from '../../core/node.ts';
import type { Tx } from '../../store/store.ts';
import type { Fact, FactHandlers } from '../../work/facts.ts';
import type { Outbox } from '../../work/outbox.ts';
import { parseUsername } from '../actors/rules/actor.ts';
import { findAgent } from '../agents/queries/agents.ts';
import { findElicitation } from '../elicitations/queries.ts';
import { findReview } from '../reviews/queries.ts';
import { findRun } from '../runs/queries/runs.ts';
import { findStep } from '../runs/queries/steps.ts';
import { findRunWait } from '../runs/queries/waiting.ts';
import { isRunOver } from '../runs/rules/run.ts';
import { findTeam } from '../teams/queries.ts';
import { limits } from './limits.ts';
import {
  elicitationMessage,
  elicitationTag,
  failureMessage,
  failureTag,
  matchesKinds,
  type NotificationText,
  questionMessage,
  questionTag,
  reviewMessage,
  reviewTag,
  runMessage,
  runTag,
  runWaitMessage,
  runWaitTag,
  signInMessage,
  signInTag,
} from './messages.ts';
import {
  deleteMessage,
  findDeviceMessageByTag,
  listMessagesByTag,
  listUserSubscriptions,
  putMessage,
  type SubscriptionRow,
  trimMessages,
} from './queries.ts';
import { closingText, findSubject, mayReceive, waitingFor } from './recipients.ts';
import type { PushKind, PushMessage } from './rules.ts';

interface Notification {
  fact_id: number;
  tag: string;
  /** Only this user; absent: everyone with the right. */
  username?: string | undefined;
  buildText(device: { with_commands: boolean }): NotificationText;
}

export class Notifier {
  readonly #clock: Clock;
  readonly #outbox: Outbox;

  constructor({ clock, outbox }: { clock: Clock; outbox: Outbox }) {
    this.#clock = clock;
    this.#outbox = outbox;
  }

  facts(): FactHandlers {
    return {
      review_opened: (tx, fact) => this.#review(tx, fact),
      review_routed: (tx, fact) => this.#review(tx, fact),
      review_closed: async (tx, { id, payload: { review_id } }) =>
        this.#closed(tx, id, reviewTag(review_id), await findReview(tx, review_id)),
      elicitation_opened: (tx, fact) => this.#elicitation(tx, fact),
      elicitation_closed: async (tx, { id, payload: { elicitation_id } }) =>
        this.#closed(tx, id, elicitationTag(elicitation_id), await findElicitation(tx, elicitation_id)),
      step_waits: (tx, fact) => this.#question(tx, fact),
      step_answered: (tx, { id, payload }) => this.#closed(tx, id, questionTag(payload), payload),
      run_waits: (tx, fact) => this.#runWait(tx, fact),
      run_answered: (tx, { id, payload }) => this.#closed(tx, id, runWaitTag(payload.run_id), payload),
      sign_in_required: (tx, fact) => this.#signIn(tx, fact),
      sign_in_over: (tx, { id, payload: { agent_id } }) =>
        this.#closed(tx, id, signInTag(agent_id), undefined),
      session_ended: async (tx, fact) => {
        await this.#closed(tx, fact.id, signInTag(fact.payload.agent_id), undefined);
        await this.#ended(tx, fact);
      },
      run_changed: (tx, fact) => this.#run(tx, fact),
    };
  }

  /** A review that was routed to a leader does not concern people yet. */
  async #review(tx: Tx, { id, payload }: Fact<'review_opened' | 'review_routed'>): Promise<void> {
    const row = await findReview(tx, payload.review_id);
    if (row?.status !== 'pending' || row.route !== 'human') return;
    const agent = (await findAgent(tx, row.agent_id))!;
    const review = { id: row.id, agent_name: agent.name, tool_call: JSON.parse(row.tool_call) };
    await this.#notify(tx, {
      fact_id: id,
      tag: reviewTag(row.id),
      username: row.routed_to === null ? undefined : (parseUsername(row.routed_to) ?? undefined),
      buildText: (device) => reviewMessage(review, device),
    });
  }

  async #elicitation(tx: Tx, { id, payload }: Fact<'elicitation_opened'>): Promise<void> {
    const row = await findElicitation(tx, payload.elicitation_id);
    if (row?.status !== 'pending') return;
    const { name } = (await findAgent(tx, row.agent_id))!;
    await this.#notify(tx, {
      fact_id: id,
      tag: elicitationTag(row.id),
      buildText: (device) => elicitationMessage({ ...row, agent_name: name }, device),
    });
  }

  /** A later wait of the step has its own fact. */
  async #question(tx: Tx, { id, payload }: Fact<'step_waits'>): Promise<void> {
    const run = await findRun(tx, payload.run_id);
    const step = run && (await findStep(tx, run.num, payload.step_key));
    if (!run || step?.waiting_since !== payload.since_ms) return;
    const team = (await findTeam(tx, run.team_id))!;
    const { step_key, member_id, error_text } = step;
    const question = {
      run_id: run.id,
      team_name: team.name,
      step_key,
      member_id,
      question: error_text ?? '',
    };
    await this.#notify(tx, {
      fact_id: id,
      tag: questionTag(payload),
      buildText: (device) => questionMessage(question, device),
    });
  }

  async #runWait(tx: Tx, { id, payload }: Fact<'run_waits'>): Promise<void> {
    const run = await findRun(tx, payload.run_id);
    if (!run || (await findRunWait(tx, run)) !== payload.since_ms) return;
    const team = (await findTeam(tx, run.team_id))!;
    await this.#notify(tx, {
      fact_id: id,
      tag: runWaitTag(run.id),
      buildText: (device) =>
        runWaitMessage({ ...run, team_name: team.name, reason: run.error ?? '' }, device),
    });
  }

  async #signIn(tx: Tx, { id, payload }: Fact<'sign_in_required'>): Promise<void> {
    const agent = await findAgent(tx, payload.agent_id);
    if (agent?.sign_in_since !== payload.since_ms) return;
    await this.#notify(tx, {
      fact_id: id,
      tag: signInTag(agent.id),
      buildText: () => signInMessage(agent),
    });
  }

  /** Updates the notification on devices that received the request, and drops it for the others. */
  async #closed(
    tx: Tx,
    id: number,
    tag: string,
    over: { answered_by: string | null } | undefined,
  ): Promise<void> {
    const answered_by = over?.answered_by ?? null;
    const subject = await findSubject(tx, tag);
    for (const row of await listMessagesByTag(tx, tag)) {
      const original = JSON.parse(row.message) as PushMessage;
      if (original.kind === 'closed') continue;
      // A message that it replaced may be on the device.
      if (row.state === 'pending' && row.attempts === 0 && row.sent_at === null) {
        await deleteMessage(tx, row.num);
        continue;
      }
      const device = { num: row.subscription_num, id: row.subscription_id };
      await this.#put(tx, device, id, {
        ...closingText(row, subject, original, { sent_at: row.sent_at, answered_by }),
        waiting: await waitingFor(tx, row),
      });
    }
  }

  /** The run reports the agents of a run. An agent that fails repeatedly is reported only from time to time. */
  async #ended(tx: Tx, { id, payload }: Fact<'session_ended'>): Promise<void> {
    if (payload.status !== 'failed') return;
    const row = await findAgent(tx, payload.agent_id);
    // It may be running again, or deleted.
    if (!row || row.run_num !== null || row.session_id !== payload.session_id || row.status !== 'failed') {
      return;
    }
    await this.#notify(tx, {
      fact_id: id,
      tag: failureTag(row.id),
      buildText: () => failureMessage(row),
    });
  }

  async #run(tx: Tx, { id, payload }: Fact<'run_changed'>): Promise<void> {
    const run = await findRun(tx, payload.run_id);
    if (!run || run.status !== payload.status || run.attempt !== payload.attempt || !isRunOver(run)) return;
    const team = (await findTeam(tx, run.team_id))!;
    await this.#notify(tx, {
      fact_id: id,
      tag: runTag(run.id),
      buildText: () => runMessage({ ...run, team_name: team.name }),
    });
  }

  async #notify(tx: Tx, { fact_id, tag, username, buildText }: Notification): Promise<void> {
    const subject = (await findSubject(tx, tag))!;
    const { resource } = subject;
    const people = [resource.owner_id, ...(resource.human_ids ?? [])];
    for (const device of await listUserSubscriptions(tx, people)) {
      if (username !== undefined && device.username !== username) continue;
      if (!mayReceive(device, subject)) continue;
      const text = buildText({ with_commands: device.with_commands === 1 });
      if (!matchesKinds(text, JSON.parse(device.kinds) as PushKind[])) continue;
      if (text.kind === 'agent_failed' && (await this.#wasSentRecently(tx, device, text.tag))) continue;
      await this.#put(tx, device, fact_id, { ...text, waiting: await waitingFor(tx, device) });
    }
  }

  async #wasSentRecently(tx: Tx, device: { num: number }, tag: string): Promise<boolean> {
    const before = await findDeviceMessageByTag(tx, device.num, tag);
    // The absolute difference, so that a message of the time when the clock was ahead does not silence later ones.
    const ago_ms = Math.abs(this.#clock.now() - (before?.sent_at ?? 0));
    return before?.state === 'sent' && ago_ms < limits.push_again_ms;
  }

  async #put(
    tx: Tx,
    { num, id }: Pick<SubscriptionRow, 'num' | 'id'>,
    fact_id: number,
    message: PushMessage,
  ): Promise<void> {
    const now = this.#clock.now();
    const before = await findDeviceMessageByTag(tx, num, message.tag);
    const sent_at = before?.sent_at ?? (before !== undefined && before.attempts > 0 ? now : null);
    const message_num = await putMessage(tx, {
      ...{ subscription_num: num, tag: message.tag, fact_id, message: JSON.stringify(message) },
      ...{ state: 'pending', attempts: 0, sent_at },
      ...{ created_at: now, expires_at: now + limits.push_message_ms },
    });
    await trimMessages(tx, num, limits.push_messages_per_subscription);
    // A push service is not a node; the lane is the device's, so that its messages stay in order.
    await this.#outbox.enqueue(tx, MAIN_NODE, id, 'push', { message_num });
  }
}
