/**
 * Owns every event stream of a browser: one of all changes, and those of the agents that visible pages have selected. It runs
 * in a worker that all pages share or, where there is none, in the page; it knows nothing of either.
 */
import { Client } from '../../client/client.ts';
import { Problem } from '../../core/problem.ts';
import { endsSession } from '../api/ends-session.ts';
import { AgentStream } from './agent-stream.ts';
import { bounds } from './bounds.ts';
import { FleetReader, FleetStream } from './fleet-stream.ts';
import type { ToOwner, ToPage } from './messages.ts';
import { Watch } from './watch.ts';

export interface OwnerOptions {
  url: string;
  fetch?: typeof fetch;
}

/** A page's place at the owner. */
export interface Seat {
  receive(message: ToOwner): void;
  leave(): void;
}

class Page {
  readonly post: (message: ToPage) => void;
  readonly reader: FleetReader;
  /** By the page's numbers, the latest selection last. */
  readonly watches = new Map<number, Watch>();
  is_visible = false;

  constructor(post: (message: ToPage) => void) {
    this.post = post;
    this.reader = new FleetReader(post);
  }
}

export class Owner {
  readonly #options: OwnerOptions;
  /** The one that was shown last comes last. */
  readonly #pages = new Set<Page>();
  readonly #streams = new Map<string, AgentStream>();
  #token: string | null = null;
  #client: Client | null = null;
  #fleet: FleetStream | null = null;

  constructor(options: OwnerOptions) {
    this.#options = options;
  }

  join(post: (message: ToPage) => void): Seat {
    const page = new Page(post);
    return {
      receive: (message) => this.#receive(page, message),
      leave: () => this.#leave(page),
    };
  }

  #receive(page: Page, message: ToOwner): void {
    switch (message.type) {
      case 'hello':
        this.#hello(page, message);
        break;
      case 'token':
        this.#use(message.token);
        break;
      case 'visible':
        this.#show(page, message.visible);
        break;
      case 'watch': {
        const watch = new Watch(message, page.post);
        page.watches.set(watch.id, watch);
        this.#arrange();
        break;
      }
      case 'unwatch':
        page.watches.delete(message.watch);
        this.#arrange();
        break;
      case 'taken':
        this.#taken(page, message.watch);
        break;
      case 'nudge':
        this.#nudge(message.renew);
    }
  }

  #hello(page: Page, { token, visible }: { token: string | null; visible: boolean }): void {
    page.is_visible = visible;
    this.#pages.add(page);
    page.post({ type: 'welcome' });
    if (this.#token === null) this.#use(token);
    else this.#fleet?.greet(page.reader);
  }

  #leave(page: Page): void {
    this.#pages.delete(page);
    if (this.#pages.size === 0) this.#use(null);
    else this.#arrange();
  }

  #show(page: Page, visible: boolean): void {
    // A page that was taken for gone may speak again; and the one that is shown now counts as selected last.
    if (visible && !page.is_visible && this.#pages.delete(page)) this.#pages.add(page);
    page.is_visible = visible;
    this.#arrange();
  }

  #taken(page: Page, watch_id: number | null): void {
    if (watch_id === null) page.reader.taken();
    const watch = watch_id === null ? undefined : page.watches.get(watch_id);
    const stream = watch && this.#streams.get(watch.agent_id);
    if (watch && stream?.has(watch)) stream.taken(watch);
    else watch?.taken();
  }

  #use(token: string | null): void {
    if (token === this.#token) return;
    this.#fleet?.close();
    this.#fleet = null;
    for (const stream of this.#streams.values()) stream.close();
    this.#streams.clear();
    this.#token = token;
    this.#client = null;
    if (token === null) return;
    this.#client = new Client({ ...this.#options, token });
    this.#openFleet(this.#client);
    this.#arrange();
  }

  #openFleet(client: Client): void {
    this.#fleet = new FleetStream({
      client,
      readers: () => [...this.#pages].map(({ reader }) => reader),
      onFailure: (error) => {
        this.#fleet = null;
        if (endsSession(error)) this.#signOut();
      },
    });
  }

  #nudge(renew: boolean): void {
    if (this.#fleet) this.#fleet.nudge(renew);
    else if (this.#client) this.#openFleet(this.#client);
    for (const stream of this.#streams.values()) stream.nudge(renew);
  }

  /** Opens and closes streams so that they are those of the agents selected last on pages that are seen. */
  #arrange(): void {
    const client = this.#client;
    if (client === null) return;
    const wanted = new Map<string, Watch[]>();
    const shown = [...this.#pages].filter(({ is_visible }) => is_visible);
    const watches = shown.flatMap((page) => [...page.watches.values()]).filter(({ is_over }) => !is_over);
    for (const watch of watches.reverse()) {
      const found = wanted.get(watch.agent_id);
      if (found) found.push(watch);
      else if (wanted.size < bounds.agents_max) wanted.set(watch.agent_id, [watch]);
    }
    for (const [agent_id, stream] of this.#streams) {
      stream.keep(wanted.get(agent_id) ?? []);
      if (!stream.is_empty) continue;
      stream.close();
      this.#streams.delete(agent_id);
    }
    for (const [agent_id, those] of wanted) {
      let stream = this.#streams.get(agent_id);
      if (!stream) {
        stream = new AgentStream({
          client,
          agent_id,
          all: () => this.#watchesOf(agent_id),
          onFailure: (error) => this.#fail(agent_id, error),
        });
        this.#streams.set(agent_id, stream);
      }
      for (const watch of those) if (!stream.has(watch)) stream.join(watch);
    }
  }

  #watchesOf(agent_id: string): Watch[] {
    return [...this.#pages].flatMap((page) =>
      [...page.watches.values()].filter((watch) => watch.agent_id === agent_id),
    );
  }

  #fail(agent_id: string, error: unknown): void {
    if (endsSession(error)) {
      this.#signOut();
      return;
    }
    this.#streams.get(agent_id)?.close();
    this.#streams.delete(agent_id);
    const is_gone = error instanceof Problem && error.kind === 'not_found';
    const words = error instanceof Error ? error.message : String(error);
    for (const watch of this.#watchesOf(agent_id)) {
      if (!watch.is_over) watch.end(is_gone ? { type: 'gone' } : { type: 'failed', error: words });
    }
    this.#arrange();
  }

  #signOut(): void {
    const token = this.#token;
    this.#use(null);
    if (token !== null) for (const { post } of this.#pages) post({ type: 'signed_out', token });
  }
}
