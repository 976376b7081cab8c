/**
 * The live log of an agent, folded into lines and conversation items. The logs of the last few agents are kept, so that
 * reopening one reads only newer events. Screens are notified at most once per animation frame.
 */
import { startTransition, useCallback, useEffect, useMemo, useReducer, useRef } from 'react';
import { Transcript, type View } from '../../acp/transcript/transcript.ts';
import type { EventRecord } from '../../core/event.ts';
import { session } from '../api/session.ts';
import type { AgentNews } from '../streams/connect.ts';
import { Lines } from '../transcript/lines.ts';
import { streams } from './streams.ts';

/** Older events are not read; users can search or download them. */
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
  #is_notifying = false;
  #notified_at = Number.NEGATIVE_INFINITY;
  #unwatch: (() => void) | null = null;

  constructor(agent_id: string) {
    this.agent_id = agent_id;
  }

  /** The conversation; the same object until something changes. */
  get view(): View {
    return this.#transcript.view;
  }

  /** The agent was deleted. */
  get gone(): boolean {
    return this.#gone;
  }

  /** Why the stream ended; null while it is live. */
  get failure(): string | null {
    return this.#failure;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    this.#unwatch ??= this.#watch();
    return () => {
      this.#listeners.delete(listener);
      // The next screen of the same agent may be about to mount.
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
    return streams().watchAgent(this.agent_id, from, (news) => this.#receive(news));
  }

  #receive(news: AgentNews): void {
    if (news.type === 'gone') this.#gone = true;
    else if (news.type === 'failed') this.#failure = news.error;
    else {
      const events = news.frames.map(({ data }) => data as unknown as EventRecord);
      this.#transcript.take(events);
      this.lines.add(events);
      this.#failure = null;
    }
    this.#notify();
  }

  /** At most once per frame. After a pause it notifies immediately, so that the next frame shows the change. */
  #notify(): void {
    if (this.#is_notifying) return;
    this.#is_notifying = true;
    const now = () => {
      this.#is_notifying = false;
      this.#notified_at = performance.now();
      this.#version += 1;
      for (const listener of this.#listeners) listener();
    };
    // A hidden page has no frames.
    if (document.visibilityState !== 'visible') setTimeout(now);
    else if (performance.now() - this.#notified_at < FRAME_MS) requestAnimationFrame(now);
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
 * Renders again when the log changes. Renders are transitions, so typing and clicks come first, and the next one starts
 * when the last has finished: a flood of events never blocks the page.
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

// The next user of this browser must not see these logs.
let user_id = session.get()?.user.id;
session.subscribe(() => {
  const now = session.get()?.user.id;
  if (now !== user_id) kept.clear();
  user_id = now;
});
