/**
 * Mail between the actors of a run: one way in (`post`), and what receivers do with it. Rows and facts say everything; that
 * somebody waits for mail is the only thing that lives in memory.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import { limits } from '../../base/limits.ts';
import { actorIdOf } from '../../domain/actor.ts';
import type { Mail, MailHead } from '../../domain/mail.ts';
import { decide } from '../../domain/policy.ts';
import { Problem, problems } from '../../domain/problem.ts';
import { isRunOver } from '../../domain/run.ts';
import { type Member, memberKind } from '../../domain/team.ts';
import type { Caller } from '../../domain/user.ts';
import type { Facts } from '../../flow/facts.ts';
import {
  countMail,
  findMail,
  findMailOfKey,
  hopsHeard,
  type InboxFilter,
  insertMail,
  listInbox,
  listMailOfRun,
  type MailRow,
  mailOfPrompt,
  mailToName,
  staleMail,
  taskedAt,
  toMail,
  toMailHead,
  updateMail,
} from '../../store/mail.ts';
import { type RunRow, runOfNum, specOf } from '../../store/runs.ts';
import type { Reader, Store, Tx } from '../../store/store.ts';
import type { Timers } from '../../timers/timers.ts';
import type { Audit } from '../audit.ts';
import { type Page, type PageRequest, page, readCursor } from '../page.ts';
import { mustFindRun } from '../teams/access.ts';
import type { Progress } from '../teams/progress.ts';
import { actorOfRun, mustActAs } from './addresses.ts';
import { Waiters } from './waiters.ts';
import { mailWords, unacknowledgedWords } from './words.ts';

export interface MailboxOptions {
  store: Store;
  clock: Clock;
  facts: Facts;
  timers: Timers;
  audit: Audit;
  progress: Pick<Progress, 'wantEye' | 'tellMail'>;
}

/** A message on its way in. Both actors are full ids; who may send as whom was asked before. */
export interface Letter {
  run: RunRow;
  from_actor_id: string;
  to_actor_id: string;
  payload: Record<string, unknown>;
  /** Absent: what follows from the sender, and from what it was told. */
  hops?: number;
  /** The attempt of the run that the sender belongs to; absent: the present one. */
  run_attempt?: number;
  message_num?: number | null;
  idempotency_key?: string | null;
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
  /** Seconds to wait while there is nothing new. */
  wait?: number | undefined;
}

export class Mailbox {
  readonly #options: MailboxOptions;
  readonly #waiters = new Waiters();

  constructor(options: MailboxOptions) {
    this.#options = options;
  }

  // --- people ---------------------------------------------------------------------------------------------------------

