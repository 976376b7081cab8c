/**
 * Threads of tasks. A message is a permanent row, and mail for each of its receivers in the task's open run. Without
 * an open run it waits, and the task's next run to start or resume delivers it. Messages reach a run in the order in
 * which they were sent.
 */
import { collectStrings } from '../../acp/search-text.ts';
import type { Clock } from '../../base/clock.ts';
import { limits as sharedLimits } from '../../base/limits.ts';
import type { Logger } from '../../base/log.ts';
import { isPaged, type Page, type PageRequest, page, readCursor } from '../../core/page.ts';
import { Problem, problems } from '../../core/problem.ts';
import type { Feed } from '../../events/feed.ts';
import { followRows } from '../../events/follow-rows.ts';
import type { Position } from '../../events/position.ts';
import type { IdempotencyKeys } from '../../server/idempotency.ts';
import { searchPhrases } from '../../store/fts.ts';
import type { Reader, Store, Tx } from '../../store/store.ts';
import type { FactHandlers } from '../../work/facts.ts';
import type { Caller } from '../accounts/rules.ts';
import { humanActorId } from '../actors/rules/actor.ts';
import type { Audit } from '../audit/service.ts';
import { getParticipants } from '../runs/participants.ts';
import { findRun, type RunRow } from '../runs/queries/runs.ts';
import { findOpenRun } from '../runs/queries/tasks.ts';
import { isRunOver } from '../runs/rules/run.ts';
import { memberActor, type Participants, resolveActor } from '../teams/participants.ts';
import { type TeamRow, teamOfNum } from '../teams/queries.ts';
import { requireTask, type TaskRef, type TeamTask } from './find.ts';
import { limits } from './limits.ts';
import {
  countMessages,
  findMessage,
  insertMessage,
  listMessages,
  type MessageRow,
  markDelivered,
  toMessage,
  waitingMessages,
} from './queries/messages.ts';
import { type TaskRow, taskOfNum, toTask } from './queries/tasks.ts';
import {
  assertValidRoute,
  type Conversation,
  type Message,
  type MessageOrder,
  type MessageRoute,
  toPayload,
} from './rules/message.ts';
import { taskPath } from './service.ts';

/** A message for one of its receivers. */
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
  idempotency: Pick<IdempotencyKeys, 'storeWith'>;
  post(tx: Tx, mail: Post): Promise<unknown>;
  heartbeat_ms?: number;
}

export interface NewMessage {
  route: MessageRoute;
  to_actor_id?: string | null | undefined;
  /** Exactly one of `text` and `payload` is set. */
  text?: string | undefined;
  payload?: Record<string, unknown> | undefined;
  reply_to?: number | undefined;
}

export class Messages {
  readonly #options: MessagesOptions;

  constructor(options: MessagesOptions) {
    this.#options = options;
  }

  // --- reading --------------------------------------------------------------------------------------------------------

