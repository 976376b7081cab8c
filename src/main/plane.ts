/**
 * The plane as a value: everything wired, opened in order and closed in the reverse order. `svc serve` starts it, and so
 * do tests. It holds no rules; what it decides is who gets to know whom.
 */
import type { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { type Clock, systemClock } from '../base/clock.ts';
import { limits } from '../base/limits.ts';
import type { Logger } from '../base/log.ts';
import { version } from '../base/version.ts';
import { type Config, parseAddress, type Settings } from '../contract/config.ts';
import { MAIN_NODE, type Node } from '../domain/node.ts';
import { invalid, problems } from '../domain/problem.ts';
import { Feed } from '../events/feed.ts';
import type { Retention } from '../events/keeper.ts';
import { openEventLog } from '../events/log.ts';
import { Facts } from '../flow/facts.ts';
import { Outbox } from '../flow/outbox.ts';
import { accountHandlers } from '../http/accounts.ts';
import { configHandlers } from '../http/admin-config.ts';
import { agentHandlers } from '../http/agents.ts';
import { conversationHandlers, reviewHandlers } from '../http/conversations.ts';
import { metaHandlers } from '../http/docs.ts';
import { logHandlers } from '../http/log.ts';
import { Metrics } from '../http/metrics.ts';
import { nodeHandlers } from '../http/nodes.ts';
import { WEB_FOLDER } from '../http/pages.ts';
import { passkeyHandlers } from '../http/passkeys.ts';
import { presetHandlers } from '../http/presets.ts';
import { pushHandlers } from '../http/push.ts';
import { openHttp } from '../http/server.ts';
import { Streams } from '../http/sse.ts';
import { streamHandlers } from '../http/streams.ts';
import { Ingest } from '../ingest/ingest.ts';
import { PlaneTrust } from '../link/plane-trust.ts';
import { openActorDoor } from '../rpc-actor/door.ts';
import type { ActorFiles } from '../runtime/actor-files.ts';
import { Accounts } from '../services/accounts.ts';
import { Conversations } from '../services/acp/conversations.ts';
import { Prompting } from '../services/acp/prompting.ts';
import type { ReviewRouting } from '../services/acp/review-routing.ts';
import { Reviews } from '../services/acp/reviews.ts';
import { type ActorCall, Actors } from '../services/actors/actors.ts';
import { SessionTokens } from '../services/actors/session-tokens.ts';
import { nodeSink } from '../services/agents/adoption.ts';
import { Agents } from '../services/agents/agents.ts';
import { AgentsContext } from '../services/agents/context.ts';
import { Forgetting } from '../services/agents/forgetting.ts';
import { Lifecycle } from '../services/agents/lifecycle.ts';
import { Pending } from '../services/agents/pending.ts';
import { restartFacts, restartTimers } from '../services/agents/restarts.ts';
import { Secrets } from '../services/agents/secrets.ts';
import { Settlement } from '../services/agents/settle.ts';
import { markStale } from '../services/agents/staleness.ts';
import { AgentWaits } from '../services/agents/waiting.ts';
import { Audit } from '../services/audit.ts';
import { IdempotencyKeys } from '../services/idempotency.ts';
import { Join, type JoinChallenge } from '../services/join.ts';
import { Bootstrap } from '../services/nodes/bootstrap.ts';
import { NodeLinks } from '../services/nodes/links.ts';
import { Registry } from '../services/nodes/registry.ts';
import { Passkeys } from '../services/passkeys.ts';
import { Passwords } from '../services/passwords.ts';
import { planeIdentity } from '../services/plane-id.ts';
import { Presets } from '../services/presets.ts';
import { Push } from '../services/push/push.ts';
import { type Place, placeOf } from '../services/relying-party.ts';
import { loadSecretKey } from '../services/secret-key.ts';
import { openSettings } from '../services/settings.ts';
import { errandOf } from '../services/teams/attempts.ts';
import { Tokens } from '../services/tokens.ts';
import { liveSessions } from '../store/agents.ts';
import { openSqlite } from '../store/sqlite.ts';
import type { Store } from '../store/store.ts';
import { type TimerHandlers, Timers } from '../timers/timers.ts';
import { announceActors, listenNames } from './actor-surface.ts';
import type { Closing } from './closing.ts';
import { DATABASE_FILE } from './data-dir.ts';
import { openLogOf, openMachine } from './machine.ts';
import { sandboxConflict, sandboxPaths } from './sandbox-paths.ts';
import { type Held, start } from './start.ts';
import { openTeamServices } from './team-services.ts';

export interface Plane {
  url: string;
  /** Another program answers to `localhost` with our port too. */
  localhost_taken: boolean;
  data_dir: string;
  /** Present while there is no root user. */
  join: JoinChallenge | null;
  /** Live sessions of before that go on. */
  adopted: number;
  /** What is legal but probably not meant; in the log already. */
  warnings: string[];
  log: Logger;
  /** Opens the log file again (SIGHUP). */
  reopenLog(): void;
  /** Drains and stops, meant to take less than `limits.plane_stop_ms`; agents go on. */
  close(): Promise<void>;
}

/** Seconds to a day. */
const WAITS_S = [1, 3, 10, 30, 100, 300, 1_000, 3_600, 14_400, 86_400];

/** Throws a Problem when the configuration, the data directory or the database refuses. */
export function startPlane(config: Config, env: NodeJS.ProcessEnv): Promise<Plane> {
  return start(config, (held) => open(config, env, held));
}

async function open(
  config: Config,
  env: NodeJS.ProcessEnv,
  { data_dir, opened, listening }: Held,
): Promise<Plane> {
  const clock = systemClock;
  const logFile = openLogOf(config);
  const { log } = logFile;

  const store = await openSqlite({ path: join(data_dir, DATABASE_FILE), log });
  opened.push(() => store.close());
  const identity = await planeIdentity(store, clock);
  const { plane_id } = identity;

  const audit = new Audit({ store, clock, log });
  const settings = await openSettings({
    ...{ config, store, audit, clock, log },
    conflict: async ({ get }) => {
      if (config.get('agents.sandbox') === 'none') return null;
      const live = { safe_paths: get('safe_paths'), worktree_root: get('worktree.default_root') };
      return sandboxConflict(sandboxPaths(config, env, live));
    },
  });
  const tokens = new Tokens({ store, clock, log, audit });
  opened.push(() => tokens.flush());
  const passwords = new Passwords(() => ({
    min_length: settings.get('auth.min_password_length'),
    require_special_chars: settings.get('auth.require_special_chars'),
  }));
  const accounts = new Accounts({ store, clock, audit, tokens, passwords });
  const joining = new Join({
    store,
    clock,
    audit,
    accounts,
    passwords,
    file: join(data_dir, 'join.json'),
  });
  let url = '';
  let place: Place | null = null;
  const passkeys = new Passkeys({
    store,
    clock,
    audit,
    accounts,
    tokens,
    place: () => (place ??= placeOf(config, url)),
  });
  const key = await loadSecretKey(join(data_dir, 'secret.key'));
  const idempotency = new IdempotencyKeys({ store, clock, key });
  const bootstrap = new Bootstrap({
    store,
    clock,
    audit,
    key,
    configured: config.get('internal_grpc.bootstrap.token'),
  });

  const session_tokens = new SessionTokens(key);
  const actorToken = (session_id: string) => (trust ? session_tokens.of(session_id) : null);
  const secrets = new Secrets({ redact_env: () => settings.get('events.redact_env'), actorToken });
  const eventLog = openEventLog({
    ...{ store, data_dir, clock, log },
    retention: () => retention(settings),
    redactor: (reader, session_id) => secrets.redactor(reader, session_id),
  });
  opened.push(() => eventLog.close());
  const feed = new Feed({ store, clock });
  opened.push(() => feed.close());
  const facts = new Facts({ store, clock, log });
  const outbox = new Outbox({ store, clock, log });
  const timers = new Timers({ store, clock, log });

  const folders = () => ({
    worktree_root: settings.get('worktree.default_root') ?? join(data_dir, 'worktrees'),
    safe_paths: [...settings.get('safe_paths')],
    repo_roots: [...settings.get('worktree.repo_roots')],
  });
  const machine = await openMachine(
    {
      id: MAIN_NODE,
      config,
      data_dir,
      env,
      clock,
      log,
      safe_paths: () => folders().safe_paths,
      repo_roots: () => folders().repo_roots,
      worktree_root: () => folders().worktree_root,
    },
    opened,
  );
  const { node } = machine;
  const warnings = [...config.warnings, ...machine.warnings];
  for (const warning of warnings) log.warn(warning);
  const context = new AgentsContext({
    store,
    log: eventLog,
    feed,
    facts,
    outbox,
    timers,
    audit,
    idempotency,
    clock,
    logger: log,
    plane_id,
    actorToken,
    secrets,
    node: (id) => (id === MAIN_NODE ? node : remoteNode(id)),
    farewell: (tx, session_id) => conversations.farewell(tx, session_id),
    errand: errandOf,
    ended: (tx, session_id, exit) => teams.ended(tx, session_id, exit),
    reached: (session_id, stdin_bytes) => reviews.written(session_id, stdin_bytes),
  });
  const prompting = new Prompting(context);
  const metrics = new Metrics();
  const waited = metrics.times(
    'svc_permission_wait_seconds',
    'How long agents waited for an answer.',
    WAITS_S,
  );
  const routing: ReviewRouting = {
    leader_timeout_ms: () => settings.get('reviews.leader_timeout_seconds') * 1000,
    notify: (tx, notice) => teams.notify(tx, notice),
  };
  const reviews = new Reviews(context, { routing, onAnswered: (waited_ms) => waited(waited_ms / 1000) });
  const conversations = new Conversations(context, {
    review_timeout_ms: () => secondsToMs(settings.get('reviews.timeout_seconds')),
    routing,
    answered: (request_id, error) => prompting.answered(request_id, error),
    unanswered: (request_ids) => prompting.unanswered(request_ids),
  });
  const settlement = new Settlement(context);
  const follow = (from: Node) => {
    const ingest = new Ingest({
      node: from,
      store,
      clock,
      log,
      load: (session_id) => settlement.load(session_id, from.id),
      settle: (session_id, fact) => settlement.settle(session_id, fact),
      frames: (batch) => conversations.frames(batch),
      rebase: (session_id, stream) => settlement.rebase(session_id, stream),
    });
    return { ingest, sink: nodeSink(context, settlement, from.id, ingest) };
  };
  const { ingest, sink } = follow(node);
  opened.push(() => ingest.close());
  const ingestOf = (id: string) => (id === MAIN_NODE ? ingest : links?.ingest(id)) ?? null;
  const lifecycle = new Lifecycle(context, settlement, ingestOf);
  const pending = new Pending(context, lifecycle);
  const forgetting = new Forgetting(context, settlement);
  const agents = new Agents(context, lifecycle, pending);
  const teams = await openTeamServices(context, lifecycle, reviews);

  const trust = await openTrust(config, plane_id, clock, log);
  if (trust) opened.push(() => trust.close());
  const { methods } = teams;
  const actors =
    trust && new Actors({ store, clock, log, session_tokens, methods, settings: () => trust.handover() });
  if (actors) await openActors({ config, trust, actors, files: machine.actor_files, log, opened });
  const links =
    trust &&
    new NodeLinks({
      trust,
      bootstrap,
      registry: () => registry,
      plane: identity,
      tokens_first: config.entry('internal_grpc.security.mode').origin !== 'default' && trust.mode !== 'mtls',
      follower: follow,
      upcall: (call) => actors!.call(call),
      hasLive: (node_id) => store.read((reader) => liveSessions(reader, node_id).length > 0),
      onUp: (node_id) => outbox.retryNow(node_id),
      onStale: (node_id, since_ms) => markStale(context, node_id, since_ms),
      clock,
      log,
    });
  const registry = new Registry({
    ...{ store, clock, audit, feed, links, folders },
    forgetAgents: (caller, node_id) => forgetting.forgetAll(caller, node_id),
  });
  const remoteNode = (id: string) => {
    const linked = links?.node(id) ?? null;
    if (linked === null && registry.find(id)) throw problems.internalGrpcUnavailable();
    return linked;
  };
  const presets = new Presets({ clock, node: context.options.node });
  const push = new Push({
    ...{ store, clock, log, audit, outbox, timers, key },
    own_origins: config.get('push.origins'),
    subject: pushContact(config),
  });

  await node.attach(sink);
  opened.push(() => node.detach());
  const adopted = (await node.health()).sessions_live;
  await facts.open({
    'agent-restarts': restartFacts(context),
    conversations: conversations.facts(),
    ...teams.facts,
    push: push.facts(),
  });
  opened.push(() => facts.close());
  const onTime: TimerHandlers = {
    ...restartTimers(context, lifecycle),
    ...conversations.timers(),
    ...reviews.timers(),
    ...teams.timers,
    ...push.timers(),
  };
  timers.open(onTime);
  opened.push(() => timers.close());
  // After the outbox, so that what is broken off then stays in it.
  opened.push(() => push.close());
  await outbox.open({
    ...intents(lifecycle, reviews),
    ...pending.handlers(),
    ...forgetting.handlers(),
    ...teams.intents,
    ...push.intents(),
  });
  opened.push(() => outbox.close());
  await registry.open();
  if (links) opened.push(() => links.closeAll());

  const streams = new Streams({
    bounds: () => ({
      per_user: settings.get('limits.streams_per_user'),
      total: settings.get('limits.streams_total'),
    }),
  });
  metrics.gauge('svc_streams_open', 'Open event streams.', () => streams.open);
  let up = false;
  const http = await openHttp({
    ...parseAddress(config.get('server.listen'))!,
    tls: await readTls(config),
    public_origin: config.get('web.rp_origin'),
    behind_proxy: config.get('server.behind_proxy'),
    handlers: {
      ...accountHandlers({
        accounts,
        tokens,
        passkeys,
        join: joining,
        audit,
        base_url: () => config.get('web.rp_origin') ?? url,
      }),
      ...agentHandlers(agents, new AgentWaits(agents, feed), forgetting, folders),
      ...conversationHandlers(prompting),
      ...reviewHandlers(reviews),
      ...configHandlers(settings),
      ...logHandlers({ agents, log: eventLog }),
      ...metaHandlers(),
      ...nodeHandlers(registry, bootstrap),
      ...passkeyHandlers(passkeys),
      ...presetHandlers(presets),
      ...pushHandlers(push),
      ...streamHandlers({ agents, log: eventLog, feed, membership: teams.membership, tokens, streams }),
      ...teams.handlers(tokens, streams),
    },
    authenticate: (token, ip) => tokens.authenticate(token, ip),
    idempotency,
    rate: () => ({
      per_second: settings.get('limits.requests_per_second'),
      burst: settings.get('limits.requests_burst'),
    }),
    body_bytes_max: () => settings.get('limits.body_bytes_max'),
    page_items_default: () => settings.get('limits.page_items_default'),
    web: WEB_FOLDER,
    ready: () => up,
    metrics,
    metrics_open: () => settings.get('metrics.open'),
    log,
  });
  url = http.url;
  if (http.localhost_taken) {
    const warning = `another program answers to localhost with our port: open ${url}`;
    warnings.push(warning);
    log.warn(warning);
  }
  const { reason } = passkeys.place();
  if (reason !== null && config.get('web.rp_id') !== null) {
    warnings.push(`no passkeys: ${reason}`);
    log.warn(`no passkeys: ${reason}`);
  }
  eventLog.start();
  opened.push(async () => {
    // Who waits for an agent is told in time that it goes on without them: the intent is kept.
    const impatient = setTimeout(() => outbox.close(), limits.requests_finish_ms);
    await http.drain();
    clearTimeout(impatient);
  });
  const challenge = await joining.ensureChallenge(config.get('web.rp_origin') ?? url);
  const sweep = setInterval(
    () => void housekeeping(log, [accounts, tokens, passkeys, idempotency, push]),
    limits.housekeeping_ms,
  );
  opened.push(() => clearInterval(sweep));
  up = true;
  listening(url);
  const checking = new AbortController();
  opened.push(() => checking.abort());
  void audit.check(checking.signal);
  if (store.unchecked) void checkDatabase(store, log);
  log.info({ version, url, data_dir, adopted }, 'plane is up');

  const close = async () => {
    for (const error of await opened.close()) log.error({ err: error }, 'a part could not be closed');
    log.info('plane has stopped; agents go on');
  };
  return {
    url,
    localhost_taken: http.localhost_taken,
    data_dir,
    join: challenge,
    adopted,
    warnings,
    log,
    reopenLog: () => logFile.reopen(),
    close,
  };
}

/** What is in an agent's stdin may be an answer that somebody wants to see arrive. */
function intents(lifecycle: Lifecycle, reviews: Reviews): ReturnType<Lifecycle['handlers']> {
  const handlers = lifecycle.handlers();
  return {
    ...handlers,
    input: async (intent) => {
      const length = await handlers.input(intent);
      await reviews.written(intent.session_id, length);
      return length;
    },
  };
}

/** Whom push services may turn to; they want somebody. */
function pushContact(config: Config): string {
  const origin = config.get('web.rp_origin');
  const fallback = origin?.startsWith('https:') ? origin : 'mailto:svc@svc.invalid';
  return config.get('push.subject') ?? fallback;
}

function secondsToMs(seconds: number | null): number | null {
  return seconds === null ? null : seconds * 1000;
}

/** The plane's own door for actors, and the word to agents where it is. */
async function openActors(options: {
  config: Config;
  trust: PlaneTrust;
  actors: Actors;
  files: ActorFiles | null;
  log: Logger;
  opened: Closing;
}): Promise<void> {
  const { config, trust, actors, files, log, opened } = options;
  const address = parseAddress(config.get('internal_grpc.listen'))!;
  const certificate = trust.identity();
  const call = (asked: Omit<ActorCall, 'node_id'>) => actors.call({ ...asked, node_id: MAIN_NODE });
  const isOperator = (peer: X509Certificate) => trust.isOwnKey(peer);
  const operators = trust.mode === 'mtls' ? { isOperator } : {};
  const door = await openActorDoor({ ...address, certificate, call, log, ...operators });
  opened.push(() => door.close());
  const announce = () =>
    announceActors({ files, ...address, port: door.port, identity: trust.identity(), log });
  await announce();
  trust.onChange(() => {
    const renewed = trust.identity();
    if (renewed) door.certify(renewed);
    void announce();
  });
}

/** After an unclean stop of a database that was too large to be checked while opening. */
async function checkDatabase(store: Store, log: Logger): Promise<void> {
  const problems = await store.check().catch((error: unknown) => [String(error)]);
  if (problems.length > 0)
    log.error({ problems }, 'the database is damaged: restore a backup with svc restore FILE');
}

function retention(settings: Settings): Partial<Retention> {
  const bytes_total = settings.get('retention.bytes_total');
  return {
    days: settings.get('retention.days'),
    bytes_per_agent: settings.get('retention.bytes_per_agent'),
    ...(bytes_total !== null && { bytes_total }),
  };
}

/** Null while the internal surface is switched off. */
async function openTrust(
  config: Config,
  plane_id: string,
  clock: Clock,
  log: Logger,
): Promise<PlaneTrust | null> {
  if (!config.get('internal_grpc.enabled')) return null;
  const mode = config.get('internal_grpc.security.mode');
  if (mode === 'disabled')
    log.warn('internal_grpc.security.mode is "disabled": links to nodes are not encrypted');
  return PlaneTrust.open({
    cert_dir: config.get('internal_grpc.security.cert_dir'),
    plane_id,
    mode,
    shared_secret: config.get('internal_grpc.auth.shared_secret'),
    issuer: config.get('internal_grpc.auth.issuer'),
    audience: config.get('internal_grpc.auth.audience'),
    names: listenNames(parseAddress(config.get('internal_grpc.listen'))!.host),
    clock,
    log,
  }).catch((error: Error) => {
    throw invalid(error.message, 'invalid_config');
  });
}

async function readTls(config: Config): Promise<{ cert: string; key: string } | null> {
  const read = async (name: 'server.tls.cert' | 'server.tls.key') => {
    const path = config.get(name);
    if (path === null) return null;
    return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      throw invalid(`${name} ${path} cannot be read: ${error.code ?? error.message}`, 'invalid_config');
    });
  };
  const [cert, key] = [await read('server.tls.cert'), await read('server.tls.key')];
  if (cert === null || key === null) return null;
  try {
    createSecureContext({ cert, key });
  } catch (error) {
    const reason = (error as Error).message;
    throw invalid(`server.tls.cert and server.tls.key cannot be used: ${reason}`, 'invalid_config');
  }
  return { cert, key };
}

async function housekeeping(log: Logger, rooms: readonly { sweep(): Promise<number> }[]): Promise<void> {
  for (const room of rooms) {
    await room.sweep().catch((error: unknown) => log.warn({ err: error }, 'housekeeping failed'));
  }
}
