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
import { afterPaint } from '../ui/painted.ts';
import { streams } from './streams.ts';

/** Older events are not read; users can search or download them. */
const EVENTS_MAX = 200_000;
const RECENT_LOGS_MAX = 5;
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

  /** Why the stream ended; null while it is live or tried again. */
  get failure(): string | null {
    return this.#failure;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    this.#unwatch ??= this.#watchAfterPaint();
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

  /** Reads the stream again after it ended. */
  readonly retry = (): void => {
    this.#unwatch?.();
    this.#unwatch = this.#watch();
  };

  /** The worker that reads the stream would compete with the first paint of the screen. */
  #watchAfterPaint(): () => void {
    let stop = afterPaint(() => {
      stop = this.#watch();
    });
    return () => stop();
  }

  #watch(): () => void {
    if (this.#gone || this.#failure !== null) {
      this.#gone = false;
      this.#failure = null;
      this.#notify();
    }
    const { last_seq } = this.view;
    const from = last_seq > 0 ? { after: last_seq } : { after: null, tail: EVENTS_MAX };
    return streams().watchAgent(this.agent_id, from, (news) => this.#receive(news));
  }

  #receive(news: AgentNews): void {
    if (news.type === 'gone') this.#gone = true;
    else if (news.type === 'failed') this.#failure = news.error;
    else {
      const events = news.frames.map(({ data }) => data as unknown as EventRecord);
      this.#transcript.append(events);
      this.lines.add(events);
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

const recent_logs = new Map<string, AgentLog>();

function getLog(agent_id: string): AgentLog {
  const log = recent_logs.get(agent_id) ?? new AgentLog(agent_id);
  recent_logs.delete(agent_id);
  recent_logs.set(agent_id, log);
  for (const old of recent_logs.keys()) {
    if (recent_logs.size <= RECENT_LOGS_MAX) break;
    recent_logs.delete(old);
  }
  return log;
}

/**
 * Renders again when the log changes. Renders are transitions, so typing and clicks come first, and the next one starts
 * when the last has finished: a flood of events never blocks the page.
 */
export function useAgentLog(agent_id: string): AgentLog {
  const log = useMemo(() => getLog(agent_id), [agent_id]);
  const [render_count, startRender] = useReducer((n: number) => n + 1, 0);
  const version = log.version();
  const is_rendering = useRef(false);
  const requestRender = useCallback(() => {
    if (is_rendering.current) return;
    is_rendering.current = true;
    startTransition(startRender);
  }, []);
  useEffect(() => log.subscribe(requestRender), [log, requestRender]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: at the end of each render, with the version that it showed
  useEffect(() => {
    is_rendering.current = false;
    if (log.version() !== version) requestRender();
  }, [log, render_count]);
  return log;
}

// The next user of this browser must not see these logs.
let user_id = session.get()?.user.id;
session.subscribe(() => {
  const now = session.get()?.user.id;
  if (now !== user_id) recent_logs.clear();
  user_id = now;
});