  /**
   * Oldest first by default. `q`: words, and phrases in quotation marks; all must occur. `thread`: any message of
   * that reply thread. Without a page request: at most `plain_list_items_max`, with a cursor for the rest.
   */
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
    const { page_items_default, plain_list_items_max } = sharedLimits;
    const paged = isPaged(request);
    const limit = request.limit ?? (paged ? page_items_default : plain_list_items_max);
    const last_num = readCursor(request.cursor, 'number')?.[0];
    const position =
      filter.order === 'newest'
        ? { before_num: last_num ?? Number.POSITIVE_INFINITY }
        : { after_num: last_num };
    const phrases = filter.q === undefined ? undefined : searchPhrases(filter.q);
    return this.#options.store.read(async (reader) => {
      const { task } = await requireTask(reader, caller, 'team.read', ref);
      const thread = await resolveThread(reader, task, filter.thread);
      if (phrases?.length === 0 || thread === null) return { items: [] };
      const rows = await listMessages(reader, {
        task_num: task.num,
        phrases,
        thread,
        ...position,
        limit: limit + 1,
      });
      return page(rows, limit, toMessage, (row) => [row.num]);
    });
  }

  /** Throws `message not found`, also for a malformed id. */
  get(caller: Caller, ref: TaskRef, message_id: string): Promise<Message> {
    return this.#options.store.read(async (reader) => {
      const { task } = await requireTask(reader, caller, 'team.read', ref);
      const num = /^\d{1,15}$/.test(message_id) ? Number(message_id) : 0;
      const row = await findMessage(reader, task.num, num);
      if (!row) throw problems.messageNotFound();
      return toMessage(row);
    });
  }

  /** The thread of a task. Throws `conversation not found`. */
  conversation(caller: Caller, team_id: string, conversation_id: string): Promise<Conversation> {
    return this.#options.store.read(async (reader) => {
      const { task } = await requireTask(reader, caller, 'team.read', { team_id, conversation_id });
      const { title, created_at } = toTask(task);
      const { count: messages, last: last_message_id } = await countMessages(reader, task.num);
      return { id: conversation_id, team_id, task_id: task.id, title, messages, last_message_id, created_at };
    });
  }

  /** The task's number for `follow`. Throws a 404 if the caller has no access, or no longer has it. */
  authorizeRead(caller: Caller, ref: TaskRef): Promise<number> {
    return this.#options.store.read(
      async (reader) => (await requireTask(reader, caller, 'team.read', ref)).task.num,
    );
  }

  /** SSE frames of a thread, numbered by message: those after `position`, then new ones as they are sent. */
  follow(task_num: number, position: Position, signal: AbortSignal): AsyncGenerator<Buffer> {
    const { store, clock, heartbeat_ms } = this.#options;
    return followRows(
      {
        clock,
        ...(heartbeat_ms !== undefined && { heartbeat_ms }),
        head: () => store.read(async (reader) => (await countMessages(reader, task_num)).last ?? 0),
        settled: () => store.settledNumbers('messages'),
        read: (after_num, up_to_num) =>
          store.read(async (reader) =>
            (
              await listMessages(reader, {
                ...{ task_num, after_num, up_to_num },
                limit: sharedLimits.follow_rows_per_read,
              })
            ).map((row) => ({
              id: row.num,
              type: 'message',
              ts_ms: row.created_at,
              record: JSON.stringify(toMessage(row)),
            })),
          ),
        onNew: (wake) => store.wakes.onKey('messages', task_num, wake),
      },
      position,
      signal,
    );
  }

  // --- sending --------------------------------------------------------------------------------------------------------

  /** Sends a message as the calling person. */
  send(
    caller: Caller,
    team_id: string,
    task_id: string,
    message: NewMessage,
    idempotency_key: string | null,
  ): Promise<Message> {
    const { store, audit, idempotency } = this.#options;
    return store.write(async (tx) => {
      const found = await requireTask(tx, caller, 'team.work', { team_id, task_id });
      const sent = await this.post(tx, found, humanActorId(caller.username), message);
      const { id: message_id, route, to_actor_id } = sent;
      await audit.record(tx, {
        event: 'message_sent',
        user_id: caller.user_id,
        ip: caller.ip,
        details: { team_id, task_id, message_id, route, to_actor_id },
      });
      if (idempotency_key !== null) {
        const answer = { status: 201, location: messagePath(sent), body: sent };
        await idempotency.storeWith(tx, caller, idempotency_key, answer);
      }
      return sent;
    });
  }

  /**
   * Adds an actor's message to the thread, and delivers it if a run is open. The caller must check that the actor may
   * send it. Throws the Problem of the mailbox if that rejects the message or one that waits before it.
   */
  async post(tx: Tx, { team, task }: TeamTask, from_actor_id: string, message: NewMessage): Promise<Message> {
    const run = await findOpenRun(tx, task.num);
    const participants = getParticipants(team, run);
    assertValidRoute(participants.spec, message.route, message.to_actor_id ?? undefined);
    const to_actor_id = await addressee(tx, participants, message);
    const payload = toPayload(message, limits.message_bytes_max);
    const thread =
      message.reply_to === undefined ? undefined : await resolveThread(tx, task, message.reply_to);
    if (thread === null) throw problems.replyElsewhere();
    if ((await countMessages(tx, task.num)).count >= limits.task_messages_max)
      throw problems.tooManyMessages();
    // Earlier messages are delivered first.
    const refusal = run && (await this.#deliverPending(tx, participants, task, run));
    if (refusal) throw refusal;
    const num = await insertMessage(tx, {
      team_num: team.num,
      task_num: task.num,
      run_num: null,
      from_actor_id,
      route: message.route,
      to_actor_id,
      payload: JSON.stringify(payload),
      text: collectStrings(payload).join('\n'),
      reply_to: message.reply_to ?? null,
      thread: thread ?? null,
      created_at: this.#options.clock.now(),
    });
    if (run) await this.#deliver(tx, participants, run, (await findMessage(tx, task.num, num))!);
    tx.wake('messages', task.num);
    return this.#publish(tx, team, task, num);
  }

  /** A run that starts or resumes gets the messages that wait for one. */
  facts(): FactHandlers {
    return {
      run_changed: async (tx, { payload }) => {
        const run = await findRun(tx, payload.run_id);
        if (!run || isRunOver(run)) return;
        const team = (await teamOfNum(tx, run.team_num))!;
        await this.#deliverPending(tx, getParticipants(team, run), (await taskOfNum(tx, run.task_num))!, run);
      },
    };
  }

  /**
   * A message whose receiver is not in the run keeps waiting. If the mailbox rejects a message, it and all later ones
   * wait too; returns its Problem then, otherwise null.
   */
  async #deliverPending(
    tx: Tx,
    participants: Participants,
    task: TaskRow,
    run: RunRow,
  ): Promise<Problem | null> {
    for (const row of await waitingMessages(tx, task.num)) {
      try {
        if (await this.#deliver(tx, participants, run, row))
          await this.#publish(tx, participants.team, task, row.num);
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        const { logger } = this.#options;
        logger.warn({ err: error, run_id: run.id, message_id: row.num }, 'a message could not be delivered');
        return error;
      }
    }
    return null;
  }

  /** False if none of the message's receivers is in the run. */
  async #deliver(tx: Tx, participants: Participants, run: RunRow, row: MessageRow): Promise<boolean> {
    const receivers = await resolveReceivers(tx, participants, row);
    if (receivers === null) return false;
    const { num: message_num, from_actor_id } = row;
    const payload = JSON.parse(row.payload) as Record<string, unknown>;
    // If the first receiver is rejected, nothing has happened; after that, the message is never sent again.
    if (receivers.length === 0) await markDelivered(tx, message_num, run.num);
    for (const to_actor_id of receivers) {
      await this.#options.post(tx, { run, from_actor_id, to_actor_id, payload, message_num });
      await markDelivered(tx, message_num, run.num);
    }
    return true;
  }

  async #publish(tx: Tx, team: TeamRow, task: TaskRow, num: number): Promise<Message> {
    const message = toMessage((await findMessage(tx, task.num, num))!);
    await this.#options.feed.append(tx, 'message', team.created_by, { ...message }, team.num);
    return message;
  }
}

