/**
 * Mail between the actors of a run: one method to send (`post`), and the operations of receivers. All state is in
 * rows and facts, except for the callers that wait for mail.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import { type Page, type PageRequest, page, readCursor } from '../../core/page.ts';
import { decide } from '../../core/policy.ts';
import { isFault, problems } from '../../core/problem.ts';
import type { Announcer } from '../../events/announcer.ts';
import type { IdempotencyKeys } from '../../server/idempotency.ts';
import { requireLiveToken } from '../../store/live-tokens.ts';
import type { Reader, Store, Tx } from '../../store/store.ts';
import type { Facts } from '../../work/facts.ts';
import type { Timers } from '../../work/timers.ts';
import type { Caller } from '../accounts/rules.ts';
import { memberActorId } from '../actors/rules/actor.ts';
import { BY_OPERATOR } from '../audit/rules/audit.ts';
import type { Audit } from '../audit/service.ts';
import { requireRun } from '../runs/access.ts';
import type { RunPublisher } from '../runs/publisher.ts';
import { parseSpec, type RunRow, runOfNum } from '../runs/queries/runs.ts';
import { isRunOver } from '../runs/rules/run.ts';
import type { Commander } from '../runs/run-commands.ts';
import { type Member, memberKind } from '../teams/rules/team.ts';
import { actorOfRun, resolveActingActor, resolveInRun } from './addresses.ts';
import { limits } from './limits.ts';
import { mailText, unacknowledgedText } from './messages.ts';
import {
  findMail,
  findMailOfKey,
  hasMail,
  type InboxFilter,
  insertMail,
  lastWorkAt,
  listInbox,
  listMailOfRun,
  type MailRow,
  mailOfPrompt,
  mailToMention,
  maxHopsReceived,
  staleMail,
  toMail,
  toMailHead,
  updateMail,
} from './queries/mail.ts';
import type { Mail, MailHead } from './rules/mail.ts';
import { type Waiter, Waiters } from './waiters.ts';

export interface MailboxOptions {
  store: Store;
  clock: Clock;
  facts: Facts;
  timers: Timers;
  audit: Audit;
  idempotency: Pick<IdempotencyKeys, 'storeWith'>;
  publisher: Pick<RunPublisher, 'addAttention' | 'dropAttention' | 'publishMail'>;
  announcer: Pick<Announcer, 'add'>;
  /** Whether agents can call the plane. */
  actor_calls: boolean;
}

/** A message to send. Both actors are full ids; the caller has already checked that the sender may send as this actor. */
export interface NewMail {
  run: RunRow;
  from_actor_id: string;
  to_actor_id: string;
  payload: Record<string, unknown>;
  /** Absent: derived from the sender, and from the messages it was notified of. */
  hops?: number;
  /** The attempt of the run to which the sender belongs; absent: the current one. */
  run_attempt?: number;
  message_num?: number | null;
  /** Belongs to the sender for as long as the message exists; see `post`. */
  idempotency_key?: string | null;
  /** Who sends it, for the audit log; absent: not recorded there. */
  by?: Commander | undefined;
}

export interface SendMail {
  run_id: string;
  from_actor_id: string;
  to_actor_id: string;
  payload: Record<string, unknown>;
}

export interface InboxRequest extends Pick<InboxFilter, 'status'> {
  run_id?: string | undefined;
  /** 1 to `limits.page_items_max`. */
  limit?: number | undefined;
  /** Seconds to wait while there is no new mail. */
  wait?: number | undefined;
}

export class Mailbox {
  readonly #options: MailboxOptions;
  readonly #waiters: Waiters;

  constructor(options: MailboxOptions) {
    this.#options = options;
    this.#waiters = new Waiters(options.store.wakes);
  }

  // --- people ---------------------------------------------------------------------------------------------------------

  /**
   * Sends a message as an actor that the caller may act as. Throws like `post`. The response is stored with the message, for a
   * day, so a repeated request does not send it again.
   */
  send(caller: Caller, sent: SendMail, idempotency_key: string | null): Promise<Mail> {
    const { store, idempotency } = this.#options;
    return store.write(async (tx) => {
      const { team, run } = await requireRun(tx, caller, 'team.work', sent.run_id);
      const { actor_id } = await resolveInRun(tx, caller, team, run, sent.from_actor_id);
      const to_actor_id = (await actorOfRun(tx, team, run, sent.to_actor_id)).actor_id;
      const { payload } = sent;
      const { user_id, ip } = caller;
      const row = await this.post(tx, {
        run,
        from_actor_id: actor_id,
        to_actor_id,
        payload,
        by: { user_id, ip, actor_id },
      });
      const mail = toMail(row);
      if (idempotency_key !== null) {
        const answer = { status: 201, location: `/api/actor/mailbox/${mail.id}`, body: mail };
        await idempotency.storeWith(tx, caller, idempotency_key, answer);
      }
      return mail;
    });
  }

