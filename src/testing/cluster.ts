/** Several real planes that share a database, and a node, each in a process of its own. */
import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Problem } from '../core/problem.ts';
import type { PlaneRecord } from '../features/cluster/rules.ts';
import { TestAgentNode, WITH_NODES } from './agent-node.ts';
import { ASKER, Conversation, retryWhileUnreachable } from './conversation.ts';
import { openPace } from './pace.ts';
import { TestPlane } from './plane.ts';
import { createDatabase, type TestDatabase } from './postgres.ts';
import { PostgresProxy } from './postgres-proxy.ts';

/** A takeover takes a few seconds. A test that waits longer fails with what it sees, because its timeout says nothing. */
const CHANGE_MS_MAX = 60_000;

export interface ClusterOptions {
  /** The number of nodes; absent: one. */
  nodes?: number;
  /** Additional environment variables of a plane. */
  envOf?: (name: string) => Record<string, string>;
  /** The `svc` to run; absent: the one in this source tree. */
  program?: string;
  /** An empty database; absent: one on the server of the test run. The cluster drops it. */
  database?: TestDatabase;
}

/** The environment of one of several planes. */
export function clusterEnv(name: string, database_url: string): Record<string, string> {
  return {
    ...WITH_NODES,
    SVC_DATABASE_URL: database_url,
    SVC_SERVER_LOCAL_NODE: 'false',
    SVC_CLUSTER_LISTEN: '127.0.0.1:0',
    SVC_CLUSTER_NAME: name,
  };
}

export class TestCluster {
  readonly database: TestDatabase;
  /** The first one is active at first. */
  readonly planes: TestPlane[] = [];
  /** In front of PostgreSQL, one for each plane. */
  readonly proxies: PostgresProxy[] = [];
  readonly nodes: TestAgentNode[] = [];
  readonly #program: { program?: string };

  private constructor(database: TestDatabase, program: string | undefined) {
    this.database = database;
    this.#program = program === undefined ? {} : { program };
  }

  /** Starts planes with these names, and nodes. */
  static async open(names: readonly string[], options: ClusterOptions = {}): Promise<TestCluster> {
    const { nodes = 1, envOf, program, database = await createDatabase() } = options;
    const cluster = new TestCluster(database, program);
    try {
      for (const name of names) await cluster.#addPlane(name, envOf?.(name));
      for (let n = 1; n <= nodes; n++) {
        cluster.nodes.push(
          await TestAgentNode.open(cluster.planes[0]!, { id: `n${n}`, ...cluster.#program }),
        );
      }
      return cluster;
    } catch (error) {
      await cluster.close();
      throw error;
    }
  }

  async #addPlane(name: string, env: Record<string, string> = {}): Promise<void> {
    const plane = await this.prepare(name, env);
    const first = this.planes[0]!;
    if (plane !== first) await this.copyKey(plane);
    await plane.start();
    if (plane === first) await plane.join();
    else plane.signInLike(first);
  }

  /** Prepares another plane. Does not start it, and it has no key yet. */
  async prepare(name: string, env: Record<string, string> = {}): Promise<TestPlane> {
    const proxy = await PostgresProxy.open(this.database.url);
    this.proxies.push(proxy);
    const plane = await TestPlane.prepare({
      env: { ...clusterEnv(name, proxy.url), ...env },
      ...this.#program,
    });
    this.planes.push(plane);
    return plane;
  }

  /** Gives a plane the key of the first one. */
  async copyKey(to: TestPlane): Promise<void> {
    await mkdir(to.data_dir, { recursive: true, mode: 0o700 });
    await copyFile(join(this.planes[0]!.data_dir, 'secret.key'), join(to.data_dir, 'secret.key'));
  }

  proxyOf(plane: TestPlane): PostgresProxy {
    return this.proxies[this.planes.indexOf(plane)]!;
  }

  get node(): TestAgentNode {
    return this.nodes[0]!;
  }

  /** The planes as one of them reports them, once they fulfil a condition. */
  async until(plane: TestPlane, condition: (planes: PlaneRecord[]) => boolean): Promise<PlaneRecord[]> {
    const end_ms = performance.now() + CHANGE_MS_MAX;
    for (const pace = openPace(); ; await pace()) {
      const planes = await retryWhileUnreachable(() => plane.client.call('listPlanes', {}));
      if (condition(planes)) return planes;
      if (performance.now() > end_ms) throw new Error(`the planes are still ${JSON.stringify(planes)}`);
    }
  }

  /** Which plane is active, and another one. */
  async roles(): Promise<{ active: TestPlane; standby: TestPlane }> {
    const running = this.planes.filter((plane) => plane.isRunning);
    const planes = await this.until(running[0]!, (found) => found[0]?.state === 'active');
    const active = running.find((plane) => plane.env.SVC_CLUSTER_NAME === planes[0]!.name)!;
    return { active, standby: running.find((plane) => plane !== active)! };
  }

  /** An agent that asks. A plane that has just become active may not be linked to the node yet, and refuses to start it. */
  async startAsker(plane: TestPlane, home = this.node): Promise<Conversation> {
    for (const pace = openPace(); ; await pace()) {
      try {
        return await Conversation.start(plane, ASKER, { prompt: 'Ask.', home });
      } catch (error) {
        if (!(error instanceof Problem) || error.code !== 'node_unreachable') throw error;
      }
    }
  }

  /** Ends all processes, deletes their folders, and drops the database. */
  async close(): Promise<void> {
    const parts = [...this.nodes, ...this.planes, ...this.proxies];
    try {
      const closed = await Promise.allSettled(parts.map((part) => part.close()));
      const failed = closed.find((result) => result.status === 'rejected');
      if (failed) throw failed.reason;
    } finally {
      await this.database.drop();
    }
  }
}