/** The URL of a message. */
export function messagePath({ team_id, task_id, id }: Pick<Message, 'team_id' | 'task_id' | 'id'>): string {
  return `${taskPath({ team_id, id: task_id })}/messages/${id}`;
}

/** The actor to which a message is addressed; null for a broadcast. */
async function addressee(
  reader: Reader,
  participants: Participants,
  { route, to_actor_id }: NewMessage,
): Promise<string | null> {
  if (route === 'broadcast') return null;
  return (
    await resolveActor(
      reader,
      participants,
      route === 'to_leader' ? participants.spec.leader_member_id! : to_actor_id!,
    )
  ).actor_id;
}

/** Null if the message's receiver is not a participant. */
async function resolveReceivers(
  reader: Reader,
  participants: Participants,
  row: MessageRow,
): Promise<string[] | null> {
  if (row.route === 'broadcast') {
    const all = participants.spec.members.map((member) => memberActor(participants, member).actor_id);
    return all.filter((actor_id) => actor_id !== row.from_actor_id);
  }
  const receiver = row.route === 'to_leader' ? participants.spec.leader_member_id : row.to_actor_id;
  if (receiver === null) return null;
  try {
    return [(await resolveActor(reader, participants, receiver)).actor_id];
  } catch (error) {
    if (error instanceof Problem) return null;
    throw error;
  }
}

/** The first message of the reply thread that contains a message; null if the task has no such message. */
async function resolveThread(
  reader: Reader,
  task: TaskRow,
  num: number | undefined,
): Promise<number | null | undefined> {
  if (num === undefined) return undefined;
  const row = await findMessage(reader, task.num, num);
  return row ? (row.thread ?? row.num) : null;
}
