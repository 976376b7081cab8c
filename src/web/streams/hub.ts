/**
 * Holds every event stream of a browser: the stream of all changes, and those of the agents that visible pages have
 * selected. It runs in a worker that all pages share or, without shared workers, in the page.
 */
import { Client } from '../../client/client.ts';
import { Problem } from '../../core/problem.ts';
import { endsSession } from '../api/ends-session.ts';
import { AgentStream } from './agent-stream.ts';
import { bounds } from './bounds.ts';
import { FleetReader, FleetStream } from './fleet-stream.ts';
import type { ToClient, ToHub } from './messages.ts';
import { Subscription } from './subscription.ts';

export interface HubOptions {
  url: string;
  fetch?: typeof fetch;
}

/** A page's connection to the hub. */
export interface ClientHandle {
  receive(message: ToHub): void;
  leave(): void;
}

class HubClient {
  readonly post: (message: ToClient) => void;
  readonly reader: FleetReader;
  /** By the ids that the page chose; the latest selection comes last. */
  readonly subscriptions = new Map<number, Subscription>();
  is_visible = false;

  constructor(post: (message: ToClient) => void) {
    this.post = post;
    this.reader = new FleetReader(post);
  }
}

export class StreamHub {
  readonly #options: HubOptions;
  /** The page that was shown last comes last. */
  readonly #clients = new Set<HubClient>();
  readonly #streams = new Map<string, AgentStream>();
  #token: string | null = null;
  #http: Client | null = null;
  #fleet: FleetStream | null = null;

  constructor(options: HubOptions) {
    this.#options = options;
  }

  join(post: (message: ToClient) => void): ClientHandle {
    const client = new HubClient(post);
    return {
      receive: (message) => this.#receive(client, message),
      leave: () => this.#leave(client),
    };
  }

  #receive(client: HubClient, message: ToHub): void {
    switch (message.type) {
      case 'hello':
        this.#hello(client, message);
        break;
      case 'token':
        this.#setToken(message.token);
        break;
      case 'visible':
        this.#show(client, message.visible);
        break;
      case 'subscribe': {
        const subscription = new Subscription(message, client.post);
        client.subscriptions.set(subscription.id, subscription);
        this.#updateStreams();
        break;
      }
      case 'unsubscribe':
        client.subscriptions.delete(message.subscription);
        this.#updateStreams();
        break;
      case 'ack':
        this.#ack(client, message.subscription);
        break;
      case 'reconnect':
        this.#reconnect(message.renew);
    }
  }

  #hello(client: HubClient, { token, visible }: { token: string | null; visible: boolean }): void {
    client.is_visible = visible;
    this.#clients.add(client);
    client.post({ type: 'welcome' });
    if (this.#token === null) this.#setToken(token);
    else this.#fleet?.sendCurrentState(client.reader);
  }

  #leave(client: HubClient): void {
    this.#clients.delete(client);
    if (this.#clients.size === 0) this.#setToken(null);
    else this.#updateStreams();
  }

  #show(client: HubClient, visible: boolean): void {
    // The page may have counted as closed. The page that is shown now counts as the last selected one.
    if (visible && !client.is_visible && this.#clients.delete(client)) this.#clients.add(client);
    client.is_visible = visible;
    this.#updateStreams();
  }

  #ack(client: HubClient, subscription_id: number | null): void {
    if (subscription_id === null) client.reader.ack();
    const subscription = subscription_id === null ? undefined : client.subscriptions.get(subscription_id);
    const stream = subscription && this.#streams.get(subscription.agent_id);
    if (subscription && stream?.has(subscription)) stream.ack(subscription);
    else subscription?.ack();
  }

  #setToken(token: string | null): void {
    if (token === this.#token) return;
    this.#fleet?.close();
    this.#fleet = null;
    for (const stream of this.#streams.values()) stream.close();
    this.#streams.clear();
    this.#token = token;
    this.#http = null;
    if (token === null) return;
    this.#http = new Client({ ...this.#options, token });
    this.#openFleet(this.#http);
    this.#updateStreams();
  }

  #openFleet(client: Client): void {
    this.#fleet = new FleetStream({
      client,
      readers: () => [...this.#clients].map(({ reader }) => reader),
      onFailure: (error) => {
        if (endsSession(error)) this.#signOut();
      },
    });
  }

  #reconnect(always_renew: boolean): void {
    const renew = always_renew || this.#fleet?.is_overdue === true;
    this.#fleet?.reconnect(renew);
    for (const stream of this.#streams.values()) stream.reconnect(renew);
  }

  /** Opens and closes streams, so that the agents selected last on visible pages have one. */
  #updateStreams(): void {
    const http = this.#http;
    if (http === null) return;
    const by_agent = new Map<string, Subscription[]>();
    const shown = [...this.#clients].filter(({ is_visible }) => is_visible);
    const subscriptions = shown
      .flatMap((client) => [...client.subscriptions.values()])
      .filter(({ has_ended }) => !has_ended);
    for (const subscription of subscriptions.reverse()) {
      const found = by_agent.get(subscription.agent_id);
      if (found) found.push(subscription);
      else if (by_agent.size < bounds.agents_max) by_agent.set(subscription.agent_id, [subscription]);
    }
    for (const [agent_id, stream] of this.#streams) {
      stream.removeAllExcept(by_agent.get(agent_id) ?? []);
      if (!stream.is_empty) continue;
      stream.close();
      this.#streams.delete(agent_id);
    }
    for (const [agent_id, agent_subscriptions] of by_agent) {
      let stream = this.#streams.get(agent_id);
      if (!stream) {
        stream = new AgentStream({
          client: http,
          agent_id,
          all: () => this.#subscriptionsOf(agent_id),
          onFailure: (error) => this.#fail(agent_id, error),
        });
        this.#streams.set(agent_id, stream);
      }
      for (const subscription of agent_subscriptions)
        if (!stream.has(subscription)) stream.join(subscription);
    }
  }

  #subscriptionsOf(agent_id: string): Subscription[] {
    return [...this.#clients].flatMap((client) =>
      [...client.subscriptions.values()].filter((subscription) => subscription.agent_id === agent_id),
    );
  }

  #fail(agent_id: string, error: unknown): void {
    if (endsSession(error)) {
      this.#signOut();
      return;
    }
    this.#streams.get(agent_id)?.close();
    this.#streams.delete(agent_id);
    // A proxy may answer 404 as well.
    const is_gone = error instanceof Problem && error.code === 'agent_not_found';
    const message = error instanceof Error ? error.message : String(error);
    for (const subscription of this.#subscriptionsOf(agent_id)) {
      if (!subscription.has_ended)
        subscription.end(is_gone ? { type: 'gone' } : { type: 'failed', error: message });
    }
    this.#updateStreams();
  }

  #signOut(): void {
    const token = this.#token;
    this.#setToken(null);
    if (token !== null) for (const { post } of this.#clients) post({ type: 'signed_out', token });
  }
}
