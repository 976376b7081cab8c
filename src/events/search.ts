/**
 * Searches an agent's log, a few seconds behind its newest events. The index is in the worker; this module decides when
 * to index, and formats the hits. It reads the events from the log, so that it never shows events that are no longer
 * kept.
 */
import { nextTurn, sleep, Wake } from '../base/async.ts';
import { FairQueue } from '../base/fair-queue.ts';
import type { Logger } from '../base/log.ts';
import type { WorkerCalls } from '../base/worker-calls.ts';
import type { EventRecord, StreamName } from '../core/event.ts';
import { problems } from '../core/problem.ts';
import { hasEvents, headOf } from '../store/event-rows/heads.ts';
import { searchPhrases } from '../store/fts.ts';
import { databaseAnswers, type Store } from '../store/store.ts';
import type { AgentRef } from './agent-ref.ts';
import type { History } from './history.ts';
import { limits } from './limits.ts';
import { plainText } from './search-index.ts';
import type { EventsTasks } from './worker.ts';

export interface SearchQuery {
  text: string;
  limit: number;
  /** Only events with a lower number. */
  before?: number | undefined;
  /** The id of the user who searches. */
  user_id: string;
  /** Ends the search when it aborts. */
  signal: AbortSignal;
}

export interface SearchHit {
  seq: number;
  ts: number;
  session_id: string | null;
  stream: StreamName | null;
  snippet: string;
}

export interface SearchPage {
  /** At most `limit`, newest first. Fewer if some events cannot be read. */
  hits: SearchHit[];
  /** `before` of the next page; null if this is the last one. */
  next: number | null;
}