  /** Oldest first. Listing by its owner marks mail as delivered, unless the token is read-only. */
  async inbox(caller: Caller, actor_id: string, request: InboxRequest, signal: AbortSignal): Promise<Mail[]> {
    const { store } = this.#options;
    const open = (reader: Reader) => openInbox(reader, caller, actor_id, request);
    let inbox = await store.read(open);
    if (request.wait !== undefined) {
      await this.awaitNew(caller, inbox.filter, request.wait * 1000, signal);
      // The caller may have lost access in the meantime.
      inbox = await store.read(async (reader) => {
        await requireLiveToken(reader, caller);
        return open(reader);
      });
    }
    return inbox.takes ? this.take(inbox.filter) : this.#list(inbox.filter);
  }

  /** Throws `message not found`, also for mail that the caller may not see. */
  get(caller: Caller, mail_num: number): Promise<Mail> {
    return this.#options.store.read(async (reader) => {
      const row = await requireMail(reader, mail_num);
      await visible(() => requireRun(reader, caller, 'team.read', row.run_id));
      return toMail(row);
    });
  }

  /** Acknowledges mail as its receiver. Idempotent; see `acknowledge`. */
  ack(caller: Caller, mail_num: number): Promise<Mail> {
    return this.#options.store.write(async (tx) => {
      const row = await requireMail(tx, mail_num);
      const { run } = await visible(async () => {
        const { team, run } = await requireRun(tx, caller, 'team.work', row.run_id);
        return resolveInRun(tx, caller, team, run, row.to_actor_id);
      });
      return toMail(await this.#acknowledge(tx, row, run));
    });
  }

  /** All mail of a run, including dead letters, oldest first, without payloads. */
  ofRun(caller: Caller, run_id: string, { limit, cursor }: PageRequest): Promise<Page<MailHead>> {
    const [after = 0] = readCursor(cursor, 'number') ?? [];
    return this.#options.store.read(async (reader) => {
      const { run } = await requireRun(reader, caller, 'team.read', run_id);
      const rows = await listMailOfRun(reader, run.num, after, limit === undefined ? undefined : limit + 1);
      return page(rows, limit ?? rows.length, toMailHead, (row) => [row.num]);
    });
  }

  // --- actors ---------------------------------------------------------------------------------------------------------

  /**
   * Puts a message into its receiver's inbox, or stores it as a dead letter. Repeating the same sender, key and
   * message returns the existing row. Throws `payload is too large`, `too many mailbox messages in the run`, and
   * `idempotency key reused with a different request`.
   */
  async post(tx: Tx, mail: NewMail): Promise<MailRow> {
    const { run, from_actor_id, to_actor_id } = mail;
    const { message_num = null, idempotency_key = null, run_attempt = run.attempt } = mail;
    const payload = JSON.stringify(mail.payload);
    if (Buffer.byteLength(payload) > limits.mail_payload_bytes_max) throw problems.payloadTooLarge();
    const request_hash = idempotency_key === null ? null : hashParts([run.id, to_actor_id, payload]);
    if (idempotency_key !== null) {
      const before = await findMailOfKey(tx, from_actor_id, idempotency_key);
      if (before && !timingSafeEqual(before.request_hash!, request_hash!)) throw problems.idempotencyReused();
      if (before) return before;
    }
    if (await hasMail(tx, run.num, limits.mails_per_run_max)) throw problems.tooMuchMail();

    const hops = mail.hops ?? (await this.hopsOf(tx, run, from_actor_id));
    const reason = deadLetterReason(run, run_attempt, hops);
    const values = {
      team_num: run.team_num,
      run_num: run.num,
      run_attempt,
      from_actor_id,
      to_actor_id,
      payload,
      status: reason === null ? ('pending' as const) : ('dead_letter' as const),
      reason,
      idempotency_key,
      request_hash,
      message_num,
      hops,
      prompt_id: null,
      reminded: 0,
      created_at: this.#options.clock.now(),
      delivered_at: null,
      acknowledged_at: null,
    };
    const row: MailRow = { num: await insertMail(tx, values), run_id: run.id, ...values };
    await this.#publish(tx, row);
    if (mail.by) await this.#auditSent(tx, mail.by, run, row);
    if (hops > limits.mail_hops_max) await this.addAttention(tx, run, hopLimitText(row));
    if (reason !== null) return row;
    const receiver = findMember(run, to_actor_id);
    if (receiver && memberKind(receiver) === 'acp') {
      const { num: mail_num, run_num } = row;
      await this.#options.facts.record(tx, 'mail_sent', run.id, { mail_num, run_num, to_actor_id });
    }
    tx.wake('mail', to_actor_id);
    return row;
  }

  /** An agent continues the chain of the messages it was notified of; every other sender starts a chain. */
  async hopsOf(reader: Reader, run: RunRow, from_actor_id: string): Promise<number> {
    const sender = findMember(run, from_actor_id);
    if (!sender?.agent) return 0;
    const hops = await maxHopsReceived(
      reader,
      run,
      from_actor_id,
      await lastWorkAt(reader, run, sender.member_id),
    );
    return hops === null ? 0 : hops + 1;
  }

  /** Lists an inbox for its owner and marks pending mail as delivered. */
  async take(filter: InboxFilter): Promise<Mail[]> {
    const found = await this.#list(filter);
    if (!found.some(({ status }) => status === 'pending')) return found;
    return this.#options.store.write(async (tx) => {
      const taken: Mail[] = [];
      for (const row of await listInbox(tx, filter)) {
        taken.push(toMail(row.status === 'pending' ? await this.deliver(tx, row) : row));
      }
      return taken;
    });
  }

  /** Resolves when the actor has mail of which it was not notified, after `wait_ms`, or when the signal aborts. */
  awaitNew(waiter: Waiter, filter: InboxFilter, wait_ms: number, signal?: AbortSignal): Promise<void> {
    const { store } = this.#options;
    const isThere = () =>
      store.read(
        async (reader) => (await listInbox(reader, { ...filter, status: 'pending', limit: 1 })).length > 0,
      );
    return this.#waiters.wait(waiter, filter.to_actor_id, isThere, wait_ms, signal);
  }

  /**
   * Idempotent; does not change a dead letter. Throws `message not found` for mail of other actors. `run_num` null:
   * of any run.
   */
  async acknowledge(
    tx: Tx,
    mail_num: number,
    { actor_id, run_num }: { actor_id: string; run_num: number | null },
  ): Promise<MailRow> {
    const row = await requireMail(tx, mail_num);
    if (row.to_actor_id !== actor_id || (run_num ?? row.run_num) !== row.run_num)
      throw problems.messageNotFound();
    return this.#acknowledge(tx, row, (await runOfNum(tx, row.run_num))!);
  }

  async #acknowledge(tx: Tx, row: MailRow, run: RunRow): Promise<MailRow> {
    if (row.status === 'acknowledged' || row.status === 'dead_letter') return row;
    const now = this.#options.clock.now();
    const { delivered_at } = row;
    const acknowledged = {
      status: 'acknowledged',
      delivered_at: delivered_at ?? now,
      acknowledged_at: now,
    } as const;
    await this.#options.timers.clear(tx, 'mail_unacknowledged', String(row.num));
    const overdue = unacknowledgedText(row);
    await this.#options.publisher.dropAttention(tx, run, (reason) => reason === overdue);
    return this.#change(tx, row, acknowledged);
  }

  /**
   * The receiver was notified of a message. An agent has to acknowledge it in time. If agents cannot call the plane, the
   * notification counts as the acknowledgement.
   */
  async deliver(tx: Tx, row: MailRow): Promise<MailRow> {
    const now = this.#options.clock.now();
    const run = (await runOfNum(tx, row.run_num))!;
    if (findMember(run, row.to_actor_id)?.agent) {
      if (!this.#options.actor_calls) return this.#acknowledge(tx, row, run);
      const due_at = now + limits.mail_unacknowledged_ms;
      await this.#options.timers.set(tx, 'mail_unacknowledged', String(row.num), due_at, {});
    }
    return this.#change(tx, row, { status: 'delivered', delivered_at: now });
  }

  /**
   * Text that names an actor's mail, for a prompt of any purpose; null if none exists. New mail is delivered once
   * the prompt is sent; mail that was named before and is still unacknowledged is named once more.
   */
  async pendingMail(tx: Tx, run: RunRow, actor_id: string, prompt_id: string): Promise<string | null> {
    const rows = await mailToMention(tx, run, actor_id, limits.mail_named_max);
    for (const { num, status } of rows) {
      await updateMail(tx, num, { prompt_id, ...(status === 'delivered' && { reminded: 1 }) });
    }
    return rows.length === 0 ? null : mailText(rows, this.#options.actor_calls);
  }

  /** A prompt that may name mail was sent to an agent. */
  async promptSent(tx: Tx, run: RunRow, actor_id: string, prompt_id: string): Promise<void> {
    for (const row of await mailOfPrompt(tx, run, actor_id, prompt_id)) await this.deliver(tx, row);
  }

  /** A person should look at the mail of the run. */
  addAttention(tx: Tx, run: RunRow, reason: string): Promise<void> {
    return this.#options.publisher.addAttention(tx, run, reason);
  }

  /**
   * An agent was notified, and has not acknowledged the mail for too long. If agents can no longer call the plane, the
   * notification counts as the acknowledgement.
   */
  async overdue(tx: Tx, mail_num: number): Promise<void> {
    const row = await findMail(tx, mail_num);
    const run = row && (await runOfNum(tx, row.run_num));
    if (!run || row.status !== 'delivered' || isRunOver(run)) return;
    if (!this.#options.actor_calls) await this.#acknowledge(tx, row, run);
    else await this.addAttention(tx, run, unacknowledgedText(row));
  }

  /** Turns unacknowledged mail of earlier attempts of the run into dead letters. */
  async endStaleMail(tx: Tx, run: RunRow): Promise<void> {
    for (const row of await staleMail(tx, run)) {
      await this.#options.timers.clear(tx, 'mail_unacknowledged', String(row.num));
      await this.#change(tx, row, { status: 'dead_letter', reason: attemptOver(row.run_attempt) });
    }
  }

  async #auditSent(
    tx: Tx,
    { user_id, ip, operator }: Commander,
    { id: run_id, team_id, number }: RunRow,
    { num: message_id, from_actor_id, to_actor_id }: MailRow,
  ): Promise<void> {
    const details = { message_id, run_id, team_id, number, from_actor_id, to_actor_id };
    await this.#options.audit.record(tx, {
      event: 'mail_sent',
      user_id,
      ip,
      details: { ...details, ...(operator && BY_OPERATOR) },
    });
  }

  #list(filter: InboxFilter): Promise<Mail[]> {
    return this.#options.store.read(async (reader) => (await listInbox(reader, filter)).map(toMail));
  }

  async #change(tx: Tx, row: MailRow, changes: Partial<MailRow>): Promise<MailRow> {
    await updateMail(tx, row.num, changes);
    const changed = { ...row, ...changes };
    await this.#publish(tx, changed);
    return changed;
  }

  async #publish(tx: Tx, row: MailRow): Promise<void> {
    const { publisher, announcer } = this.#options;
    await publisher.publishMail(tx, row.run_num, toMailHead(row));
    tx.afterCommit(() => announcer.add(row.num));
  }
}

