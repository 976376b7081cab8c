/**
 * The interface of a feature: one value with slots. `main/plane.ts` opens the core and then the features in order, merges
 * their slots, and closes them in reverse. A feature uses the core and earlier features. Later features extend it through
 * facts, session hooks and extensions.
 */
import type { Selectable } from 'kysely';
import type { z } from 'zod';
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/log.ts';
import type { Config } from '../core/config.ts';
import type { Node } from '../core/node.ts';
import type { Exit } from '../core/session.ts';
import type { Feed } from '../events/feed.ts';
import type { FrameBatch } from '../events/ingest/frame-batch.ts';
import type { Ingest } from '../events/ingest/ingest.ts';
import type { EventLog } from '../events/log.ts';
import type { Handlers, ResourceChecks } from '../server/call.ts';
import type { IdempotencyKeys } from '../server/idempotency.ts';
import type { Metrics } from '../server/metrics.ts';
import type { Streams } from '../server/sse.ts';
import type { Reader, Store, Tx } from '../store/store.ts';
import type { Tables } from '../store/tables.ts';
import type { FactHandlers, Facts } from '../work/facts.ts';
import type { IntentHandlers, Outbox } from '../work/outbox.ts';
import type { TimerHandlers, Timers } from '../work/timers.ts';
import type { passkeyRecord } from './accounts/contract/accounts.ts';
import type { Caller } from './accounts/rules.ts';
import type { ActorMethod, ActorRequest, ActorResult } from './actors/contract.ts';
import type { ActorCaller } from './actors/rules/actor.ts';
import type { Audit } from './audit/service.ts';
import type { NodeFolders } from './nodes/rules.ts';
import type { ReviewNotice } from './reviews/rules.ts';
import type { LiveSettings } from './settings/service.ts';
import type { TeamSpec } from './teams/rules/team.ts';

/** The part of the plane that every feature may use. It is opened before the features. */
export interface Core {
  /** The configuration at startup. */
  config: Config;
  /** The current configuration. */
  settings: LiveSettings;
  data_dir: string;
  plane_id: string;
  /** Whether agents can call the plane (`internal_grpc.enabled`). */
  actor_calls: boolean;
  /** When the database was created or restored; see `store/plane-id.ts`. */
  incarnation: number;
  /** 32 bytes, see `secret-key.ts`. */
  key: Uint8Array;
  store: Store;
  /** The logs of agents. */
  events: EventLog;
  /** Changed records, for streams. */
  feed: Feed;
  facts: Facts;
  outbox: Outbox;
  timers: Timers;
  audit: Audit;
  idempotency: IdempotencyKeys;
  clock: Clock;
  log: Logger;
  nodes: NodeDirectory;
  metrics: Metrics;
  /** Open event streams of clients. */
  streams: Streams;
  session: SessionHooks;
  extensions: Extensions;
  /** The URL of the HTTP listener; empty until it listens. */
  listening_url(): string;
}

export interface NodeDirectory {
  /** The folders in which agents of the main node may work; null if none run there, because of `server.local_node`. */
  main_folders(): NodeFolders | null;
  /**
   * The id of the node for new work. `id`: the requested node; absent: the main node, or without it the only registered
   * node. Throws `no_local_node` if agents cannot run on the main node. Does not check that the id is registered.
   */
  choose(id?: string): string;
  /** Null if the node is not registered. Throws `internal_grpc_unavailable` if it is, but links are disabled. */
  find(id: string): Node | null;
  /** Like `find`. Throws `node not found` if the node is not registered. */
  get(id: string): Node;
  isRegistered(reader: Reader, id: string): Promise<boolean>;
  /** The ingest that reads the output of a remote node's sessions; null if there is no link to the node. */
  remoteIngest(id: string): Ingest | null;
}

export interface Feature {
  name: string;
  /** HTTP handlers by operation id. */
  routes?: Partial<Handlers>;
  resources?: ResourceChecks;
  /** Methods for agents to call. */
  actor_methods?: Partial<ActorMethods>;
  /** By the name of a consumer. Its cursor is stored under this name, so the name must not change. */
  facts?: Record<string, FactHandlers>;
  intents?: Partial<IntentHandlers>;
  timers?: Partial<TimerHandlers>;
  session?: Partial<SessionHooks>;
  extensions?: Partial<Extensions>;
  /** The registered nodes besides the main node. */
  remote_nodes?: RemoteNodes;
  /** Runs when all features are open, before facts, timers and intents are handled. */
  start?(): Promise<void>;
  /**
   * Warnings for the operator about settings that are valid but probably unintended. Called once the HTTP listener is open.
   */
  warnings?(): string[];
  /** Deletes rows that are no longer needed, or corrects them, and resolves to their number. Runs every few minutes. */
  sweep?(): Promise<number>;
  /** Runs after intents, timers and facts have stopped. */
  close?(): Promise<void>;
}

export type ActorMethods = {
  [M in Exclude<ActorMethod, 'whoami'>]: (
    caller: ActorCaller,
    params: ActorRequest<M>,
  ) => Promise<ActorResult<M>>;
};

