/**
 * A remote Agent Node as a value: the runtime of this machine behind a gRPC door, and nothing else. No database, no HTTP,
 * no users: its state is the sessions on its disk, its certificates and the place of the last link.
 */
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { systemClock } from '../base/clock.ts';
import { writeFileAtomic } from '../base/files.ts';
import type { Logger } from '../base/log.ts';
import { version } from '../base/version.ts';
import { type Config, parseAddress } from '../contract/config.ts';
import { invalid, problems } from '../domain/problem.ts';
import { NodeTrust } from '../link/node-trust.ts';
import type { LinkPosition } from '../link/wire.ts';
import { type ActorSurface, actorRoutes } from '../rpc-actor/service.ts';
import { type Door, openDoor } from '../rpc-node/door.ts';
import { joinRoutes, renewalHandlers } from '../rpc-node/join.ts';
import { announceActors } from './actor-surface.ts';
import { openLogOf, openMachine } from './machine.ts';
import { type Held, start } from './start.ts';

export interface AgentNode {
  id: string;
  /** `host:port` of the door. */
  listen: string;
  data_dir: string;
  adopted: number;
  /** Whether a plane may still join with the configured token. */
  joinable: boolean;
  warnings: string[];
  log: Logger;
  reopenLog(): void;
  /** Ends the link and the door; agents go on. */
  close(): Promise<void>;
}

/** Throws a Problem when the configuration or the data directory refuses. */
export function startNode(config: Config, env: NodeJS.ProcessEnv): Promise<AgentNode> {
  return start(config, async (held) => {
    const node = await open(config, env, held);
    held.listening(`https://${node.listen}`);
    return node;
  });
}

async function open(config: Config, env: NodeJS.ProcessEnv, { data_dir, opened }: Held): Promise<AgentNode> {
  const clock = systemClock;
  const logFile = openLogOf(config);
  const { log } = logFile;
  const id = config.get('server.node_id')!;
  const worktree_root = () => config.get('worktree.default_root');
  const machine = await openMachine(
    {
      id,
      config,
      data_dir,
      env,
      clock,
      log,
      safe_paths: () => config.get('safe_paths'),
      repo_roots: () => config.get('worktree.repo_roots'),
      worktree_root,
    },
    opened,
  );
  const { node, actor_files } = machine;
  const warnings = [...config.warnings, ...machine.warnings];
  const trust = await openTrust(config, id, log);
  opened.push(() => trust.close());
  if (trust.mode === 'disabled') {
    warnings.push('internal_grpc.security.mode is "disabled": the link is not encrypted');
  }
  for (const warning of warnings) log.warn(warning);

  const state = await NodeState.open(join(data_dir, 'node.json'));
  const address = parseAddress(config.get('internal_grpc.listen'))!;
  /** The plane judges every call. Nobody is an operator here by a certificate. */
  const passUp: ActorSurface['call'] = async ({ method, params, token }) => {
    if (token === null) throw problems.actorUnauthorized();
    return door.upcall(method, params, token);
  };
  const door: Door = await openDoor({
    ...address,
    tls:
      trust.mode === 'disabled'
        ? null
        : { options: trust.tlsOptions(), serve: (server) => trust.serve(server) },
    authorize: (call) => trust.authorize(call),
    routes: (router) => {
      joinRoutes({ trust, log })(router);
      actorRoutes({ call: passUp, log })(router);
    },
    renewal: renewalHandlers({ trust, log }),
    node,
    instance_id: randomUUID(),
    disk_id: state.disk_id,
    has_default_root: () => worktree_root() !== null,
    worktree_root_problem: async (root) => {
      try {
        await machine.folders.checkRoot(root);
        return null;
      } catch (error) {
        return (error as Error).message;
      }
    },
    latest: state,
    clock,
    log,
  });
  opened.push(() => door.close());
  const announce = () =>
    announceActors({ files: actor_files, ...address, port: door.port, identity: trust.identity(), log });
  await announce();
  trust.onChange(() => void announce());
  const adopted = (await node.health()).sessions_live;
  const listen = `${address.host.includes(':') ? `[${address.host}]` : address.host}:${door.port}`;
  log.info({ version, node_id: id, listen, data_dir, adopted, standing: trust.standing }, 'node is up');
  return {
    id,
    listen,
    data_dir,
    adopted,
    joinable: trust.joinable,
    warnings,
    log,
    reopenLog: () => logFile.reopen(),
    close: async () => {
      for (const err of await opened.close()) log.error({ err }, 'a part of the node did not close');
      log.info('node has stopped; agents go on');
    },
  };
}

function openTrust(config: Config, node_id: string, log: Logger): Promise<NodeTrust> {
  const configured = <K extends Parameters<Config['get']>[0]>(key: K) =>
    config.entry(key).origin === 'default' ? null : config.get(key);
  return NodeTrust.open({
    cert_dir: config.get('internal_grpc.security.cert_dir'),
    node_id,
    mode: configured('internal_grpc.security.mode') as 'tls' | 'mtls' | 'disabled' | null,
    shared_secret: config.get('internal_grpc.auth.shared_secret'),
    issuer: configured('internal_grpc.auth.issuer') as string | null,
    audience: configured('internal_grpc.auth.audience') as string | null,
    bootstrap_token: config.get('internal_grpc.bootstrap.token'),
    actors: true,
    clock: systemClock,
    log,
  }).catch((error: Error) => {
    throw invalid(error.message, 'invalid_config');
  });
}

const stateSchema = z.object({
  disk_id: z.string(),
  latest: z.object({ plane_id: z.string(), incarnation: z.number(), epoch: z.number() }).nullable(),
});

/** What a node remembers of itself: which disk this is, and the latest link. */
class NodeState {
  readonly #path: string;
  #state: z.infer<typeof stateSchema>;

  private constructor(path: string, state: z.infer<typeof stateSchema>) {
    this.#path = path;
    this.#state = state;
  }

  /** Throws when the file is there and cannot be read: a new identity would look like another disk. */
  static async open(path: string): Promise<NodeState> {
    const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null;
      throw error;
    });
    if (text !== null) return new NodeState(path, stateSchema.parse(JSON.parse(text)));
    const state = new NodeState(path, { disk_id: randomUUID(), latest: null });
    await state.#write();
    return state;
  }

  get disk_id(): string {
    return this.#state.disk_id;
  }

  get(): LinkPosition | null {
    return this.#state.latest;
  }

  async set(latest: LinkPosition): Promise<void> {
    this.#state = { ...this.#state, latest };
    await this.#write();
  }

  #write(): Promise<void> {
    return writeFileAtomic(this.#path, `${JSON.stringify(this.#state)}\n`);
  }
}
