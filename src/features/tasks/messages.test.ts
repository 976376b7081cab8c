/** Threads: which receivers a message reaches and when, search, and the stream. */
import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { limits as sharedLimits } from '../../base/limits.ts';
import { problems } from '../../core/problem.ts';
import { type Frame, parseFrames } from '../../events/testing.ts';
import { sqliteTest } from '../../testing/test-store.ts';
import { deleteRun, findRun } from '../runs/queries/runs.ts';
import { requireTask } from './find.ts';
import { limits } from './limits.ts';
import type { NewMessage } from './messages.ts';
import type { Message, MessageRoute } from './rules/message.ts';
import { EVE, JON, MIA, ROOT, TasksFixture, TEAM } from './testing.ts';

let fixture: TasksFixture;
let task_id: string;
let conversation_id: string;
beforeEach(async () => {
  fixture = await TasksFixture.make();
  ({ id: task_id, conversation_id } = await fixture.task());
});
afterEach(() => fixture.end());

const soon = { timeout: 20_000 };
const send = (message: NewMessage, caller = MIA) =>
  fixture.messages.send(caller, TEAM, task_id, message, null);
const say = (text: string, more: Partial<NewMessage> = {}) => send({ route: 'broadcast', text, ...more });
const get = (id: number) => fixture.messages.get(MIA, { team_id: TEAM, task_id }, String(id));
const list = async (filter: Parameters<TasksFixture['messages']['list']>[2] = {}) =>
  (await fixture.messages.list(MIA, { team_id: TEAM, task_id }, filter, {})).items;
const texts = async (filter: Parameters<typeof list>[0] = {}) => (await list(filter)).map(({ text }) => text);
const mails = () => fixture.posted.map(({ to_actor_id, payload }) => `${to_actor_id} ${payload.text}`);
const at = (member_id: string) => `${member_id}@${TEAM}`;

/** Sends as a member's agent, whose rights are checked elsewhere. */
const asMember = (member_id: string, message: NewMessage): Promise<Message> =>
  fixture.store.write(async (tx) => {
    const found = await requireTask(tx, ROOT, 'team.work', { team_id: TEAM, task_id });
    return fixture.messages.post(tx, found, at(member_id), message);
  });

test('a list without a page request is limited, and has a cursor for the rest', async () => {
  const { id } = await say('one');
  const count = sharedLimits.plain_list_items_max + 2;
  await fixture.store.write(async (tx) => {
    const { num: _, ...row } = (await tx.get(
      tx.sql.selectFrom('messages').selectAll().where('num', '=', id),
    ))!;
    for (let i = 1; i < count; i++) await tx.run(tx.sql.insertInto('messages').values(row));
  });
  const ref = { team_id: TEAM, task_id };
  const plain = await fixture.messages.list(MIA, ref, {}, {});
  expect(plain.items).toHaveLength(count - 2);
  const rest = await fixture.messages.list(MIA, ref, {}, { cursor: plain.next_cursor });
  expect(rest.items).toHaveLength(2);
  expect(rest.next_cursor).toBeUndefined();
});

