/**
 * A client's view of a conversation with a real agent through a real plane. It tolerates restarts of the plane, follows the log
 * continuously, and finally checks that nothing was lost, duplicated, changed or reordered.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createParser } from 'eventsource-parser';
import { expect } from 'vitest';
import { sleep } from '../base/async.ts';
import { newId } from '../base/ids.ts';
import { Unreachable } from '../client/client.ts';
import type { EventRecord } from '../core/event.ts';
import { Problem } from '../core/problem.ts';
import type { Agent } from '../features/agents/rules.ts';
import type { Prompt } from '../features/conversations/rules.ts';
import type { Elicitation } from '../features/elicitations/rules.ts';
import type { Review } from '../features/reviews/rules.ts';
import { DATABASE_FILE } from '../main/data-dir.ts';
import { limits } from '../node/limits.ts';
import { openSqliteReader } from '../store/sqlite.ts';
import { History } from './history.ts';
import { openPace } from './pace.ts';
import type { TestPlane } from './plane.ts';
import { expectSameState } from './refold.ts';

/** An agent that asks for permission in each turn. */
export const ASKER = [
  process.execPath,
  fileURLToPath(new URL('acp-agent.ts', import.meta.url)),
  'permission',
];

const SPOOL_KEPT_BYTES = limits.spool_keep_bytes / 2;

/** The machine on which an agent runs, with the files of its sessions. */
export interface ConversationHome {
  id?: string;
  data_dir: string;
  work: string;
}

export class Conversation {
  readonly agent_id: string;
  readonly history: History;
  readonly #plane: TestPlane;
  readonly #home: ConversationHome;

  private constructor(plane: TestPlane, home: ConversationHome, agent_id: string) {
    this.#plane = plane;
    this.#home = home;
    this.agent_id = agent_id;
    this.history = new History(plane.client, agent_id);
  }

  static async start(
    plane: TestPlane,
    argv: string[],
    more: { prompt?: string; home?: ConversationHome; client?: TestPlane['client'] } = {},
  ): Promise<Conversation> {
    const { prompt, client = plane.client } = more;
    const home: ConversationHome = more.home ?? plane;
    const body = {
      ...{ name: 'talks', protocol: 'acp' as const, workdir: home.work, argv, start: true },
      ...(home.id !== undefined && { node_id: home.id }),
      ...(prompt !== undefined && { prompt }),
    };
    const idempotency_key = newId('req');
    const agent = await retryWhileUnreachable(() => client.call('createAgent', { body, idempotency_key }));
    return new Conversation(plane, home, agent.id);
  }

