/**
 * A node behind an unreliable network: every connection is cut after a random number of bytes, which a seed determines. Like a
 * plane, it reconnects, repeats unanswered calls, and reports each fact once.
 */
import { sleep } from '../base/async.ts';
import type { StreamName } from '../core/event.ts';
import type {
  Folders,
  Link,
  Node,
  NodeHealth,
  NodeSink,
  ProgramFinding,
  ProgramQuestion,
  SessionFact,
  SessionView,
  StopReport,
} from '../core/node.ts';
import { isUnreachable } from '../core/problem.ts';
import type { Launch, StreamSizes } from '../core/session.ts';
import type { RemoteNode } from '../link/plane/remote-node.ts';
import { FlakyProxy } from './flaky-proxy.ts';
import { openTestNode, sharedLauncher } from './local-node.ts';
import type { NodeUnderTest } from './node-suite.ts';
import { openTestNodeServer, remoteNode } from './remote-node.ts';
import { random } from './writers.ts';

/** The bytes after which a connection is cut: always enough to open a link, but usually fewer than a test needs. */
const CONNECTION_BYTES = { min: 15_000, max: 300_000 };

export function simulatedNodeOpener(seed: number): (data_dir: string) => Promise<NodeUnderTest> {
  const next = random(seed);
  return async (data_dir) => {
    let local = await openTestNode(data_dir, { launcher: sharedLauncher });
    let server = await openTestNodeServer(local);
    const proxy = await FlakyProxy.open(server.port);
    const { min: least, max: most } = CONNECTION_BYTES;
    proxy.conditions = {
      ...proxy.conditions,
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
        local = await openTestNode(data_dir, { launcher: sharedLauncher });
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
  /** The number of the last fact that was reported, by session. */
  readonly #facts = new Map<string, number>();
  #sink: NodeSink | null = null;

  constructor(make: (onDown: () => void) => RemoteNode) {
    this.#remote = make(() => void this.#link(false));
    this.folders = this.#remote.folders;
  }

  get id(): string {
    return this.#remote.id;
  }

  get link(): Link | null {
    return this.#remote.link;
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
    return this.#retry(() => this.#remote.start(launch));
  }

  stop(session_id: string, grace_ms: number): Promise<StopReport> {
    return this.#retry(() => this.#remote.stop(session_id, grace_ms));
  }

  input(session_id: string, offset: number, data: Uint8Array, eof: boolean): Promise<number> {
    return this.#retry(() => this.#remote.input(session_id, offset, data, eof));
  }

  read(
    session_id: string,
    stream: StreamName,
    from: number,
    max: number,
    into?: Uint8Array,
  ): Promise<Uint8Array> {
    return this.#retry(() => this.#remote.read(session_id, stream, from, max, into));
  }

  committed(session_id: string, offsets: StreamSizes, fact: number): void {
    this.#remote.committed(session_id, offsets, fact);
  }

  stepOutput(session_id: string, max: number): Promise<Uint8Array | null> {
    return this.#retry(() => this.#remote.stepOutput(session_id, max));
  }

  forgetOwner(owner_id: string): Promise<void> {
    return this.#retry(() => this.#remote.forgetOwner(owner_id));
  }

  forget(session_id: string): Promise<void> {
    return this.#retry(() => this.#remote.forget(session_id));
  }

  reach(): Promise<void> {
    return this.#remote.reach();
  }

  health(): Promise<NodeHealth> {
    return this.#retry(() => this.#remote.health());
  }

  probe(programs: readonly ProgramQuestion[]): Promise<ProgramFinding[]> {
    return this.#retry(() => this.#remote.probe(programs));
  }

  async #link(first: boolean): Promise<void> {
    while (this.#sink) {
      try {
        return await this.#remote.attach(this.#deduplicated(this.#sink, first));
      } catch (error) {
        if (!isUnreachable(error)) throw error;
        await sleep(10);
      }
    }
  }

  /** Reports only the first snapshot as such, and the new facts of later snapshots one by one. */
  #deduplicated(sink: NodeSink, first: boolean): NodeSink {
    const deliver = (fact: SessionFact) => {
      if (fact.number <= (this.#facts.get(fact.session_id) ?? 0)) return;
      this.#facts.set(fact.session_id, fact.number);
      sink.fact(fact);
    };
    return {
      fact: deliver,
      wake: (session_id, stream) => sink.wake(session_id, stream),
      snapshot: async (views, link, unreadable) => {
        if (!first) return views.flatMap((view) => view.facts).forEach(deliver);
        for (const view of views) this.#facts.set(view.session_id, view.facts.at(-1)?.number ?? 0);
        await sink.snapshot(views, link, unreadable);
      },
    };
  }

  async #retry<T>(call: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await call();
      } catch (error) {
        if (this.#sink === null || !isUnreachable(error)) throw error;
        await sleep(10);
      }
    }
  }
}