describe('routing', () => {
  test.each<[message: NewMessage, leader: string | null, error: string]>([
    [{ route: 'nobody' as MessageRoute }, null, 'route must be one of: broadcast, to_leader, to_member'],
    [{ route: 'to_leader' }, null, 'route=to_leader requires a leader member in spec.members'],
    [{ route: 'to_member' }, null, 'to_actor_id is required when route=to_member'],
    [{ route: 'to_member', to_actor_id: '' }, 'lead', 'to_actor_id is required when route=to_member'],
    [{ route: 'to_member', to_actor_id: 'nobody' }, 'lead', 'unknown actor: nobody'],
    [{ route: 'to_member', to_actor_id: 'dev@team_2' }, 'lead', 'unknown actor: dev@team_2'],
    [{ route: 'to_member', to_actor_id: 'user:eve' }, 'lead', 'unknown actor: user:eve'],
    [{ route: 'to_member', to_actor_id: 'leader' }, null, 'unknown actor: leader'],
    [{ route: 'broadcast' }, null, 'text is required'],
    [{ route: 'to_leader', text: '  ' }, 'lead', 'text is required'],
    [{ route: 'broadcast', text: 'a', payload: {} }, null, 'text and payload must not both be given'],
    [{ route: 'broadcast', text: 'a', reply_to: 99 }, null, 'reply_to must be a message of the conversation'],
    [
      { route: 'broadcast', text: 'é'.repeat(limits.message_bytes_max / 2) },
      null,
      `text must be at most ${limits.message_bytes_max} bytes as JSON`,
    ],
  ])('%j with the leader %j is refused: %s', async (message, leader_member_id, error) => {
    await fixture.respec({ leader_member_id });
    await expect(send(message)).rejects.toThrow(error);
    expect(await list()).toEqual([]);
  });

  test.each<[message: NewMessage, from: string | null, to_actor_id: string | null, receivers: string[]]>([
    [{ route: 'broadcast' }, null, null, ['lead', 'dev', 'ops'].map(at)],
    [{ route: 'broadcast' }, 'dev', null, ['lead', 'ops'].map(at)],
    [{ route: 'broadcast', to_actor_id: 'dev' }, null, null, ['lead', 'dev', 'ops'].map(at)],
    [{ route: 'to_leader' }, null, at('lead'), [at('lead')]],
    [{ route: 'to_member', to_actor_id: 'dev' }, null, at('dev'), [at('dev')]],
    [{ route: 'to_member', to_actor_id: at('dev') }, null, at('dev'), [at('dev')]],
    [{ route: 'to_member', to_actor_id: 'leader' }, 'ops', at('lead'), [at('lead')]],
    [{ route: 'to_member', to_actor_id: 'user:mia' }, 'dev', 'user:mia', ['user:mia']],
    [{ route: 'to_member', to_actor_id: 'user:root' }, 'dev', 'user:root', ['user:root']],
    // The creator of the run.
    [{ route: 'to_member', to_actor_id: 'user' }, 'dev', 'user:jon', ['user:jon']],
  ])('in an open run %j from %j is mail to %j: %j', async (input, from, to_actor_id, receivers) => {
    const run = await fixture.run(task_id);
    const whole = { ...input, payload: { text: 'hello', more: 1 } };
    const message = await (from === null ? send(whole) : asMember(from, whole));
    const from_actor_id = from === null ? 'user:mia' : at(from);
    expect(message).toMatchObject({ from_actor_id, to_actor_id, run_id: run.id, text: 'hello' });
    expect(fixture.posted.map((mail) => mail.to_actor_id)).toEqual(receivers);
    for (const mail of fixture.posted) {
      expect(mail).toMatchObject({ from_actor_id, payload: whole.payload, message_num: message.id });
      expect(mail.run.id).toBe(run.id);
    }
  });

  test('a run keeps its initial members, whatever changes in the team', async () => {
    await fixture.run(task_id, { leader_member_id: 'dev' });
    await fixture.respec({ leader_member_id: null });
    expect((await say('a', { route: 'to_leader' })).to_actor_id).toBe(at('dev'));
    expect(mails()).toEqual([`${at('dev')} a`]);
  });
});