/** What the caller lists; `takes`: listing it counts as delivery. Throws if the caller may not see the inbox. */
async function openInbox(
  reader: Reader,
  caller: Caller,
  actor_id: string,
  { run_id, status, limit = limits.mail_inbox_items }: InboxRequest,
): Promise<{ filter: InboxFilter; takes: boolean }> {
  const { run, own, ...as } = await resolveActingActor(reader, caller, 'team.read', actor_id, run_id);
  const filter = { to_actor_id: as.actor_id, run_num: run?.num, view: as.view, status, limit };
  return { filter, takes: own && decide(caller, 'mailbox.use') === 'allow' };
}

async function requireMail(reader: Reader, mail_num: number): Promise<MailRow> {
  const row = Number.isSafeInteger(mail_num) ? await findMail(reader, mail_num) : undefined;
  if (!row) throw problems.messageNotFound();
  return row;
}

/** For callers without access, the mail does not exist. */
async function visible<T>(find: () => Promise<T>): Promise<T> {
  try {
    return await find();
  } catch (error) {
    throw isFault(error) ? error : problems.messageNotFound();
  }
}

function findMember(run: RunRow, actor_id: string): Member | undefined {
  return parseSpec(run).members.find(({ member_id }) => memberActorId(member_id, run.team_id) === actor_id);
}

function deadLetterReason(run: RunRow, run_attempt: number, hops: number): string | null {
  if (run_attempt !== run.attempt) return attemptOver(run_attempt);
  if (isRunOver(run)) return `run is ${run.status}`;
  return hops > limits.mail_hops_max ? 'hop budget spent' : null;
}

function attemptOver(run_attempt: number): string {
  return `attempt ${run_attempt} of the run is over`;
}

function hopLimitText({ num, from_actor_id, to_actor_id }: MailRow): string {
  return `message ${num} from ${from_actor_id} to ${to_actor_id} was not delivered: hop budget spent`;
}

function hashParts(parts: string[]): Buffer {
  return createHash('sha256').update(JSON.stringify(parts)).digest();
}
