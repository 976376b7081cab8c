/**
 * A page's client of the stream hub, without the browser: its subscriptions and its badge. It remembers its position in
 * each agent's events, so it can continue with another hub.
 */
import type { Frame, StreamState } from '../../client/client.ts';
import { type BadgeInput, type BadgeView, idleBadge, refreshOfferedAt, step, toView } from './badge.ts';
import { bounds } from './bounds.ts';
import type { ToClient, ToHub } from './messages.ts';

/** A connection to the hub. */
export interface HubConnection {
  post(message: ToHub): void;
  close(): void;
}

export interface StreamsState extends BadgeView {
  /** The state of the stream of changes: while it is not connected, lists may be out of date. */
  fleet: StreamState;
}

export type AgentNews =
  | { type: 'events'; frames: Frame[] }
  | { type: 'gone' }
  | { type: 'failed'; error: string };

export interface StartPosition {
  /** Begin after this event; null: at the oldest event, or at `tail`. */
  after: number | null;
  /** Begin about this many events before the newest. */
  tail?: number | undefined;
}

interface LocalSubscription extends StartPosition {
  agent_id: string;
  listener: (news: AgentNews) => void;
  /** The last known state of its stream; null: not known yet. */
  state: BadgeInput | null;
  has_ended: boolean;
}

export interface StreamClientOptions {
  token: string | null;
  is_online: boolean;
  is_visible: boolean;
  connectToHub: (receive: (message: ToClient) => void) => HubConnection;
}

export class StreamClient {
  readonly #options: StreamClientOptions;
  /** The selected agent's subscription comes last. */
  readonly #subscriptions = new Map<number, LocalSubscription>();
  readonly #fleet_listeners = new Set<(frames: Frame[]) => void>();
  readonly #reload_listeners = new Set<() => void>();
  readonly #signed_out_listeners = new Set<() => void>();
  readonly #state_listeners = new Set<() => void>();
  #hub: HubConnection | null = null;
  #token: string | null;
  #is_visible: boolean;
  #badge = idleBadge(Date.now());
  #fleet: StreamState = 'connecting';
  #snapshot: StreamsState;
  #offering: ReturnType<typeof setTimeout> | undefined;
  #last_id = 0;
  #pinged_at = Date.now();

  constructor(options: StreamClientOptions) {
    this.#options = options;
    this.#token = options.token;
    this.#is_visible = options.is_visible;
    if (!options.is_online) this.#badge = step(this.#badge, { type: 'offline' }, Date.now());
    this.#snapshot = this.#currentState();
    this.connect();
  }