describe('waiting', () => {
  test('without an open run a message waits; the next run gets waiting messages in order, once', async () => {
    const first = await say('one');
    await say('two', { route: 'to_member', to_actor_id: 'dev' });
    expect(first.run_id).toBeNull();
    expect(fixture.posted).toEqual([]);
    const run = await fixture.run(task_id);
    await expect.poll(() => fixture.posted.length, soon).toBe(4);
    expect(mails()).toEqual([...['lead', 'dev', 'ops'].map((id) => `${at(id)} one`), `${at('dev')} two`]);
    // Mail is posted in a transaction that commits a moment later.
    await expect.poll(() => get(first.id), soon).toEqual({ ...first, run_id: run.id, delivered: true });
    await fixture.runIs(run.id, 'input_required');
    await fixture.runIs(run.id, 'running');
    const other = await fixture.task('Another');
    const next = await fixture.run(other.id);
    await expect.poll(() => fixture.tasks.get(MIA, TEAM, other.id), soon).toMatchObject({ run_id: next.id });
    expect(fixture.posted).toHaveLength(4);
  });

  test('earlier messages are delivered first, even before the run’s start was processed', async () => {
    await fixture.closeFacts();
    await say('early', { route: 'to_leader' });
    await fixture.run(task_id);
    await say('late', { route: 'to_leader' });
    expect(mails()).toEqual([`${at('lead')} early`, `${at('lead')} late`]);
    await fixture.openFacts();
    await expect
      .poll(async () => (await fixture.tasks.get(MIA, TEAM, task_id)).status, soon)
      .toBe('in_progress');
    expect(fixture.posted).toHaveLength(2);
  });

  test('a run that ends before its start was processed gets nothing', async () => {
    await fixture.closeFacts();
    await say('one');
    const run = await fixture.run(task_id);
    await fixture.runIs(run.id, 'cancelled');
    await fixture.openFacts();
    await fixture.run((await fixture.task('Another')).id);
    const facts = () =>
      fixture.store.read((reader) => reader.all(reader.sql.selectFrom('facts').selectAll()));
    await expect.poll(facts, soon).toEqual([]);
    expect(fixture.posted).toEqual([]);
    expect((await list())[0]!.run_id).toBeNull();
  });

  test('a message for an unknown receiver keeps waiting, and does not block others', async () => {
    await fixture.respec({
      members: [{ member_id: 'new', description: '', skills: [], prompt: '', agent: null }],
    });
    await say('to new', { route: 'to_member', to_actor_id: 'new' });
    await say('to all');
    await fixture.run(task_id);
    await expect.poll(mails, soon).toEqual(['lead', 'dev', 'ops'].map((id) => `${at(id)} to all`));
    // The mailbox of the fixture gets mail before the transaction is committed.
    const waiting = async () => (await list()).map(({ run_id }) => run_id === null);
    await expect.poll(waiting, soon).toEqual([true, false]);
  });

  test('a message that the mailbox rejects is not sent; waiting ones keep waiting, in order', async () => {
    await say('one');
    await say('two');
    fixture.refusal = problems.notAllowed();
    const run = await fixture.run(task_id);
    await expect
      .poll(async () => (await fixture.tasks.get(MIA, TEAM, task_id)).status, soon)
      .toBe('in_progress');
    await expect(say('three')).rejects.toThrow('not allowed');
    expect(await texts()).toEqual(['one', 'two']);
    fixture.refusal = null;
    await fixture.runIs(run.id, 'running');
    await expect
      .poll(() => mails().map((mail) => mail.split(' ')[1]), soon)
      .toEqual([...Array(3).fill('one'), ...Array(3).fill('two')]);
  });

  test('a message does not overtake one that the mailbox rejects', async () => {
    await say('one', { route: 'to_leader' });
    fixture.refusal = problems.notAllowed();
    fixture.isRefused = ({ payload }) => payload.text === 'one';
    await fixture.run(task_id);
    await expect
      .poll(async () => (await fixture.tasks.get(MIA, TEAM, task_id)).status, soon)
      .toBe('in_progress');
    await expect(say('two', { route: 'to_leader' })).rejects.toThrow('not allowed');
    fixture.refusal = null;
    await say('three', { route: 'to_leader' });
    expect(mails()).toEqual([`${at('lead')} one`, `${at('lead')} three`]);
  });
});

