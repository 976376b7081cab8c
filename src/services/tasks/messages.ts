/**
 * Conversations of tasks. A message is a row that stays, and mail for each of its receivers in the task's open run; without
 * one it waits, and the next run of the task that goes on delivers it. Messages reach a run in the order in which they were said.
 */
import { stringsIn } from '../../acp/reading.ts';
import type { Clock } from '../../base/clock.ts';
import { limits } from '../../base/limits.ts';
import type { Logger } from '../../base/log.ts';
import { humanActorId } from '../../domain/actor.ts';
import {
  type Conversation,
  type Message,
  type MessageOrder,
  type MessageRoute,
  mustBeRouted,
  payloadOf,
} from '../../domain/message.ts';
import { Problem, problems } from '../../domain/problem.ts';
import { isRunOver } from '../../domain/run.ts';
import type { TeamSpec } from '../../domain/team.ts';
import type { Caller } from '../../domain/user.ts';
import type { Feed } from '../../events/feed.ts';
import { followRows } from '../../events/follow-rows.ts';
import type { Position } from '../../events/position.ts';
import type { FactHandlers } from '../../flow/facts.ts';
import { ftsQuery } from '../../store/fts.ts';
import {
  countMessages,
  findMessage,
  insertMessage,
  listMessages,
  type MessageRow,
  markDelivered,
  toMessage,
  waitingMessages,
} from '../../store/messages.ts';
import { findRun, type RunRow } from '../../store/runs.ts';
import type { Reader, Store, Tx } from '../../store/store.ts';
import { openRunOf, type TaskRow, taskOfNum, toTask } from '../../store/tasks.ts';
import { type TeamRow, teamOfNum } from '../../store/teams.ts';
import type { Audit } from '../audit.ts';
import type { IdempotencyKeys } from '../idempotency.ts';
import { type Page, type PageRequest, page, readCursor } from '../page.ts';
import { type Cast, castMember, resolveActor } from '../teams/cast.ts';
import { mustFindTask, type TaskRef, type TeamTask } from './find.ts';
import { taskPath } from './tasks.ts';

/** A message on its way to one of its receivers. */
export interface Post {
  run: RunRow;
  from_actor_id: string;
  to_actor_id: string;
  payload: Record<string, unknown>;
  message_num: number;
}

export interface MessagesOptions {
  store: Store;
  clock: Clock;
  logger: Logger;
  feed: Feed;
  audit: Audit;
  idempotency: Pick<IdempotencyKeys, 'keepWith'>;
  post(tx: Tx, mail: Post): void;
  heartbeat_ms?: number;
}

export interface Say {
  route: MessageRoute;
  to_actor_id?: string | undefined;
  /** One of `text` and `payload`. */
  text?: string | undefined;
  payload?: Record<string, unknown> | undefined;
  reply_to?: number | undefined;
}

export class Messages {
  readonly #options: MessagesOptions;
  /** Followers of conversations look again. */
  readonly #listeners = new Set<(task_num: number) => void>();

  constructor(options: MessagesOptions) {
    this.#options = options;
  }

  // --- reading --------------------------------------------------------------------------------------------------------