  send(caller: Caller, sent: SendMail, idempotency_key: string | null): Promise<Mail> {
    return this.#options.store.write((tx) => {
      const { run, actor_id } = mustActAs(tx, caller, 'team.work', sent.from_actor_id, sent.run_id);
      const { team } = mustFindRun(tx, caller, 'team.work', sent.run_id);
      const to_actor_id = actorOfRun(tx, team, run!, sent.to_actor_id).actor_id;
      const { payload } = sent;
      const row = this.post(tx, {
        run: run!,
        from_actor_id: actor_id,
        to_actor_id,
        payload,
        idempotency_key,
      });
      const { user_id, ip } = caller;
      const details = { message_id: row.num, run_id: row.run_id, from_actor_id: actor_id, to_actor_id };
      this.#options.audit.record(tx, { event: 'mail_sent', user_id, ip, details });
      return toMail(row);
    });
  }

  /** Oldest first. What its owner lists is delivered, unless the token may only look. */
  async inbox(caller: Caller, actor_id: string, request: InboxRequest, signal: AbortSignal): Promise<Mail[]> {
    const { run_id, status, limit = limits.mail_inbox_items, wait } = request;
    const { run, own, ...as } = await this.#options.store.read((reader) =>
      mustActAs(reader, caller, 'team.read', actor_id, run_id),
    );
    const filter = { to_actor_id: as.actor_id, run_num: run?.num, view: as.view, status, limit };
    if (wait !== undefined) await this.awaitNew(filter, wait * 1000, signal);
    return own && decide(caller, 'mailbox.use') === 'allow' ? this.take(filter) : this.#list(filter);
  }

  get(caller: Caller, mail_num: number): Promise<Mail> {
    return this.#options.store.read((reader) => {
      const row = mustFindMail(reader, mail_num);
      visible(() => mustFindRun(reader, caller, 'team.read', row.run_id));
      return toMail(row);
    });
  }

  ack(caller: Caller, mail_num: number): Promise<Mail> {
    return this.#options.store.write((tx) => {
      const row = mustFindMail(tx, mail_num);
      visible(() => mustActAs(tx, caller, 'team.work', row.to_actor_id, row.run_id));
      return toMail(this.acknowledge(tx, mail_num, { actor_id: row.to_actor_id, run_num: null }));
    });
  }

  /** All mail of a run, dead letters too, oldest first, without what it says. */
  ofRun(caller: Caller, run_id: string, { limit, cursor }: PageRequest): Promise<Page<MailHead>> {
    const [after = 0] = readCursor(cursor, 'number') ?? [];
    return this.#options.store.read((reader) => {
      const { run } = mustFindRun(reader, caller, 'team.read', run_id);
      const rows = listMailOfRun(reader, run.num, after, limit === undefined ? undefined : limit + 1);
      return page(rows, limit ?? rows.length, toMailHead, (row) => [row.num]);
    });
  }

  // --- actors ---------------------------------------------------------------------------------------------------------

  /**
   * Puts a message into its receiver's inbox, or keeps it as a dead letter. The same sender, key and message again answer
   * the row of before. Throws `payload is too large`, `too many mailbox messages in the run`, and
   * `idempotency key reused with a different request`.
   */
  post(tx: Tx, letter: Letter): MailRow {
    const { run, from_actor_id, to_actor_id } = letter;
    const { message_num = null, idempotency_key = null, run_attempt = run.attempt } = letter;
    const payload = JSON.stringify(letter.payload);
    if (Buffer.byteLength(payload) > limits.mail_payload_bytes_max) throw problems.payloadTooLarge();
    const request_hash = idempotency_key === null ? null : hashOf([run.id, to_actor_id, payload]);
    if (idempotency_key !== null) {
      const before = findMailOfKey(tx, from_actor_id, idempotency_key);
      if (before && !timingSafeEqual(before.request_hash!, request_hash!)) throw problems.idempotencyReused();
      if (before) return before;
    }
    if (countMail(tx, run.num) >= limits.mails_per_run_max) throw problems.tooMuchMail();

    const hops = letter.hops ?? this.hopsOf(tx, run, from_actor_id);
    const reason = deadBecause(run, run_attempt, hops);
    const num = insertMail(tx, {
      team_num: run.team_num,
      run_num: run.num,
      run_attempt,
      from_actor_id,
      to_actor_id,
      payload,
      status: reason === null ? 'pending' : 'dead_letter',
      reason,
      idempotency_key,
      request_hash,
      message_num,
      hops,
      reminded: 0,
      created_at: this.#options.clock.now(),
    });
    const row = findMail(tx, num)!;
    this.#options.progress.tellMail(tx, run.num, toMailHead(row));
    if (hops > limits.mail_hops_max) this.wantEye(tx, run, budgetWords(row));
    if (reason !== null) return row;
    const receiver = memberOf(run, to_actor_id);
    if (receiver && memberKind(receiver) === 'acp') {
      this.#options.facts.record(tx, 'mail_sent', run.id, { mail_num: num, run_num: run.num, to_actor_id });
    }
    tx.afterCommit(() => this.#waiters.wake(to_actor_id));
    return row;
  }

  /** An agent goes on with the chain of what it was told; with everybody else one begins. */
  hopsOf(reader: Reader, run: RunRow, from_actor_id: string): number {
    const sender = memberOf(run, from_actor_id);
    if (!sender?.agent) return 0;
    const heard = hopsHeard(reader, run, from_actor_id, taskedAt(reader, run, sender.member_id));
    return heard === null ? 0 : heard + 1;
  }

  /** Lists an inbox for its owner: what was pending is delivered. */
  async take(filter: InboxFilter): Promise<Mail[]> {
    const found = await this.#list(filter);
    if (!found.some(({ status }) => status === 'pending')) return found;
    return this.#options.store.write((tx) =>
      listInbox(tx, filter).map((row) => toMail(row.status === 'pending' ? this.deliver(tx, row) : row)),
    );
  }

  /** Resolves when there is mail for the actor that it was not told of, after `wait_ms`, or at the signal. */
  awaitNew(filter: InboxFilter, wait_ms: number, signal: AbortSignal): Promise<void> {
    const { store } = this.#options;
    const isThere = () =>
      store.read((reader) => listInbox(reader, { ...filter, status: 'pending', limit: 1 }).length > 0);
    return this.#waiters.wait(filter.to_actor_id, isThere, wait_ms, signal);
  }

  /** Idempotent; a dead letter stays one. Throws `message not found` for another's. `run_num` null: of any run. */
  acknowledge(
    tx: Tx,
    mail_num: number,
    { actor_id, run_num }: { actor_id: string; run_num: number | null },
  ): MailRow {
    const row = mustFindMail(tx, mail_num);
    if (row.to_actor_id !== actor_id || (run_num ?? row.run_num) !== row.run_num)
      throw problems.messageNotFound();
    if (row.status === 'acknowledged' || row.status === 'dead_letter') return row;
    const now = this.#options.clock.now();
    const { delivered_at } = row;
    const acknowledged = {
      status: 'acknowledged',
      delivered_at: delivered_at ?? now,
      acknowledged_at: now,
    } as const;
    this.#options.timers.clear(tx, 'mail_unacknowledged', String(mail_num));
    const run = runOfNum(tx, row.run_num)!;
    if (run.attention === unacknowledgedWords(row)) this.wantEye(tx, run, null);
    return this.#change(tx, row, acknowledged);
  }

  /** The receiver was told of a message. */
  deliver(tx: Tx, row: MailRow): MailRow {
    return this.#change(tx, row, { status: 'delivered', delivered_at: this.#options.clock.now() });
  }

  /**
   * Words that name an actor's mail in a prompt of the service's, whatever that is for; null: there is none. What is new is
   * delivered once the prompt is sent; what was told before and is still there is named once more.
   */
  pendingWords(tx: Tx, run: RunRow, actor_id: string, prompt_id: string): string | null {
    const rows = mailToName(tx, run, actor_id, limits.mail_named_max);
    for (const { num, status } of rows) {
      updateMail(tx, num, { prompt_id, ...(status === 'delivered' && { reminded: 1 }) });
    }
    return rows.length === 0 ? null : mailWords(rows);
  }

  /** A prompt that may name mail was sent to an agent. */
  told(tx: Tx, run: RunRow, actor_id: string, prompt_id: string): void {
    const due_at = this.#options.clock.now() + limits.mail_unacknowledged_ms;
    for (const row of mailOfPrompt(tx, run, actor_id, prompt_id)) {
      this.deliver(tx, row);
      this.#options.timers.set(tx, 'mail_unacknowledged', String(row.num), due_at, {});
    }
  }

  /** Something about the mail of the run wants a human's eye; null: it no longer does. */
  wantEye(tx: Tx, run: RunRow, attention: string | null): void {
    this.#options.progress.wantEye(tx, run, attention);
  }

  /** An agent was told, and has not acknowledged for too long. */
  overdue(tx: Tx, mail_num: number): void {
    const row = findMail(tx, mail_num);
    const run = row && runOfNum(tx, row.run_num);
    if (!run || row.status !== 'delivered' || isRunOver(run)) return;
    this.wantEye(tx, run, unacknowledgedWords(row));
  }

  /** What attempts of a run before its present one left. */
  bury(tx: Tx, run: RunRow): void {
    for (const row of staleMail(tx, run)) {
      this.#options.timers.clear(tx, 'mail_unacknowledged', String(row.num));
      this.#change(tx, row, { status: 'dead_letter', reason: attemptOver(row.run_attempt) });
    }
  }

  #list(filter: InboxFilter): Promise<Mail[]> {
    return this.#options.store.read((reader) => listInbox(reader, filter).map(toMail));
  }

  #change(tx: Tx, row: MailRow, changes: Partial<MailRow>): MailRow {
    updateMail(tx, row.num, changes);
    const changed = { ...row, ...changes };
    this.#options.progress.tellMail(tx, row.run_num, toMailHead(changed));
    return changed;
  }
}