describe('reading', () => {
  test('a message stays delivered if its run is deleted', async () => {
    const delivered = await say('one');
    expect(delivered).toMatchObject({ run_id: null, delivered: false });
    const { id } = await fixture.run(task_id);
    await expect.poll(() => get(delivered.id), soon).toMatchObject({ run_id: id, delivered: true });
    await fixture.store.write(async (tx) => deleteRun(tx, (await findRun(tx, id))!));
    const waiting = await say('two');
    expect(await list()).toEqual([{ ...delivered, delivered: true }, waiting]);
    expect(waiting).toMatchObject({ run_id: null, delivered: false });
  });

  test('messages are listed oldest first, in pages, by task and by thread', async () => {
    for (const text of ['a', 'b', 'c']) await say(text);
    expect(await texts()).toEqual(['a', 'b', 'c']);
    const ref = { team_id: TEAM, conversation_id };
    const first = await fixture.messages.list(JON, ref, {}, { limit: 2 });
    expect(first.items.map(({ text }) => text)).toEqual(['a', 'b']);
    const rest = await fixture.messages.list(JON, ref, {}, { limit: 2, cursor: first.next_cursor });
    expect(rest.items.map(({ text }) => text)).toEqual(['c']);
    expect(rest.next_cursor).toBeUndefined();
    expect(await fixture.messages.conversation(JON, TEAM, conversation_id)).toEqual({
      id: conversation_id,
      team_id: TEAM,
      task_id,
      title: 'Tidy up',
      messages: 3,
      last_message_id: rest.items[0]!.id,
      created_at: expect.any(String),
    });
  });

  test('pages in newest-first order reach the first message, even of a search or a reply thread', async () => {
    const { id } = await say('a 1');
    for (const text of ['b 1', 'b 2', 'a 2']) {
      await send({ route: 'broadcast', text, ...(text.startsWith('a') && { reply_to: id }) });
    }
    const backwards = async (filter: Parameters<TasksFixture['messages']['list']>[2], limit?: number) => {
      const texts: (string | null)[] = [];
      let cursor: string | undefined;
      do {
        const request = { limit, cursor };
        const read = await fixture.messages.list(
          MIA,
          { team_id: TEAM, task_id },
          { ...filter, order: 'newest' },
          request,
        );
        texts.push(...read.items.map(({ text }) => text));
        cursor = read.next_cursor;
      } while (cursor !== undefined);
      return texts;
    };
    for (const limit of [1, 2, 3, 4, undefined]) {
      expect(await backwards({}, limit)).toEqual(['a 2', 'b 2', 'b 1', 'a 1']);
      expect(await backwards({ q: 'b' }, limit)).toEqual(['b 2', 'b 1']);
      expect(await backwards({ thread: id }, limit)).toEqual(['a 2', 'a 1']);
    }
  });

  test('messages outside the thread, the team or the caller’s access do not exist', async () => {
    const { id } = await say('a');
    const other = await fixture.task('Another');
    const read = (team_id: string, task: string, message: string, caller = MIA) =>
      fixture.messages.get(caller, { team_id, task_id: task }, message);
    await expect(read(TEAM, other.id, String(id))).rejects.toThrow('message not found');
    for (const none of ['0', '-1', '1e0', 'x', '9'.repeat(40)]) {
      await expect(read(TEAM, task_id, none)).rejects.toThrow('message not found');
    }
    await expect(read('team_2', task_id, String(id))).rejects.toThrow('task not found');
    await expect(read(TEAM, task_id, String(id), EVE)).rejects.toThrow('team not found');
    await expect(send({ route: 'broadcast', text: 'a' }, EVE)).rejects.toThrow('team not found');
    const conversation = (team_id: string, ref: string, caller = MIA) =>
      fixture.messages.conversation(caller, team_id, ref);
    await expect(conversation('team_2', conversation_id)).rejects.toThrow('conversation not found');
    await expect(conversation(TEAM, 'conv_none')).rejects.toThrow('conversation not found');
    await expect(conversation(TEAM, conversation_id, EVE)).rejects.toThrow('team not found');
    const reply = { route: 'broadcast', text: 'b', reply_to: id } as const;
    const elsewhere = fixture.messages.send(MIA, TEAM, other.id, reply, null);
    await expect(elsewhere).rejects.toThrow('reply_to must be a message of the conversation');
  });

  test('a reply thread is a message and all replies, found by any of them', async () => {
    const first = await say('first');
    await say('aside');
    const reply = await say('reply', { reply_to: first.id });
    const again = await say('again', { reply_to: reply.id });
    expect(again).toMatchObject({ reply_to: reply.id, thread: first.id });
    expect(first).toMatchObject({ reply_to: null, thread: first.id });
    for (const { id } of [first, reply, again]) {
      expect(await texts({ thread: id })).toEqual(['first', 'reply', 'again']);
    }
    expect(await texts({ thread: again.id, q: 'again' })).toEqual(['again']);
    expect(await texts({ thread: 999 })).toEqual([]);
  });

  test.each<[q: string, found: string[]]>([
    ['garden', ['the garden is tidy', 'a tidy garden']],
    ['TIDY garden', ['the garden is tidy', 'a tidy garden']],
    ['"tidy garden"', ['a tidy garden']],
    ['gard', []],
    ['cafe', ['Café au lait']],
    ['nested', [null as never]],
    ['text', []],
    ['AND', []],
    ['garden OR shed', []],
    ['"', []],
    ['***', []],
    ['"garden', ['the garden is tidy', 'a tidy garden']],
    ['text: garden', []],
    ['gar*', []],
    ["'; DROP TABLE messages; --", []],
    ['^garden NEAR(a b) {text}', []],
  ])('%j finds %j', async (q, found) => {
    await say('the garden is tidy');
    await say('a tidy garden');
    await say('Café au lait');
    await send({ route: 'broadcast', payload: { deep: [{ why: 'nested' }], n: 1 } });
    const other = await fixture.task('Another');
    await fixture.messages.send(MIA, TEAM, other.id, { route: 'broadcast', text: 'garden elsewhere' }, null);
    expect(await texts({ q })).toEqual(found);
  });

  sqliteTest('the search index of a thread is deleted with its team', async () => {
    await say('garden');
    const indexed = () =>
      fixture.store.read(async (reader) => {
        const count = sql<number>`(SELECT count(*) FROM messages_words WHERE messages_words MATCH 'garden')`;
        return (await reader.get(reader.sql.selectNoFrom(count.as('count'))))!.count;
      });
    expect(await indexed()).toBe(1);
    await fixture.store.write((tx) => tx.run(tx.sql.deleteFrom('teams').where('num', '=', 1)));
    expect(await indexed()).toBe(0);
  });
});