  /** Oldest first unless asked otherwise. `q`: words, and phrases in quotation marks; all must occur. `thread`: any message of it. */
  list(
    caller: Caller,
    ref: TaskRef,
    filter: {
      q?: string | undefined;
      thread?: number | undefined;
      order?: MessageOrder | undefined;
    },
    request: PageRequest,
  ): Promise<Page<Message>> {
    const limit = request.limit ?? limits.page_items_default;
    const paged = request.limit !== undefined || request.cursor !== undefined;
    const last_num = readCursor(request.cursor, 'number')?.[0];
    const place =
      filter.order === 'newest'
        ? { before_num: last_num ?? Number.POSITIVE_INFINITY }
        : { after_num: last_num };
    const words = filter.q === undefined ? undefined : ftsQuery(filter.q);
    return this.#options.store.read((reader) => {
      const { task } = mustFindTask(reader, caller, 'team.read', ref);
      const thread = threadOf(reader, task, filter.thread);
      if (words === null || thread === null) return { items: [] };
      const rows = listMessages(reader, {
        task_num: task.num,
        words,
        thread,
        ...place,
        limit: paged ? limit + 1 : undefined,
      });
      return page(rows, paged ? limit : rows.length, toMessage, (row) => [row.num]);
    });
  }

  get(caller: Caller, ref: TaskRef, message_id: string): Promise<Message> {
    return this.#options.store.read((reader) => {
      const { task } = mustFindTask(reader, caller, 'team.read', ref);
      const num = /^\d{1,15}$/.test(message_id) ? Number(message_id) : 0;
      const row = findMessage(reader, task.num, num);
      if (!row) throw problems.messageNotFound();
      return toMessage(row);
    });
  }

  conversation(caller: Caller, team_id: string, conversation_id: string): Promise<Conversation> {
    return this.#options.store.read((reader) => {
      const { task } = mustFindTask(reader, caller, 'team.read', { team_id, conversation_id });
      const { title, created_at } = toTask(task);
      const { count: messages, last: last_message_id } = countMessages(reader, task.num);
      return { id: conversation_id, team_id, task_id: task.id, title, messages, last_message_id, created_at };
    });
  }

  /** The task's number for `follow`. Throws the 404 of whatever the caller may not, or no longer, see. */
  mayRead(caller: Caller, ref: TaskRef): Promise<number> {
    return this.#options.store.read((reader) => mustFindTask(reader, caller, 'team.read', ref).task.num);
  }

  /** SSE frames of a conversation, numbered by message: those after `position`, then live. */
  follow(task_num: number, position: Position, signal: AbortSignal): AsyncGenerator<Buffer> {
    const { store, clock, heartbeat_ms } = this.#options;
    return followRows(
      {
        clock,
        ...(heartbeat_ms !== undefined && { heartbeat_ms }),
        head: () => store.read((reader) => countMessages(reader, task_num).last ?? 0),
        after: (after_num) =>
          store.read((reader) =>
            listMessages(reader, { task_num, after_num, limit: limits.follow_rows_per_read }).map((row) => ({
              id: row.num,
              type: 'message',
              ts_ms: row.created_at,
              record: JSON.stringify(toMessage(row)),
            })),
          ),
        onNew: (wake) => {
          const listener = (changed_num: number) => changed_num === task_num && wake();
          this.#listeners.add(listener);
          return () => this.#listeners.delete(listener);
        },
      },
      position,
      signal,
    );
  }

  // --- saying ---------------------------------------------------------------------------------------------------------

  /** As the human who calls. */
  send(
    caller: Caller,
    team_id: string,
    task_id: string,
    said: Say,
    idempotency_key: string | null,
  ): Promise<Message> {
    const { store, audit, idempotency } = this.#options;
    return store.write((tx) => {
      const found = mustFindTask(tx, caller, 'team.work', { team_id, task_id });
      const message = this.say(tx, found, humanActorId(caller.username), said);
      const { id: message_id, route, to_actor_id } = message;
      audit.record(tx, {
        event: 'message_sent',
        user_id: caller.user_id,
        ip: caller.ip,
        details: { team_id, task_id, message_id, route, to_actor_id },
      });
      if (idempotency_key !== null) {
        const answer = { status: 201, location: messagePath(message), body: message };
        idempotency.keepWith(tx, caller, idempotency_key, answer);
      }
      return message;
    });
  }

  /**
   * Puts what an actor says into the conversation, and delivers it where a run is open. Whether the actor may speak is for
   * the caller to know.
   */
  say(tx: Tx, { team, task }: TeamTask, from_actor_id: string, said: Say): Message {
    const run = openRunOf(tx, task.num);
    const cast = castOf(team, run);
    mustBeRouted(cast.spec, said.route, said.to_actor_id);
    const to_actor_id = addressee(tx, cast, said);
    const payload = payloadOf(said, limits.message_bytes_max);
    const thread = said.reply_to === undefined ? undefined : threadOf(tx, task, said.reply_to);
    if (thread === null) throw problems.replyElsewhere();
    if (countMessages(tx, task.num).count >= limits.task_messages_max) throw problems.tooManyMessages();
    // What was said before goes before.
    if (run) this.#deliverWaiting(tx, cast, task, run);
    const num = insertMessage(tx, {
      team_num: team.num,
      task_num: task.num,
      run_num: null,
      from_actor_id,
      route: said.route,
      to_actor_id,
      payload: JSON.stringify(payload),
      text: stringsIn(payload).join('\n'),
      reply_to: said.reply_to ?? null,
      thread: thread ?? null,
      created_at: this.#options.clock.now(),
    });
    if (run) this.#deliver(tx, cast, run, findMessage(tx, task.num, num)!);
    tx.afterCommit(() => {
      for (const listener of this.#listeners) listener(task.num);
    });
    return this.#publish(tx, team, task, num);
  }

  /** A run that begins or goes on gets what waits for one. */
  facts(): FactHandlers {
    return {
      run_changed: (tx, { payload }) => {
        const run = findRun(tx, payload.run_id);
        if (!run || isRunOver(run)) return;
        const team = teamOfNum(tx, run.team_num)!;
        this.#deliverWaiting(tx, castOf(team, run), taskOfNum(tx, run.task_num)!, run);
      },
    };
  }

  /** What names nobody of the run waits on. What is refused waits on too, with all that was said after it. */
  #deliverWaiting(tx: Tx, cast: Cast, task: TaskRow, run: RunRow): void {
    for (const row of waitingMessages(tx, task.num)) {
      try {
        if (this.#deliver(tx, cast, run, row)) this.#publish(tx, cast.team, task, row.num);
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        const { logger } = this.#options;
        logger.warn({ err: error, run_id: run.id, message_id: row.num }, 'a message could not be delivered');
        return;
      }
    }
  }

  /** False where the run has none of those whom the message is for. */
  #deliver(tx: Tx, cast: Cast, run: RunRow, row: MessageRow): boolean {
    const receivers = receiversOf(tx, cast, row);
    if (receivers === null) return false;
    const { num: message_num, from_actor_id } = row;
    const payload = JSON.parse(row.payload) as Record<string, unknown>;
    // Before the first is refused nothing happened; from then on the message is never said again.
    if (receivers.length === 0) markDelivered(tx, message_num, run.num);
    for (const to_actor_id of receivers) {
      this.#options.post(tx, { run, from_actor_id, to_actor_id, payload, message_num });
      markDelivered(tx, message_num, run.num);
    }
    return true;
  }

  #publish(tx: Tx, team: TeamRow, task: TaskRow, num: number): Message {
    const message = toMessage(findMessage(tx, task.num, num)!);
    this.#options.feed.append(tx, 'message', team.created_by, { ...message }, team.num);
    return message;
  }
}

