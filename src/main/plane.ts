/**
 * The plane: the core, the list of its features in dependency order, and its listeners. `svc serve` and tests start it. It
 * contains no rules itself.
 */
import type { Logger } from '../base/log.ts';
import { version } from '../base/version.ts';
import type { Config } from '../core/config.ts';
import type { Problem } from '../core/problem.ts';
import { openAccounts } from '../features/accounts/index.ts';
import type { JoinChallenge } from '../features/accounts/join.ts';
import { openActorMethods } from '../features/actors/index.ts';
import { openAgents } from '../features/agents/index.ts';
import { openAudit } from '../features/audit/index.ts';
import { openCluster } from '../features/cluster/index.ts';
import { openConversations } from '../features/conversations/index.ts';
import { openElicitations } from '../features/elicitations/index.ts';
import type { Core } from '../features/feature.ts';
import { FeatureSet } from '../features/feature-set.ts';
import { openMailbox } from '../features/mailbox/index.ts';
import { openNodes } from '../features/nodes/index.ts';
import { openNotifications } from '../features/notifications/index.ts';
import { openPasskeys } from '../features/passkeys/index.ts';
import { openPresets } from '../features/presets/index.ts';
import { openReviews } from '../features/reviews/index.ts';
import { openRuns } from '../features/runs/index.ts';
import { openSettingsRoutes } from '../features/settings/index.ts';
import { openStreams } from '../features/streams/index.ts';
import { openTasks } from '../features/tasks/index.ts';
import { openTeams } from '../features/teams/index.ts';
import { openTokens } from '../features/tokens/index.ts';
import { openWorktrees } from '../features/worktrees/index.ts';
import { metaHandlers } from '../server/docs.ts';
import { databaseAnswers } from '../store/store.ts';
import type { Closing } from './closing.ts';
import { type OpenedCore, openCore, type PlaneContext } from './core.ts';
import { drainOnClose, openPlaneHttp } from './http.ts';
import { start } from './start.ts';
import { followCertificate } from './tls.ts';
import { startUpkeep } from './upkeep.ts';

export interface Plane {
  url: string;
  /** Whether another program answers on `localhost` with the same port. */
  localhost_taken: boolean;
  data_dir: string;
  /** Set only while there is no root user. */
  join: JoinChallenge | null;
  /** Number of running sessions from an earlier run of the service. */
  adopted: number;
  /** Warnings about settings that are valid but probably unintended. They were already logged. */
  warnings: string[];
  log: Logger;
  /** Resolves if the plane cannot continue. Then close it. */
  failed: Promise<Problem>;
  /** Drains and stops, usually within `limits.plane_stop_ms`. Agents keep running. */
  close(): Promise<void>;
}

export interface PlaneStart {
  config: Config;
  env: NodeJS.ProcessEnv;
  /** Ends the start of a plane that stands by, which then fails with the reason of the signal. */
  signal: AbortSignal;
  /** Called once if another plane of the same database is active, with the URL at which this one stands by. */
  onStandby(url: string): void;
  /** Registers what a reload of the service does (SIGHUP), also while the plane stands by. */
  onReload(reload: () => void): void;
}

/**
 * Resolves when the plane serves requests, which takes as long as another plane of the same database is active. Throws a
 * Problem if the configuration, the data directory or the database is not usable.
 */
export function startPlane({ config, env, signal, onStandby, onReload }: PlaneStart): Promise<Plane> {
  return start(config, (context) => {
    const announced = (url: string) => {
      context.listening(url);
      onStandby(url);
    };
    return open(config, env, { ...context, signal, onStandby: announced, onReload });
  });
}

