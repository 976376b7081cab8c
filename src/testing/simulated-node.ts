/**
 * A node behind an unreliable network: every connection is cut after a random number of bytes, from a seed. Like a plane, it
 * links again, repeats unanswered calls, and passes on each fact once.
 */
import { sleep } from '../base/async.ts';
import type { StreamName } from '../core/event.ts';
import type {
  Folders,
  Node,
  NodeHealth,
  NodeSink,
  ProgramFinding,
  ProgramQuestion,
  SessionFact,
  SessionView,
  StopReport,
} from '../core/node.ts';
import { isOutOfReach } from '../core/problem.ts';
import type { Launch, StreamSizes } from '../core/session.ts';
import type { RemoteNode } from '../link/plane/remote-node.ts';
import { FlakyProxy } from './flaky-proxy.ts';
import { openTestNode } from './local-node.ts';
import type { NodeUnderTest } from './node-suite.ts';
import { openTestNodeServer, remoteNode } from './remote-node.ts';
import { random } from './writers.ts';

/** The bytes after which a connection is cut: always enough to open a link, but usually fewer than a test needs. */
const CONNECTION_BYTES = { least: 15_000, most: 300_000 };

export function openerOfSimulated(seed: number): (data_dir: string) => Promise<NodeUnderTest> {
  const next = random(seed);
  return async (data_dir) => {
    let local = await openTestNode(data_dir);
    let server = await openTestNodeServer(local);
    const proxy = await FlakyProxy.open(server.port);
    const { least, most } = CONNECTION_BYTES;
    proxy.weather = {
      ...proxy.weather,
      cut_after_bytes: () => least + Math.floor(next() * (most - least)),
    };
    let node = new RetryingNode((onDown) => remoteNode(() => proxy.port, { onDown }));
    const end = async () => {
      await node.detach();
      await server.close();
      await local.close();
    };
    return {
      node,
      reopen: async () => {
        await end();
        local = await openTestNode(data_dir);
        server = await openTestNodeServer(local);
        proxy.target_port = server.port;
        node = new RetryingNode((onDown) => remoteNode(() => proxy.port, { onDown }));
        return node;
      },
      close: async () => {
        await end();
        await proxy.close();
      },
    };
  };
}

class RetryingNode implements Node {
  readonly folders: Folders;
  readonly #remote: RemoteNode;
  /** Number of the last fact that was passed on, by session. */
  readonly #facts = new Map<string, number>();
  #sink: NodeSink | null = null;

  constructor(make: (onDown: () => void) => RemoteNode) {
    this.#remote = make(() => void this.#link(false));
    this.folders = this.#remote.folders;
  }

  get id(): string {
    return this.#remote.id;
  }

  async attach(sink: NodeSink): Promise<void> {
    this.#sink = sink;
    await this.#link(true);
  }

  async detach(): Promise<void> {
    this.#sink = null;
    await this.#remote.detach();
  }

  start(launch: Launch): Promise<SessionView> {
    return this.#patiently(() => this.#remote.start(launch));
  }

  stop(session_id: string, grace_ms: number): Promise<StopReport> {
    return this.#patiently(() => this.#remote.stop(session_id, grace_ms));
  }

  input(session_id: string, offset: number, data: Uint8Array, eof: boolean): Promise<number> {
    return this.#patiently(() => this.#remote.input(session_id, offset, data, eof));
  }

  read(
    session_id: string,
    stream: StreamName,
    from: number,
    max: number,
    into?: Uint8Array,
  ): Promise<Uint8Array> {
    return this.#patiently(() => this.#remote.read(session_id, stream, from, max, into));
  }

  committed(session_id: string, offsets: StreamSizes, fact: number): void {
    this.#remote.committed(session_id, offsets, fact);
  }

  stepOutput(session_id: string, max: number): Promise<Uint8Array | null> {
    return this.#patiently(() => this.#remote.stepOutput(session_id, max));
  }

  forgetOwner(owner_id: string): Promise<void> {
    return this.#patiently(() => this.#remote.forgetOwner(owner_id));
  }

  forget(session_id: string): Promise<void> {
    return this.#patiently(() => this.#remote.forget(session_id));
  }

  reach(): Promise<void> {
    return this.#remote.reach();
  }

  health(): Promise<NodeHealth> {
    return this.#patiently(() => this.#remote.health());
  }

  probe(programs: readonly ProgramQuestion[]): Promise<ProgramFinding[]> {
    return this.#patiently(() => this.#remote.probe(programs));
  }

  async #link(first: boolean): Promise<void> {
    while (this.#sink) {
      try {
        return await this.#remote.attach(this.#once(this.#sink, first));
      } catch (error) {
        if (!isOutOfReach(error)) throw error;
        await sleep(10);
      }
    }
  }

  /** Passes on one snapshot. New facts of later snapshots are passed on one by one. */
  #once(sink: NodeSink, fresh: boolean): NodeSink {
    const deliver = (fact: SessionFact) => {
      if (fact.number <= (this.#facts.get(fact.session_id) ?? 0)) return;
      this.#facts.set(fact.session_id, fact.number);
      sink.fact(fact);
    };
    return {
      fact: deliver,
      wake: (session_id) => sink.wake(session_id),
      snapshot: async (views) => {
        if (!fresh) return views.flatMap((view) => view.facts).forEach(deliver);
        for (const view of views) this.#facts.set(view.session_id, view.facts.at(-1)?.number ?? 0);
        await sink.snapshot(views);
      },
    };
  }

  async #patiently<T>(call: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await call();
      } catch (error) {
        if (this.#sink === null || !isOutOfReach(error)) throw error;
        await sleep(10);
      }
    }
  }
}