/** Where a message is found. */
export function messagePath({ team_id, task_id, id }: Pick<Message, 'team_id' | 'task_id' | 'id'>): string {
  return `${taskPath({ team_id, id: task_id })}/messages/${id}`;
}

/** Of a run that is open, as it was when that began; else as the team is now. */
function castOf(team: TeamRow, run: RunRow | undefined): Cast {
  const spec = JSON.parse(run?.spec ?? team.spec) as TeamSpec;
  return { team, spec, user_id: run?.created_by ?? team.created_by };
}

/** The actor that a message names; null for a broadcast. */
function addressee(reader: Reader, cast: Cast, { route, to_actor_id }: Say): string | null {
  if (route === 'broadcast') return null;
  return resolveActor(reader, cast, route === 'to_leader' ? cast.spec.leader_member_id! : to_actor_id!)
    .actor_id;
}

/** Null where the cast has nobody whom the message is for. */
function receiversOf(reader: Reader, cast: Cast, row: MessageRow): string[] | null {
  if (row.route === 'broadcast') {
    const all = cast.spec.members.map((member) => castMember(cast, member).actor_id);
    return all.filter((actor_id) => actor_id !== row.from_actor_id);
  }
  const asked = row.route === 'to_leader' ? cast.spec.leader_member_id : row.to_actor_id;
  if (asked === null) return null;
  try {
    return [resolveActor(reader, cast, asked).actor_id];
  } catch (error) {
    if (error instanceof Problem) return null;
    throw error;
  }
}

/** The first message of the thread that a message is in; null where the conversation has no such message. */
function threadOf(reader: Reader, task: TaskRow, num: number | undefined): number | null | undefined {
  if (num === undefined) return undefined;
  const row = findMessage(reader, task.num, num);
  return row ? (row.thread ?? row.num) : null;
}
