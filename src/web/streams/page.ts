/**
 * A page's end of the streams, without the browser: what it watches, what it tells its owner, and the badge. It remembers
 * how far it was given each agent's events, so that it can go on at another owner.
 */
import type { Frame, StreamState } from '../../client/client.ts';
import { type BadgeInput, type BadgeView, idleBadge, refreshOfferedAt, step, viewOf } from './badge.ts';
import type { ToOwner, ToPage } from './messages.ts';

/** The way to the owner. */
export interface Link {
  post(message: ToOwner): void;
  close(): void;
}

export interface StreamsState extends BadgeView {
  /** Of the stream of changes: while it is not connected, lists may be out of date. */
  fleet: StreamState;
}

export type AgentNews =
  | { type: 'events'; frames: Frame[] }
  | { type: 'gone' }
  | { type: 'failed'; error: string };

export interface WatchFrom {
  /** Begin after this event; null: at the beginning of what is kept, or at `tail`. */
  after: number | null;
  /** Begin about this many events before the newest. */
  tail?: number | undefined;
}

interface Watched extends WatchFrom {
  agent_id: string;
  listener: (news: AgentNews) => void;
  /** What is known of its stream; null: nothing yet. */
  state: BadgeInput | null;
  is_over: boolean;
}

export interface PageOptions {
  token: string | null;
  is_online: boolean;
  is_visible: boolean;
  openLink: (receive: (message: ToPage) => void) => Link;
}

export class StreamsPage {
  readonly #options: PageOptions;
  /** The selected one comes last. */
  readonly #watched = new Map<number, Watched>();
  readonly #fleet_listeners = new Set<(frames: Frame[]) => void>();
  readonly #reload_listeners = new Set<() => void>();
  readonly #signed_out_listeners = new Set<() => void>();
  readonly #state_listeners = new Set<() => void>();
  #link: Link | null = null;
  #token: string | null;
  #is_visible: boolean;
  #badge = idleBadge(Date.now());
  #fleet: StreamState = 'connecting';
  #snapshot: StreamsState;
  #offering: ReturnType<typeof setTimeout> | undefined;
  #watches = 0;

  constructor(options: PageOptions) {
    this.#options = options;
    this.#token = options.token;
    this.#is_visible = options.is_visible;
    if (!options.is_online) this.#badge = step(this.#badge, { type: 'offline' }, Date.now());
    this.#snapshot = this.#look();
    this.connect();
  }