export interface RemoteNodes {
  /** The ids of the registered nodes. */
  ids(): readonly string[];
  find(id: string): Node | null;
  isRegistered(reader: Reader, id: string): Promise<boolean>;
  ingest(id: string): Ingest | null;
}

/** Additions to the environment of a session, besides its agent's own settings. */
export interface SessionEnvironment {
  env: Record<string, string>;
  /** Null if the session does not run a step. */
  step_input: string | null;
}

/**
 * How features participate in the life of sessions. `agents` calls each hook in the order of the features. Hooks with a `tx`
 * run in the transaction that changes the session.
 */
export interface SessionHooks {
  /** Called when a session is started on its node. */
  environment(reader: Reader, session_id: string): Promise<SessionEnvironment>;
  /** Called when a session is about to be stopped: the last chance to write to its stdin. */
  beforeStop(tx: Tx, session_id: string): Promise<void>;
  /** Called when a session has ended. An intent that is recorded afterwards deletes its directory. */
  onExit(tx: Tx, session_id: string, exit: Exit): Promise<void>;
  /** Called when the node has written this many bytes of the session's stdin, counted from the beginning. */
  onStdinWritten(session_id: string, length: number): Promise<void>;
  /** Commits output of an ACP session, as `frames` of `IngestOptions`. Exactly one feature implements this hook. */
  onFrames(batch: FrameBatch): Promise<number>;
  /** Whether the session's agent is waiting for a person's answer. */
  awaitsAnswer(reader: Reader, agent_num: number, session_num: number): Promise<boolean>;
}

/**
 * The hooks that a feature needs later features to implement. Without an implementation there are no tasks, mail or
 * passkeys.
 */
export interface Extensions {
  /** Called when an agent was created. `prompt` is its first prompt, if any. */
  onAgentCreated(
    tx: Tx,
    agent: { id: string; num: number },
    request: { prompt: string | null; user_id: string },
  ): Promise<void>;
  /**
   * Queues text as the next prompt of an agent, for a caller who may drive it. Throws like `Prompting.prompt`. Exactly one
   * feature implements it.
   */
  promptAgent(tx: Tx, caller: Caller, agent_id: string, text: string): Promise<void>;
  /**
   * Called when an agent with a worktree was deleted, unless other agents still use the worktree. `kept_because`: null if
   * it was removed.
   */
  onWorktreeReleased(tx: Tx, agent: WorktreeAgent, kept_because: string | null): Promise<void>;
  /** Called when the token was revoked. */
  onTokenRevoked(tx: Tx, token_id: string): Promise<void>;
  /** Called when all tokens of a user except `keep` were revoked. */
  onTokensRevoked(tx: Tx, user_id: string, keep: string | null): Promise<void>;
  /** Called when a user was renamed. `from`, `to`: actor ids of the user (`user:<username>`). */
  onUserRenamed(tx: Tx, from: string, to: string): Promise<void>;
  /** For the user's own record. */
  passkeysOf(user_id: string): Promise<PasskeyRecord[]>;
  /** The participants in the team and run of an agent; null if the agent has no team. */
  participantsOf(
    reader: Reader,
    agent: { team_num: number | null; run_num: number | null },
  ): Promise<{ team: Selectable<Tables['teams']>; spec: TeamSpec; user_id: string } | null>;
  /** Whether a run of the team has not ended. */
  hasOpenRuns(reader: Reader, team_num: number): Promise<boolean>;
  /** Whether an agent of a run may work in the worktree of another agent. */
  mayUseWorktree(
    reader: Reader,
    agent: { run_num: number | null },
    other: { team_num: number | null; owner_id: string },
  ): Promise<boolean>;
  /** Publishes a task whose newest run was created or deleted. */
  publishTask(tx: Tx, task_num: number): Promise<void>;
  /** Notifies a team's leader of a review. Throws a Problem if the leader cannot be notified. */
  notifyLeader(tx: Tx, notice: ReviewNotice): Promise<void>;
  /** The `svc actor` commands that the first prompt of an agent in a run explains, besides those for steps. */
  actorHelp(): ActorHelp[];
  /** Text about the unread mail of an actor, to add to a prompt; null if there is none. */
  pendingMail(
    tx: Tx,
    query: { run_num: number; actor_id: string; prompt_id: string },
  ): Promise<string | null>;
  /** The number of unacknowledged messages per actor of a run; actors without any may be absent. */
  unacknowledgedMail(
    reader: Reader,
    run: { num: number; attempt: number },
  ): Promise<ReadonlyMap<string, number>>;
}

/** An agent, with the id of its run. */
export type WorktreeAgent = Selectable<Tables['agents']> & { run_id: string | null };

export interface ActorHelp {
  /** Usage of each command, in one line. */
  commands: readonly string[];
  /** When to use them: a sentence. */
  advice: string;
}

export type PasskeyRecord = z.infer<typeof passkeyRecord>;