  get(): Promise<Agent> {
    return retryWhileUnreachable(() => this.#plane.get(this.agent_id));
  }

  /** Events so far. */
  get events(): EventRecord[] {
    return this.history.events.map(({ data }) => data as unknown as EventRecord);
  }

  /** Waits for an event that satisfies `wanted`. */
  async event(wanted: (event: EventRecord) => boolean): Promise<EventRecord> {
    for (;;) {
      const found = this.events.find(wanted);
      if (found) return found;
      await sleep(10);
    }
  }

  error(code: string): Promise<EventRecord> {
    return this.event((event) => event.type === 'error' && event.code === code);
  }

  /** The codes of all errors so far. */
  get errors(): unknown[] {
    return this.events.flatMap(({ type, code }) => (type === 'error' ? [code] : []));
  }

  /** The text of all messages of the agent. */
  get text(): string {
    return this.events.map((event) => chunkOf(event)).join('');
  }

  /** Waits until the agent has this activity. */
  async until(activity: Agent['activity']): Promise<void> {
    for (const pause = openPace(); (await this.get()).activity !== activity; ) await pause();
  }

  async prompt(text: string): Promise<string> {
    const idempotency_key = newId('req');
    const { prompt_id } = await retryWhileUnreachable(() =>
      this.#plane.client.call('promptAgent', {
        params: { agent_id: this.agent_id },
        body: { text },
        idempotency_key,
      }),
    );
    return prompt_id;
  }

  prompts(): Promise<Prompt[]> {
    return retryWhileUnreachable(() =>
      this.#plane.client.call('listPrompts', { params: { agent_id: this.agent_id } }),
    ) as Promise<Prompt[]>;
  }

  /** Waits until no prompt is queued and no turn is in progress. */
  async untilIdle(): Promise<void> {
    for (const pause = openPace(); (await this.prompts()).length > 0; ) await pause();
  }

  cancel(): Promise<Agent> {
    return retryWhileUnreachable(() =>
      this.#plane.client.call('cancelTurn', { params: { agent_id: this.agent_id } }),
    );
  }

  async stop(): Promise<Agent> {
    const args = { params: { agent_id: this.agent_id }, body: { grace_seconds: 0 } };
    return retryWhileUnreachable(() => this.#plane.client.call('stopAgent', args));
  }

  /** Oldest first. */
  async reviews(): Promise<Review[]> {
    const query = { agent_id: this.agent_id };
    const found = await retryWhileUnreachable(() => this.#plane.client.call('listReviews', { query }));
    return (found as Review[]).toReversed();
  }

  /** Waits until there are `count` pending reviews; returns them oldest first. */
  async pending(count = 1): Promise<Review[]> {
    for (const pause = openPace(); ; await pause()) {
      const found = (await this.reviews()).filter(({ status }) => status === 'pending');
      if (found.length >= count) return found;
    }
  }

  /** Waits until every answer is delivered; returns all reviews. */
  async delivered(): Promise<Review[]> {
    for (const pause = openPace(); ; await pause()) {
      const found = await this.reviews();
      if (found.every(({ delivery }) => delivery !== 'queued')) return found;
    }
  }

  respond(
    review_id: string,
    body: { decision?: 'allow' | 'deny'; option_id?: string; outcome?: 'cancelled' },
  ): Promise<Review> {
    return retryWhileUnreachable(() =>
      this.#plane.client.call('respondReview', {
        params: { review_id },
        body,
        idempotency_key: `respond-${review_id}`,
      }),
    );
  }

  /** Oldest first. */
  async elicitations(): Promise<Elicitation[]> {
    const query = { agent_id: this.agent_id };
    const found = await retryWhileUnreachable(() => this.#plane.client.call('listElicitations', { query }));
    return (found as Elicitation[]).toReversed();
  }

  /** Waits for a pending elicitation. */
  async pendingElicitation(): Promise<Elicitation> {
    for (const pause = openPace(); ; await pause()) {
      const found = (await this.elicitations()).find(({ status }) => status === 'pending');
      if (found) return found;
    }
  }

  respondElicitation(
    elicitation_id: string,
    body: { action: 'accept' | 'decline' | 'cancel'; content?: Record<string, unknown> },
  ): Promise<Elicitation> {
    return retryWhileUnreachable(() =>
      this.#plane.client.call('respondElicitation', {
        params: { elicitation_id },
        body,
        idempotency_key: `respond-${elicitation_id}`,
      }),
    );
  }

  /**
   * Waits for the newest event. Checks the numbering of the log, that the rows agree with the log, and, for a session whose files
   * still exist, that stdout and stdin match the log byte for byte.
   */
  async expectSameState(): Promise<void> {
    const { last_seq, session_id } = await this.get();
    while (Number(this.history.events.at(-1)?.id ?? 0) < last_seq) await sleep(20);
    expect(this.history.sequenceError()).toBeNull();
    const log = this.events;
    const reader = openSqliteReader(join(this.#plane.data_dir, DATABASE_FILE));
    try {
      const sessions = new Set(
        log.flatMap(({ session_id: id, type }) => (type === 'acp_event' ? [id!] : [])),
      );
      for (const id of sessions) await reader.read((rows) => expectSameState(rows, log, id));
    } finally {
      await reader.close();
    }
    const file = (name: string) =>
      readFile(join(this.#home.data_dir, 'sessions', session_id!, name)).catch(() => null);
    const [out, stdin] = await Promise.all([file('out'), file('stdin')]);
    const frames = await this.#frames(last_seq);
    if (out) {
      // The beginning of a long spool is freed.
      const [logged, kept_bytes] = [
        bytesOf(frames, session_id!, 'from_agent'),
        Math.min(out.length, SPOOL_KEPT_BYTES),
      ];
      expect(logged.length).toBe(out.length);
      expect(logged.subarray(-kept_bytes).equals(out.subarray(-kept_bytes))).toBe(true);
    }
    if (stdin) expect(bytesOf(frames, session_id!, 'to_agent').toString()).toBe(stdin.toString());
  }

  /** The messages of the agent, exactly as it wrote them. */
  async payloads(): Promise<string[]> {
    const { last_seq } = await this.get();
    const frames = await this.#frames(last_seq);
    return frames.flatMap(({ record, payload }) =>
      payload !== null && record.direction === 'from_agent' ? [payload] : [],
    );
  }

  async close(): Promise<void> {
    await this.history.close();
  }

  /** Reads the log again, with payloads exactly as they were written. */
  async #frames(last_seq: number): Promise<RawEvent[]> {
    const params = { agent_id: this.agent_id };
    const stop = new AbortController();
    const response = await this.#plane.client.open('followAgent', { params, signal: stop.signal });
    const events: RawEvent[] = [];
    const parser = createParser({ onEvent: ({ data }) => events.push(rawEvent(data)) });
    const decoder = new TextDecoder();
    for await (const part of response.body!) {
      parser.feed(decoder.decode(part, { stream: true }));
      if (events.at(-1)?.record.seq === last_seq) break;
    }
    stop.abort();
    return events;
  }
}

interface RawEvent {
  record: EventRecord;
  payload: string | null;
}

function rawEvent(json: string): RawEvent {
  const record = JSON.parse(json) as EventRecord;
  const has_payload = record.type === 'acp_event' && record.truncated !== true;
  return { record, payload: has_payload ? json.slice(json.indexOf('"payload":') + 10, -1) : null };
}

/** The bytes of a session's stdout or stdin, according to its events. */
function bytesOf(events: readonly RawEvent[], session_id: string, direction: string): Buffer {
  const parts = events.flatMap(({ record, payload }) => {
    if (record.session_id !== session_id) return [];
    if (payload !== null && record.direction === direction) return [Buffer.from(`${payload}\n`)];
    if (record.type !== 'output' || record.stream !== 'stdout' || direction !== 'from_agent') return [];
    return [Buffer.from(record.data as string, record.encoding === 'base64' ? 'base64' : 'utf8')];
  });
  return Buffer.concat(parts);
}

/** The text of a message chunk of the agent; empty for any other event. */
function chunkOf({ payload }: EventRecord): string {
  const update = (payload as { params?: { update?: Record<string, unknown> } } | undefined)?.params?.update;
  if (update?.sessionUpdate !== 'agent_message_chunk') return '';
  return String((update.content as { text?: unknown } | undefined)?.text ?? '');
}

/** Repeats a call while the plane is unreachable or unavailable, because it may be restarting. */
export async function retryWhileUnreachable<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      const is_temporary =
        error instanceof Unreachable ||
        (error instanceof Problem && (error.kind === 'unavailable' || error.code === 'forward_failed'));
      if (!is_temporary) throw error;
      await sleep(20);
    }
  }
}