  /** For React's `useSyncExternalStore`. */
  readonly state = {
    subscribe: (listener: () => void): (() => void) => listen(this.#state_listeners, listener),
    getSnapshot: (): StreamsState => this.#snapshot,
  };

  /** Records as they are after a change. */
  onFleet(listener: (frames: Frame[]) => void): () => void {
    return listen(this.#fleet_listeners, listener);
  }

  /** Lists are to be loaded again: changes may have been missed. */
  onReload(listener: () => void): () => void {
    return listen(this.#reload_listeners, listener);
  }

  onSignedOut(listener: () => void): () => void {
    return listen(this.#signed_out_listeners, listener);
  }

  /** The events of an agent, each once and in order. It is the selected one until another is, or this is called off. */
  watchAgent(agent_id: string, from: WatchFrom, listener: (news: AgentNews) => void): () => void {
    const id = ++this.#watches;
    this.#watched.set(id, { agent_id, ...from, listener, state: null, is_over: false });
    this.#feed({ type: 'selected' });
    this.#post({ type: 'watch', watch: id, agent_id, ...from });
    return () => {
      const selected = this.#selected();
      if (!this.#watched.delete(id)) return;
      this.#post({ type: 'unwatch', watch: id });
      if (selected !== this.#selected()) this.#select();
    };
  }

  setToken(token: string | null): void {
    this.#token = token;
    this.#post({ type: 'token', token });
  }

  setVisible(visible: boolean): void {
    this.#is_visible = visible;
    this.#post({ type: 'visible', visible });
    if (visible) this.nudge();
  }

  setOnline(online: boolean): void {
    this.#feed({ type: online ? 'online' : 'offline' });
    // Connections of another network are dead, and nobody says so.
    if (online) this.#post({ type: 'nudge', renew: true });
  }

  /** What waits for its next attempt tries within a second. */
  nudge(): void {
    this.#post({ type: 'nudge', renew: false });
  }

  /** Says that this page is still here, where the browser has no other way to tell. */
  ping(): void {
    this.#post({ type: 'visible', visible: this.#is_visible });
  }

  /** Begins or, at a new owner, goes on. */
  connect(): void {
    this.disconnect();
    const link = this.#options.openLink((message) => {
      if (this.#link === link) this.#receive(message);
    });
    this.#link = link;
    link.post({ type: 'hello', token: this.#token, visible: this.#is_visible });
    for (const [watch, { agent_id, after, tail, is_over }] of this.#watched) {
      if (!is_over) link.post({ type: 'watch', watch, agent_id, after, tail });
    }
  }

  disconnect(): void {
    this.#link?.close();
    this.#link = null;
  }

  end(): void {
    this.disconnect();
    clearTimeout(this.#offering);
    this.#watched.clear();
  }

  #post(message: ToOwner): void {
    this.#link?.post(message);
  }

  #receive(message: ToPage): void {
    switch (message.type) {
      case 'welcome':
        break;
      case 'signed_out':
        if (message.token === this.#token) tell(this.#signed_out_listeners);
        else this.#post({ type: 'token', token: this.#token });
        break;
      case 'reload':
        tell(this.#reload_listeners);
        break;
      case 'fleet_state':
        this.#fleet = message.state;
        this.#show();
        break;
      case 'changes':
        try {
          tell(this.#fleet_listeners, message.frames);
        } finally {
          this.#post({ type: 'taken', watch: null });
        }
        break;
      default:
        this.#hear(message);
    }
  }

  /** What concerns one watch. */
  #hear(message: Extract<ToPage, { watch: number }>): void {
    const watched = this.#watched.get(message.watch);
    if (!watched) return;
    switch (message.type) {
      case 'events':
        watched.after = message.position;
        try {
          watched.listener({ type: 'events', frames: message.frames });
        } finally {
          this.#post({ type: 'taken', watch: message.watch });
        }
        break;
      case 'state':
        watched.state = inputOf(message);
        if (watched === this.#selected() && watched.state) this.#feed(watched.state);
        break;
      default:
        this.#end(watched);
        watched.listener(
          message.type === 'gone' ? { type: 'gone' } : { type: 'failed', error: message.error },
        );
    }
  }

  #end(watched: Watched): void {
    const selected = this.#selected();
    watched.is_over = true;
    if (selected === watched) this.#select();
  }

  #selected(): Watched | undefined {
    return [...this.#watched.values()].findLast(({ is_over }) => !is_over);
  }

  /** Another watch may be the selected one now, or none. */
  #select(): void {
    const selected = this.#selected();
    const known = selected?.state ? [selected.state] : [];
    this.#feed({ type: selected ? 'selected' : 'deselected' }, ...known);
  }

  #feed(...inputs: BadgeInput[]): void {
    this.#badge = inputs.reduce((badge, input) => step(badge, input, Date.now()), this.#badge);
    this.#show();
  }

  #show(): void {
    clearTimeout(this.#offering);
    const offered_at = refreshOfferedAt(this.#badge);
    if (offered_at !== null && offered_at > Date.now()) {
      this.#offering = setTimeout(() => this.#show(), offered_at - Date.now());
    }
    const next = this.#look();
    const keys = Object.keys(next) as (keyof StreamsState)[];
    if (keys.every((key) => next[key] === this.#snapshot[key])) return;
    this.#snapshot = next;
    tell(this.#state_listeners);
  }

  #look(): StreamsState {
    return { ...viewOf(this.#badge, Date.now()), fleet: this.#fleet };
  }
}

function inputOf(told: { state: StreamState; next_attempt_at: number | null }): BadgeInput | null {
  if (told.state === 'connected') return { type: 'connected' };
  if (told.state === 'connecting') return null;
  return { type: 'interrupted', next_attempt_at: told.next_attempt_at };
}

function listen<T>(listeners: Set<T>, listener: T): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell<A extends unknown[]>(listeners: Set<(...args: A) => void>, ...args: A): void {
  for (const listener of [...listeners]) listener(...args);
}
