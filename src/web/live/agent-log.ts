/**
 * An agent's log, live, folded into what screens show. Whoever comes back to an agent finds it as it was left, and only
 * what came since is read. Screens hear of changes at most once a frame, however many events there were.
 */
import { startTransition, useCallback, useEffect, useMemo, useReducer, useRef } from 'react';
import { Transcript, type View } from '../../acp/transcript/transcript.ts';
import type { EventRecord } from '../../core/event.ts';
import { session } from '../api/session.ts';
import type { AgentNews } from '../streams/connect.ts';
import { Lines } from '../transcript/lines.ts';
import { streams } from './streams.ts';

/** More than this the page does not read; the rest is a download or a search away. */
const EVENTS_MAX = 200_000;
const LOGS_KEPT = 5;
const FRAME_MS = 16;

export class AgentLog {
  readonly agent_id: string;
  readonly lines = new Lines();
  readonly #transcript = new Transcript();
  readonly #listeners = new Set<() => void>();
  #version = 0;
  #failure: string | null = null;
  #gone = false;
  #telling = false;
  #told_at = Number.NEGATIVE_INFINITY;
  #unwatch: (() => void) | null = null;

  constructor(agent_id: string) {
    this.agent_id = agent_id;
  }

  /** The conversation; the same object until something changes. */
  get view(): View {
    return this.#transcript.view;
  }

  /** There is no such agent any more. */
  get gone(): boolean {
    return this.#gone;
  }

  /** Why nothing more comes. */
  get failure(): string | null {
    return this.#failure;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    this.#unwatch ??= this.#watch();
    return () => {
      this.#listeners.delete(listener);
      // The next screen of the same agent may be about to come.
      setTimeout(() => {
        if (this.#listeners.size > 0) return;
        this.#unwatch?.();
        this.#unwatch = null;
      });
    };
  };

  readonly version = (): number => this.#version;

  #watch(): () => void {
    const { last_seq } = this.view;
    const from = last_seq > 0 ? { after: last_seq } : { after: null, tail: EVENTS_MAX };
    return streams().watchAgent(this.agent_id, from, (news) => this.#hear(news));
  }

  #hear(news: AgentNews): void {
    if (news.type === 'gone') this.#gone = true;
    else if (news.type === 'failed') this.#failure = news.error;
    else {
      const events = news.frames.map(({ data }) => data as unknown as EventRecord);
      this.#transcript.take(events);
      this.lines.add(events);
      this.#failure = null;
    }
    this.#tell();
  }

  /** At most once a frame; what comes after a pause is told at once, and so drawn with the very next frame. */
  #tell(): void {
    if (this.#telling) return;
    this.#telling = true;
    const now = () => {
      this.#telling = false;
      this.#told_at = performance.now();
      this.#version += 1;
      for (const listener of this.#listeners) listener();
    };
    // A page that is not shown has no frames.
    if (document.visibilityState !== 'visible') setTimeout(now);
    else if (performance.now() - this.#told_at < FRAME_MS) requestAnimationFrame(now);
    else now();
  }
}

const kept = new Map<string, AgentLog>();

function logOf(agent_id: string): AgentLog {
  const log = kept.get(agent_id) ?? new AgentLog(agent_id);
  kept.delete(agent_id);
  kept.set(agent_id, log);
  for (const old of kept.keys()) {
    if (kept.size <= LOGS_KEPT) break;
    kept.delete(old);
  }
  return log;
}

/**
 * Renders again as the log changes. Typing and clicks go first, and the next drawing begins when the last one is on the
 * screen: a flood is drawn as often as the machine can, and never holds up the page.
 */
export function useAgentLog(agent_id: string): AgentLog {
  const log = useMemo(() => logOf(agent_id), [agent_id]);
  const [drawing, begin] = useReducer((n: number) => n + 1, 0);
  const version = log.version();
  const under_way = useRef(false);
  const draw = useCallback(() => {
    if (under_way.current) return;
    under_way.current = true;
    startTransition(begin);
  }, []);
  useEffect(() => log.subscribe(draw), [log, draw]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: at the end of each drawing, with what it showed
  useEffect(() => {
    under_way.current = false;
    if (log.version() !== version) draw();
  }, [log, drawing]);
  return log;
}

// What one person saw, the next at this browser does not find.
let user_id = session.get()?.user.id;
session.subscribe(() => {
  const now = session.get()?.user.id;
  if (now !== user_id) kept.clear();
  user_id = now;
});