export class Search {
  readonly #store: Store;
  readonly #worker: WorkerCalls<EventsTasks>;
  readonly #history: History;
  readonly #log: Logger;
  readonly #dirty = new Set<number>();
  readonly #wake = new Wake();
  readonly #stop = new AbortController();
  #running: Promise<void> | null = null;
  /** The ids of agents whose events could not be read. */
  readonly #unreadable = new Set<string>();
  readonly #searches = new FairQueue(limits.searches, () =>
    problems.tooManySearches({ retry_after_s: limits.search_full_retry_s }),
  );
  /** The error that was logged since the index was last updated. */
  #warned: string | null = null;

  constructor(store: Store, worker: WorkerCalls<EventsTasks>, history: History, log: Logger) {
    this.#store = store;
    this.#worker = worker;
    this.#history = history;
    this.#log = log;
  }

  /** Starts indexing in the background, including events from before the service was started. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** Schedules indexing of an agent's new events. */
  touch(agent_num: number): void {
    this.#dirty.add(agent_num);
    this.#wake.notify();
  }

  /** Removes a deleted agent from the index, in the background. */
  forget(agent_num: number): void {
    this.#dirty.delete(agent_num);
    this.#worker.call('forget', agent_num).catch((error) => this.#warn(error));
  }

  /**
   * A user's searches run one after the other. Throws `too many searches are waiting`, and the reason of the signal when it
   * aborts.
   */
  find(agent: AgentRef, query: SearchQuery): Promise<SearchPage> {
    const { user_id, signal } = query;
    return this.#searches.run({ owner: user_id, resource: user_id }, () => this.#find(agent, query), signal);
  }

  async #find(agent: AgentRef, query: SearchQuery): Promise<SearchPage> {
    const seqs = await this.#findSeqs(agent, query);
    const has_more = seqs.length > query.limit;
    if (has_more) seqs.pop();
    const hits = new Map<number, SearchHit>();
    for await (const batch of this.#history.at(agent, seqs)) {
      for (const { record } of batch) {
        query.signal.throwIfAborted();
        hits.set(record.seq, hitOf(record, query.text));
        // A snippet of a long text takes milliseconds. Streams continue in between.
        await nextTurn();
      }
    }
    return { hits: seqs.flatMap((seq) => hits.get(seq) ?? []), next: has_more ? seqs.at(-1)! : null };
  }

  /** The numbers of one event more than `limit`, to know whether there are further ones. */
  async #findSeqs(agent: AgentRef, { text, limit, before, signal }: SearchQuery): Promise<number[]> {
    const head = await this.#store.read((reader) => headOf(reader, agent.num));
    const seqs: number[] = [];
    if (head === undefined) return seqs;
    const { first_seq, last_seq } = head;
    for (let end = Math.min(before ?? Number.POSITIVE_INFINITY, last_seq + 1); end > first_seq; ) {
      const begun_ms = performance.now();
      const part = await this.#worker.call('search', {
        ...{ agent_num: agent.num, text, first_seq },
        before: end,
        limit: limit + 1 - seqs.length,
      });
      seqs.push(...part.seqs);
      if (seqs.length > limit) break;
      end = part.before;
      // Pauses as long as that took, so that sealing, indexing and other searches continue.
      const pause_ms = Math.min(performance.now() - begun_ms, limits.search_pause_ms_max);
      if (end > first_seq) await sleep(pause_ms, signal);
      signal.throwIfAborted();
    }
    return seqs;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    let compared = false;
    while (!signal.aborted) {
      if (compared && this.#dirty.size === 0) await this.#wake.wait(undefined, signal);
      // Wait for more events: the cost of indexing is per transaction.
      await sleep(limits.search_wait_ms, signal);
      if (signal.aborted) return;
      let agents: number[] = [];
      try {
        if (!compared) await this.#touchStale();
        compared = true;
        agents = [...this.#dirty];
        this.#dirty.clear();
        for (let left = agents; left.length > 0 && !signal.aborted; ) left = await this.#index(left);
        this.#warned = null;
      } catch (error) {
        for (const num of agents) this.#dirty.add(num);
        this.#warn(error);
        await sleep(limits.search_retry_ms, signal);
      }
    }
  }

  /**
   * Indexes events of these agents, and returns those that have more. Then pauses for longer than that took, so that indexing does
   * not take CPU time from busy streams.
   */
  async #index(agents: number[]): Promise<number[]> {
    const begun_ms = performance.now();
    const { unfinished, unreadable, reason } = await this.#worker.call('index', agents);
    this.#reportUnreadable(unreadable, reason);
    const pause_ms = (performance.now() - begun_ms) * limits.search_pause_factor;
    await sleep(Math.min(pause_ms, limits.search_pause_ms_max), this.#stop.signal);
    return unfinished;
  }

  /** Logs each agent once, because new events of the agent repeat the attempt. */
  #reportUnreadable(unreadable: readonly string[], reason: string | undefined): void {
    const found = unreadable.filter((id) => !this.#unreadable.has(id));
    if (found.length === 0) return;
    for (const id of found) this.#unreadable.add(id);
    const agent_ids = found.slice(0, limits.search_reported_agents_max);
    this.#log.warn({ agents: found.length, agent_ids, reason }, 'cannot read events for the search index');
  }

  async #touchStale(): Promise<void> {
    // Without any events there is nothing to compare, and the worker does not have to start.
    if (!(await this.#store.read(hasEvents))) return;
    for (const num of await this.#worker.call('stale', null)) this.#dirty.add(num);
  }

  #warn(error: unknown): void {
    const message = String(error);
    if (this.#stop.signal.aborted || message === this.#warned) return;
    this.#warned = message;
    // The store has logged that its server does not answer.
    const level = databaseAnswers(this.#store) ? 'warn' : 'debug';
    this.#log[level]({ err: error }, 'cannot update the search index');
  }
}

function hitOf(record: EventRecord, query: string): SearchHit {
  const { seq, ts, session_id } = record;
  const stream = (record.stream as StreamName | undefined) ?? null;
  const part = snippet(plainText(record), query);
  // A copy, because a part of a text keeps the whole text in memory.
  return { seq, ts, session_id, stream, snippet: Buffer.from(part).toString() };
}

/** At most `limits.snippet_chars` characters of text around the first match of a phrase of `query`, on one line. */
export function snippet(text: string, query: string): string {
  const folded = fold(text);
  const indexes = searchPhrases(query)
    .map((phrase) => folded.search(matcherOf(phrase)))
    .filter((index) => index >= 0);
  const at = indexes.length > 0 ? unfoldedIndex(text, Math.min(...indexes)) : 0;
  const from = Math.max(0, at - limits.snippet_chars / 4);
  const part = text.slice(from, from + limits.snippet_chars);
  const cut = `${from > 0 ? '…' : ''}${part}${from + part.length < text.length ? '…' : ''}`;
  return cut.replaceAll(/\s+/g, ' ').trim();
}

/** The text as the index compares it: without case and diacritics. */
function fold(text: string): string {
  return text
    .normalize('NFD')
    .replaceAll(/[\u0300-\u036f]+/g, '')
    .toLowerCase();
}

/** Finds a phrase in folded text as the index does: whole words, with anything but letters and digits in between. */
function matcherOf(phrase: string): RegExp {
  const words = fold(phrase).match(/[\p{L}\p{N}]+/gu) ?? [];
  return new RegExp(`(?<![\\p{L}\\p{N}])${words.join('[^\\p{L}\\p{N}]+')}(?![\\p{L}\\p{N}])`, 'u');
}

/** The lengths of the parts that `unfoldedIndex` folds: for 64 KiB, 1 ms instead of 6 for single characters. */
const STRIDES = [4096, 256, 16, 1] as const;

/** Where the character at `index` of the folded text is in `text`. */
function unfoldedIndex(text: string, index: number): number {
  let at = 0;
  let folded_at = 0;
  for (const stride of STRIDES) {
    while (at < text.length && folded_at < index) {
      const { length } = fold(text.slice(at, at + stride));
      if (folded_at + length > index) break;
      folded_at += length;
      at += stride;
    }
  }
  return Math.min(at, text.length);
}