async function open(config: Config, env: NodeJS.ProcessEnv, context: PlaneContext): Promise<Plane> {
  const { opened, data_dir, failed } = context;
  const features = new FeatureSet();
  const shared = await openCore(config, env, context, features);
  const { core, main_node, cluster } = shared;
  const { log } = core;
  const warnings: string[] = [];
  const warn = (warning: string) => {
    warnings.push(warning);
    log.warn(warning);
  };
  [...config.warnings, ...main_node.warnings].forEach(warn);

  opened.push(() => features.close());
  const { accounts, tokens } = await openFeatures(shared, features, opened);
  await features.start();
  const adopted = (await main_node.node.health()).sessions_live;
  const work_warnings = await startWork(core, features, opened);
  work_warnings.forEach(warn);

  let ready = false;
  const listener = cluster?.listener ?? null;
  const http = await openPlaneHttp(core, features, { tokens, listener, ready: () => ready });
  // The cluster has done this since it opened the listener.
  if (cluster === null) followCertificate({ ...core, ...context, listener: http.listener }, opened);
  const { url, localhost_taken } = http;
  shared.setListeningUrl(url);
  if (localhost_taken) warn(`another program answers to localhost on the same port: open ${url}`);
  features.warnings().forEach(warn);
  core.events.start();
  const peers = cluster?.activate(http) ?? null;
  drainOnClose({ http, peers }, core, opened);
  const challenge = await accounts.joinChallenge();
  ready = true;
  context.listening(url);
  startUpkeep(core, features, opened);
  log.info({ version, url, data_dir, adopted }, 'plane started');

  const close = async () => {
    for (const error of await opened.close()) log.error({ err: error }, 'a part could not be closed');
    log.info('plane stopped');
  };
  const facts = { url, localhost_taken, data_dir, join: challenge, adopted, warnings };
  return { ...facts, log, failed, close };
}

/** Opens the features. Each uses the core and the features above it in this list. */
async function openFeatures(shared: OpenedCore, features: FeatureSet, opened: Closing) {
  const { core, main_node, secrets } = shared;
  const internal_grpc = core.config.get('internal_grpc.enabled')
    ? await (await import('./internal-grpc.ts')).openInternalGrpc(shared, opened)
    : null;

  features.add({ name: 'docs', routes: metaHandlers() });
  features.add(openAudit(core));
  features.add(openSettingsRoutes(core));
  features.add(openPresets(core));
  const agents = features.add(openAgents(core, main_node.node, secrets));
  features.add(openWorktrees(agents.core));
  features.add(await openNodes(core, { agents, internal_grpc }));
  features.add(openCluster(core));
  const teams = features.add(await openTeams(core));
  const reviews = features.add(openReviews(core, agents));
  features.add(openElicitations(agents));
  const { tokens } = features.add(openTokens(core));
  features.add(openStreams(core, { agents, teams, tokens }));
  features.add(openConversations(core, { agents, reviews }));
  const accounts = features.add(openAccounts(core, tokens));
  features.add(openPasskeys(core, { accounts, tokens }));
  const runs = features.add(openRuns(core, { agents, tokens }));
  features.add(openActorMethods(core, { reviews, runs }));
  const mailbox = features.add(openMailbox(core, { agents, runs }));
  features.add(openNotifications(core));
  features.add(openTasks(core, { runs, mailbox, tokens }));

  await internal_grpc?.listen(features);
  return { accounts, tokens };
}

/** Starts the features' consumers of facts, timers and intents. Returns warnings for the operator. */
async function startWork(core: Core, features: FeatureSet, opened: Closing): Promise<string[]> {
  const { store, facts, timers, outbox, metrics } = core;
  await facts.open(features.facts());
  opened.push(() => facts.close());
  timers.open({ ...features.timers(), ...facts.timers() });
  opened.push(() => timers.close());
  await outbox.open(features.intents());
  opened.push(() => outbox.close());
  const countUnknown = () =>
    store.read(
      async (reader) =>
        (await facts.countUnknown(reader)) +
        (await timers.countUnknown(reader)) +
        (await outbox.countUnknown(reader)),
    );
  metrics.gauge(
    'svc_outbox_intents',
    'Work for nodes, results of nodes and notifications that is not done yet. It waits while a node is unreachable.',
    () => outbox.size,
  );
  metrics.gauge(
    'svc_unknown_work',
    'Facts, timers and intents of kinds that this version does not know. They wait for a newer version.',
    () => (databaseAnswers(store) ? countUnknown() : null),
  );
  const waiting = await countUnknown();
  return waiting === 0
    ? []
    : [
        `a newer version of svc left ${waiting} facts, timers or intents that only it can handle: upgrade svc`,
      ];
}