describe('publishing', () => {
  test('a message is published to the team, again once delivered, and audited without its text', async () => {
    const message = await say('one');
    const run = await fixture.run(task_id);
    await expect.poll(async () => (await get(message.id)).run_id, soon).toBe(run.id);
    const entries = await fixture.store.read((reader) =>
      reader.all(reader.sql.selectFrom('feed').selectAll().where('kind', '=', 'message').orderBy('id')),
    );
    expect(entries.map(({ record }) => JSON.parse(record))).toEqual([
      message,
      { ...message, run_id: run.id, delivered: true },
    ]);
    expect(entries[0]).toMatchObject({ owner_id: MIA.user_id, team_num: 1 });
    const details = { team_id: TEAM, task_id, message_id: message.id, route: 'broadcast', to_actor_id: null };
    expect(await fixture.audited('message_sent')).toEqual([details]);
  });

  test('a message with a key is stored with its response in one commit', async () => {
    expect(await fixture.idempotency.begin(MIA, 'key', new Uint8Array(32))).toHaveProperty('first');
    const { id } = await fixture.messages.send(MIA, TEAM, task_id, { route: 'broadcast', text: 'a' }, 'key');
    const stored = await fixture.store.read((reader) =>
      reader.get(reader.sql.selectFrom('idempotency').selectAll().where('key', '=', 'key')),
    );
    expect(stored).toMatchObject({
      status: 201,
      location: `/api/teams/${TEAM}/tasks/${task_id}/messages/${id}`,
    });
  });

  /** Frames of the thread until there are `count`. */
  async function follow(
    position: Parameters<TasksFixture['messages']['follow']>[1],
    count: number,
  ): Promise<Frame[]> {
    const stop = new AbortController();
    const task_num = await fixture.messages.authorizeRead(JON, { team_id: TEAM, task_id });
    let text = '';
    for await (const bytes of fixture.messages.follow(task_num, position, stop.signal)) {
      text += bytes.toString();
      if (parseFrames(text).length >= count) stop.abort();
    }
    return parseFrames(text);
  }

  test('the stream is the thread after the client’s position, then new messages', async () => {
    const sent_messages: Message[] = [];
    for (const text of ['a', 'b']) sent_messages.push(await say(text));
    await fixture.messages.send(
      MIA,
      TEAM,
      (await fixture.task('Another')).id,
      { route: 'broadcast', text: 'x' },
      null,
    );
    const whole = follow('start', 4);
    const after = sent_messages.map(({ id }) =>
      follow({ after: id }, 4 - sent_messages.findIndex((message) => message.id === id) - 1),
    );
    for (const text of ['c', 'd']) sent_messages.push(await say(text));
    expect((await whole).map(({ id }) => id)).toEqual(sent_messages.map(({ id }) => id));
    expect((await whole)[0]).toMatchObject({
      event: 'message',
      data: { type: 'message', record: sent_messages[0] },
    });
    expect((await after[0]!).map(({ id }) => id)).toEqual(sent_messages.slice(1).map(({ id }) => id));
    expect((await after[1]!).map(({ id }) => id)).toEqual(sent_messages.slice(2).map(({ id }) => id));
  });

  test('an unknown position is reset, and the stream continues from there', async () => {
    const { id } = await say('a');
    const stop = new AbortController();
    const frames = fixture.messages.follow(1, { after: 10 ** 9 }, stop.signal);
    expect(String((await frames.next()).value)).toBe('retry: 1000\n\n');
    const [reset] = parseFrames(String((await frames.next()).value));
    expect(reset).toMatchObject({ id, event: 'error', data: { code: 'reset', head: id } });
    const next = frames.next();
    const sent_messages = await say('b');
    expect(parseFrames(String((await next).value))).toMatchObject([
      { id: sent_messages.id, event: 'message' },
    ]);
    stop.abort();
    expect((await frames.next()).done).toBe(true);
  });
});