  /** For React's `useSyncExternalStore`. */
  readonly state = {
    subscribe: (listener: () => void): (() => void) => listen(this.#state_listeners, listener),
    getSnapshot: (): StreamsState => this.#snapshot,
  };

  /** `listener` receives changed records. */
  onFleet(listener: (frames: Frame[]) => void): () => void {
    return listen(this.#fleet_listeners, listener);
  }

  /** `listener` is called when changes may have been missed and lists must be read again. */
  onReload(listener: () => void): () => void {
    return listen(this.#reload_listeners, listener);
  }

  onSignedOut(listener: () => void): () => void {
    return listen(this.#signed_out_listeners, listener);
  }

  /**
   * Delivers the events of an agent, each once and in order. The agent stays the selected one until another one is watched.
   * Returns a function that ends the subscription.
   */
  watchAgent(agent_id: string, from: StartPosition, listener: (news: AgentNews) => void): () => void {
    const id = ++this.#last_id;
    this.#subscriptions.set(id, { agent_id, ...from, listener, state: null, has_ended: false });
    this.#feed({ type: 'selected' });
    this.#post({ type: 'subscribe', subscription: id, agent_id, ...from });
    return () => {
      const selected = this.#selected();
      if (!this.#subscriptions.delete(id)) return;
      this.#post({ type: 'unsubscribe', subscription: id });
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
    if (visible) this.reconnect();
  }

  setOnline(online: boolean): void {
    this.#feed({ type: online ? 'online' : 'offline' });
    // Connections from another network are dead, but the browser does not report it.
    if (online) this.#post({ type: 'reconnect', renew: true });
  }

  /** Streams that wait for their next attempt retry within a second, and connections that seem to be dead are replaced. */
  reconnect(): void {
    this.#post({ type: 'reconnect', renew: false });
  }

  /** Call it every `ping_ms`. Reports that this page is still open, for browsers without locks. */
  ping(): void {
    this.#post({ type: 'visible', visible: this.#is_visible });
    const elapsed_ms = Date.now() - this.#pinged_at;
    this.#pinged_at += elapsed_ms;
    // The timer was late: the machine was asleep. Timers of hidden pages are always late.
    if (this.#is_visible && elapsed_ms >= 2 * bounds.ping_ms) this.reconnect();
  }

  /** Connects to a hub, and continues each subscription from its position. */
  connect(): void {
    this.disconnect();
    const hub = this.#options.connectToHub((message) => {
      if (this.#hub === hub) this.#receive(message);
    });
    this.#hub = hub;
    hub.post({ type: 'hello', token: this.#token, visible: this.#is_visible });
    for (const [subscription, { agent_id, after, tail, has_ended }] of this.#subscriptions) {
      if (!has_ended) hub.post({ type: 'subscribe', subscription, agent_id, after, tail });
    }
  }

  disconnect(): void {
    this.#hub?.close();
    this.#hub = null;
  }

  end(): void {
    this.disconnect();
    clearTimeout(this.#offering);
    this.#subscriptions.clear();
  }

  #post(message: ToHub): void {
    this.#hub?.post(message);
  }

  #receive(message: ToClient): void {
    switch (message.type) {
      case 'welcome':
        break;
      case 'signed_out':
        if (message.token === this.#token) emit(this.#signed_out_listeners);
        else this.#post({ type: 'token', token: this.#token });
        break;
      case 'reload':
        emit(this.#reload_listeners);
        break;
      case 'fleet_state':
        this.#fleet = message.state;
        this.#show();
        break;
      case 'changes':
        try {
          emit(this.#fleet_listeners, message.frames);
        } finally {
          this.#post({ type: 'ack', subscription: null });
        }
        break;
      default:
        this.#receiveFor(message);
    }
  }

  /** Handles a message about one subscription. */
  #receiveFor(message: Extract<ToClient, { subscription: number }>): void {
    const subscription = this.#subscriptions.get(message.subscription);
    if (!subscription) return;
    switch (message.type) {
      case 'events':
        subscription.after = message.position;
        try {
          subscription.listener({ type: 'events', frames: message.frames });
        } finally {
          this.#post({ type: 'ack', subscription: message.subscription });
        }
        break;
      case 'state':
        subscription.state = toBadgeInput(message);
        if (subscription === this.#selected() && subscription.state) this.#feed(subscription.state);
        break;
      default:
        this.#end(subscription);
        subscription.listener(
          message.type === 'gone' ? { type: 'gone' } : { type: 'failed', error: message.error },
        );
    }
  }

  #end(subscription: LocalSubscription): void {
    const selected = this.#selected();
    subscription.has_ended = true;
    if (selected === subscription) this.#select();
  }

  #selected(): LocalSubscription | undefined {
    return [...this.#subscriptions.values()].findLast(({ has_ended }) => !has_ended);
  }

  /** Updates the badge after the selected subscription may have changed. */
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
    const next = this.#currentState();
    const keys = Object.keys(next) as (keyof StreamsState)[];
    if (keys.every((key) => next[key] === this.#snapshot[key])) return;
    this.#snapshot = next;
    emit(this.#state_listeners);
  }

  #currentState(): StreamsState {
    return { ...toView(this.#badge, Date.now()), fleet: this.#fleet };
  }
}

function toBadgeInput(message: { state: StreamState; next_attempt_at: number | null }): BadgeInput | null {
  if (message.state === 'connected') return { type: 'connected' };
  if (message.state === 'connecting') return null;
  return { type: 'interrupted', next_attempt_at: message.next_attempt_at };
}

function listen<T>(listeners: Set<T>, listener: T): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function emit<A extends unknown[]>(listeners: Set<(...args: A) => void>, ...args: A): void {
  for (const listener of [...listeners]) listener(...args);
}