function mustFindMail(reader: Reader, mail_num: number): MailRow {
  const row = Number.isSafeInteger(mail_num) ? findMail(reader, mail_num) : undefined;
  if (!row) throw problems.messageNotFound();
  return row;
}

/** What others may not know of is as good as none. */
function visible(find: () => unknown): void {
  try {
    find();
  } catch (error) {
    throw error instanceof Problem ? problems.messageNotFound() : error;
  }
}

function memberOf(run: RunRow, actor_id: string): Member | undefined {
  return specOf(run).members.find(({ member_id }) => actorIdOf(member_id, run.team_id) === actor_id);
}

function deadBecause(run: RunRow, run_attempt: number, hops: number): string | null {
  if (run_attempt !== run.attempt) return attemptOver(run_attempt);
  if (isRunOver(run)) return `run is ${run.status}`;
  return hops > limits.mail_hops_max ? 'hop budget spent' : null;
}

function attemptOver(run_attempt: number): string {
  return `attempt ${run_attempt} of the run is over`;
}

function budgetWords({ num, from_actor_id, to_actor_id }: MailRow): string {
  return `message ${num} from ${from_actor_id} to ${to_actor_id} was not delivered: hop budget spent`;
}

function hashOf(parts: string[]): Buffer {
  return createHash('sha256').update(JSON.stringify(parts)).digest();
}
