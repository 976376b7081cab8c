/**
 * A remote node: it serves only the sessions of this machine, behind a gRPC listener. It has no database, no HTTP server and
 * no users. Its state consists of the sessions on disk, its certificates and the position of the last link.
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { systemClock } from '../base/clock.ts';
import type { Logger } from '../base/log.ts';
import { version } from '../base/version.ts';
import { type Config, parseAddress } from '../core/config.ts';
import { invalid, problems } from '../core/problem.ts';
import { joinRoutes, renewalHandlers } from '../link/node/join.ts';
import { type NodeServer, openNodeServer } from '../link/node/server.ts';
import { NodeTrust } from '../link/trust/node-trust.ts';
import { WorktreeRoots } from '../node/folders/worktree-roots.ts';
import { type ActorBackend, actorRoutes } from '../server/actors/service.ts';
import { announceActors } from './actor-address.ts';
import { openConfiguredLog } from './configured-log.ts';
import { NodeState } from './node-state.ts';
import { type OpenedNode, openNode } from './open-node.ts';
import { type StartContext, start } from './start.ts';

export interface AgentNode {
  id: string;
  /** `host:port` of the listener. */
  listen: string;
  data_dir: string;
  adopted: number;
  /** Whether a plane may still join with the configured token. */
  joinable: boolean;
  warnings: string[];
  log: Logger;
  reopenLog(): void;
  /** Ends the link and closes the listener. Agents keep running. */
  close(): Promise<void>;
}

/** Throws a Problem if the configuration or the data directory is not usable. */
export function startNode(config: Config, env: NodeJS.ProcessEnv): Promise<AgentNode> {
  return start(config, async (context) => {
    const node = await open(config, env, context);
    context.listening(`https://${node.listen}`);
    return node;
  });
}

async function open(
  config: Config,
  env: NodeJS.ProcessEnv,
  { data_dir, opened }: StartContext,
): Promise<AgentNode> {
  const clock = systemClock;
  const log_file = openConfiguredLog(config);
  const { log } = log_file;
  const id = config.get('server.node_id')!;
  const worktree_root = () => config.get('worktree.default_root');
  const local = await openNode(
    {
      runs_agents: true,
      id,
      config,
      data_dir,
      env,
      clock,
      log,
      safe_paths: () => config.get('safe_paths'),
      repo_roots: () => config.get('worktree.repo_roots'),
      worktree_root,
      roots: await WorktreeRoots.open(data_dir),
    },
    opened,
  );
  const { node, actor_files } = local;
  const warnings = [...config.warnings, ...local.warnings];
  const state = await NodeState.open(join(data_dir, 'node.json'), log);
  opened.push(() => state.close());
  const trust = await openTrust(config, { id, log, state });
  opened.push(() => trust.close());
  if (trust.mode === 'disabled') {
    warnings.push('internal_grpc.security.mode is "disabled": the link is not encrypted');
  }
  for (const warning of warnings) log.warn(warning);

  const server = await openServer(config, { id, log, local, trust, state });
  opened.push(() => server.close());
  const address = parseAddress(config.get('internal_grpc.listen'))!;
  const announce = () =>
    announceActors({ files: actor_files, ...address, port: server.port, identity: trust.identity(), log });
  await announce();
  trust.onChange(() => void announce());
  const adopted = (await node.health()).sessions_live;
  const listen = `${address.host.includes(':') ? `[${address.host}]` : address.host}:${server.port}`;
  log.info({ version, node_id: id, listen, data_dir, adopted, trust: trust.state }, 'node started');
  return {
    id,
    listen,
    data_dir,
    adopted,
    joinable: trust.joinable,
    warnings,
    log,
    reopenLog: () => log_file.reopen(),
    close: async () => {
      for (const err of await opened.close()) log.error({ err }, 'a part of the node could not be closed');
      log.info('node stopped; agents keep running');
    },
  };
}

/** The gRPC listener for the plane, and for agents on this machine. */
async function openServer(
  config: Config,
  parts: { id: string; log: Logger; local: OpenedNode; trust: NodeTrust; state: NodeState },
): Promise<NodeServer> {
  const { log, local, trust, state } = parts;
  /** The plane verifies every call. On a node, no certificate identifies an operator. */
  const passUp: ActorBackend['call'] = async ({ method, params, token }) => {
    if (token === null) throw problems.actorUnauthorized();
    return server.upcall(method, params, token);
  };
  const server: NodeServer = await openNodeServer({
    ...parseAddress(config.get('internal_grpc.listen'))!,
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
    node: local.node,
    instance_id: randomUUID(),
    disk_id: state.disk_id,
    has_default_root: () => config.get('worktree.default_root') !== null,
    worktree_root_problem: async (root) => {
      try {
        await local.folders.checkRoot(root);
        return null;
      } catch (error) {
        return (error as Error).message;
      }
    },
    latest: state,
    clock: systemClock,
    log,
  });
  return server;
}

function openTrust(
  config: Config,
  { id: node_id, log, state }: { id: string; log: Logger; state: NodeState },
): Promise<NodeTrust> {
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
    onJoin: (plane_id) => state.forgetOthers(plane_id),
    clock: systemClock,
    log,
  }).catch((error: Error) => {
    throw invalid(error.message, 'invalid_config');
  });
}
