/**
 * The features of a plane for tests, wired as in `main/plane.ts`, with a real database and a scripted node, which can keep an
 * agent in states that a real process leaves too quickly.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import { silentLog } from '../base/log.ts';
import type { Config } from '../core/config.ts';
import type { EventRecord } from '../core/event.ts';
import type { Node } from '../core/node.ts';
import { Feed } from '../events/feed.ts';
import { type EventLog, openEventLog } from '../events/log.ts';
import type { Caller } from '../features/accounts/rules.ts';
import type { AgentCore } from '../features/agents/core.ts';
import type { CreateAgent } from '../features/agents/creation.ts';
import type { Forgetting } from '../features/agents/forgetting.ts';
import { type AgentsFeature, openAgents } from '../features/agents/index.ts';
import type { Agent } from '../features/agents/rules.ts';
import { Secrets } from '../features/agents/secrets.ts';
import type { Agents } from '../features/agents/service.ts';
import { Audit } from '../features/audit/service.ts';
import { openConversations } from '../features/conversations/index.ts';
import type { Prompting } from '../features/conversations/prompting.ts';
import { openElicitations } from '../features/elicitations/index.ts';
import type { Elicitations } from '../features/elicitations/service.ts';
import type { Core, Feature } from '../features/feature.ts';
import { FeatureSet } from '../features/feature-set.ts';
import { isNode } from '../features/nodes/queries.ts';
import { chooseNode } from '../features/nodes/rules.ts';
import { Push } from '../features/notifications/service.ts';
import { openReviews } from '../features/reviews/index.ts';
import type { ReviewRouting } from '../features/reviews/routing.ts';
import type { ReviewNotice } from '../features/reviews/rules.ts';
import type { Reviews } from '../features/reviews/service.ts';
import { openRuns, type RunsFeature } from '../features/runs/index.ts';
import type { RunPublisher } from '../features/runs/publisher.ts';
import type { Scheduler } from '../features/runs/scheduler.ts';
import type { LiveSettings } from '../features/settings/service.ts';
import type { Tokens } from '../features/tokens/service.ts';
import { IdempotencyKeys } from '../server/idempotency.ts';
import { Metrics } from '../server/metrics.ts';
import { Streams } from '../server/sse.ts';
import type { Store, Tx } from '../store/store.ts';
import { Facts } from '../work/facts.ts';
import { Outbox } from '../work/outbox.ts';
import { Timers } from '../work/timers.ts';
import { TestClock } from './accounts.ts';
import { expectSameState } from './refold.ts';
import { ScriptedNode } from './scripted-node.ts';
import { addUser } from './team-runs.ts';
import { openTestStore } from './test-store.ts';

export const ANA: Caller = {
  user_id: 'usr_a',
  username: 'ana',
  role: 'root',
  token_id: 'tok_a',
  grant: null,
  ip: null,
};

/** Another user. */
export const BEN: Caller = {
  user_id: 'usr_b',
  username: 'ben',
  role: 'user',
  token_id: 'tok_b',
  grant: null,
  ip: null,
};

/** A generous timeout for things that happen soon, even on a slow machine. */
export const SOON = { timeout: 20_000 };

type OpenMore = (core: Core, needs: { agents: AgentsFeature; runs: RunsFeature }) => Feature;

export class FeaturesFixture {
  readonly folder: string;
  readonly store: Store;
  readonly clock = new TestClock();
  readonly log: EventLog;
  readonly feed: Feed;
  readonly node = new ScriptedNode();
  readonly secrets = new Secrets({ redact_env: () => true, actorToken: () => this.actor_token });
  #other_node: Node | null = null;
  #more: OpenMore | null = null;
  review_timeout_ms: number | null = null;
  /** Applies from the next `open`. */
  actor_calls = true;
  acp_version = 1;
  /** Whether agents can run on the main node. */
  is_local = true;
  /** The ids of the registered nodes. */
  registered: string[] = [];
  /** The actor token of every session. */
  actor_token: string | null = null;
  /** Notices to the leaders of teams. */
  readonly notices: ReviewNotice[] = [];
  /** Thrown instead of notifying a leader, when set. */
  notice_refusal: Error | null = null;
  agents!: Agents;
  runs!: RunsFeature;
  forgetting!: Forgetting;
  readSessionsOf!: AgentsFeature['readSessionsOf'];
  prompting!: Prompting;
  scheduler!: Scheduler;
  publisher!: RunPublisher;
  core!: AgentCore;
  routing!: ReviewRouting;
  reviews!: Reviews;
  elicitations!: Elicitations;
  idempotency!: IdempotencyKeys;
  facts!: Facts;
  push!: Push;
  /** Origins of push services that a test runs. */
  push_origins: string[] = [];
  /** Shuts down like a plane; `open` starts it again. */
  close!: () => Promise<void>;

  private constructor(folder: string, store: Store) {
    this.folder = folder;
    this.store = store;
    const common = { store, clock: this.clock };
    this.log = openEventLog({
      ...{ ...common, data_dir: folder, log: silentLog },
      redactor: (reader, session_id) => this.secrets.redactor(reader, session_id),
    });
    this.feed = new Feed(common);
  }

  /**
   * `other_node`: replaces the scripted node. `existing_folder`: the folder of an earlier fixture. `more`: opens an additional
   * feature after runs.
   */
  static async make(
    other_node: Node | null = null,
    existing_folder: string | null = null,
    more: OpenMore | null = null,
  ): Promise<FeaturesFixture> {
    const folder = existing_folder ?? (await mkdtemp(join(tmpdir(), 'svc-features-')));
    const fixture = new FeaturesFixture(folder, await openTestStore(folder));
    fixture.#other_node = other_node;
    fixture.#more = more;
    await fixture.open();
    return fixture;
  }

  async open(): Promise<void> {
    const { store, clock, log: events, feed } = this;
    const node = this.#other_node ?? this.node;
    const common = { store, clock, log: silentLog };
    const audit = new Audit(common);
    const key = new Uint8Array(32).fill(9);
    const features = new FeatureSet();
    const settings = {
      'reviews.timeout_seconds': () => this.review_timeout_ms && this.review_timeout_ms / 1000,
      'reviews.leader_timeout_seconds': () => 60,
      'agents.acp_version': () => this.acp_version,
      'retention.run_agents_days': () => 30,
    };
    const core: Core = {
      ...{ ...common, audit, events, feed, key, data_dir: this.folder, plane_id: 'pln_a', incarnation: 0 },
      config: {} as Config,
      actor_calls: this.actor_calls,
      settings: { get: (name: keyof typeof settings) => settings[name]() } as unknown as LiveSettings,
      facts: new Facts(common),
      outbox: new Outbox(common),
      timers: new Timers(common),
      idempotency: new IdempotencyKeys({ store, clock, key: new Uint8Array(32) }),
      nodes: {
        main_folders: () =>
          this.is_local ? { worktree_root: this.folder, safe_paths: [], repo_roots: [] } : null,
        choose: (id) => chooseNode(id, { is_local: this.is_local, registered: this.registered }),
        find: () => node,
        get: () => node,
        isRegistered: isNode,
        remoteIngest: () => null,
      },
      metrics: new Metrics(),
      streams: new Streams(store.wakes),
      session: features.session,
      extensions: features.extensions,
      listening_url: () => '',
    };
    const tokens = {} as Tokens;
    const agents = features.add(openAgents(core, node, this.secrets));
    const reviews = features.add(openReviews(core, agents));
    const { elicitations } = features.add(openElicitations(agents));
    const { prompting } = features.add(openConversations(core, { agents, reviews }));
    const runs = features.add(openRuns(core, { agents, tokens }));
    const notifyLeader = async (tx: Tx, notice: ReviewNotice) => {
      if (this.notice_refusal) throw this.notice_refusal;
      tx.afterCommit(() => void this.notices.push(notice));
    };
    features.add({ name: 'notices', extensions: { notifyLeader } });
    if (this.#more) features.add(this.#more(core, { agents, runs }));
    const { outbox, timers } = core;
    const push = new Push({
      ...{ ...common, audit, outbox, timers, key },
      own_origins: this.push_origins,
      subject: 'mailto:ops@example.org',
    });
    features.add({
      name: 'notifications',
      facts: { push: push.facts() },
      timers: push.timers(),
      intents: push.intents(),
      close: () => push.close(),
    });
    this.core = agents.core;
    this.idempotency = core.idempotency;
    this.facts = core.facts;
    this.forgetting = agents.forgetting;
    this.readSessionsOf = agents.readSessionsOf;
    this.agents = agents.agents;
    this.runs = runs;
    [this.scheduler, this.publisher] = [runs.scheduler, runs.publisher];
    [this.prompting, this.reviews, this.elicitations] = [prompting, reviews.reviews, elicitations];
    [this.push, this.routing] = [push, reviews.routing];
    await features.start();
    await core.facts.open(features.facts());
    timers.open({ ...features.timers(), ...core.facts.timers() });
    await outbox.open(features.intents());
    this.close = async () => {
      outbox.close();
      await timers.close();
      await core.facts.close();
      await features.close();
    };
  }

  /** Closes everything and deletes the folder. */
  async end(): Promise<void> {
    await this.close();
    await this.feed.close();
    await this.log.close();
    await this.store.close();
    await rm(this.folder, { recursive: true, force: true });
  }

  /** Also creates the caller's user. */
  async create(
    more: Partial<CreateAgent> = {},
    key: string | null = null,
    caller = ANA,
    options: { replace?: boolean } = {},
  ): Promise<Agent> {
    const empty = { argv: null, preset: null, worktree_repo: null, worktree_ref: null, env: {}, labels: {} };
    const request = { ...empty, name: 'a', command: 'true', workdir: this.folder, node_id: 'main' };
    const defaults = { worktree_mode: 'use_existing', protocol: 'auto', restart_policy: 'never' } as const;
    const rest = {
      permission_mode: 'ask',
      stdin: false,
      on_exit: 'kill',
      prompt: null,
      start: false,
    } as const;
    await this.store.write((tx) => addUser(tx, caller));
    return this.agents.create(caller, { ...request, ...defaults, ...rest, ...more }, key, options);
  }

  get(agent_id: string): Promise<Agent> {
    return this.agents.get(ANA, agent_id);
  }

  /** An agent's whole log. */
  async events(agent_id: string): Promise<EventRecord[]> {
    const all: EventRecord[] = [];
    while (true) {
      const after = all.at(-1)?.seq ?? 0;
      const { events, has_more } = await this.log.page(agent_id, { after, limit: 100_000 });
      all.push(...events);
      if (!has_more) return all;
    }
  }

  /** Codes of the errors in an agent's log, in order. */
  async errors(agent_id: string): Promise<string[]> {
    return (await this.events(agent_id)).flatMap(({ type, code }) =>
      type === 'error' ? [String(code)] : [],
    );
  }

  /** Checks the stored state of every conversation with an agent against its log. */
  async expectSameState(agent_id: string): Promise<void> {
    const log = await this.events(agent_id);
    const sessions = new Set(
      log.flatMap(({ type, session_id }) => (type === 'acp_event' ? [session_id!] : [])),
    );
    await this.store.read(async (reader) => {
      for (const session_id of sessions) await expectSameState(reader, log, session_id);
    });
  }

  /** Advances the clock and runs the timers that are due. */
  async advanceClock(ms: number): Promise<void> {
    this.clock.advance(ms);
    // The scheduler sleeps by the real clock, so only a restart checks the timers.
    await this.close();
    await this.open();
    const due = () =>
      this.store.read((reader) =>
        reader.all(
          reader.sql.selectFrom('timers').select(['kind', 'ref']).where('due_at', '<=', this.clock.now()),
        ),
      );
    await vi.waitFor(async () => expect(await due()).toEqual([]), SOON);
  }

  async until(agent_id: string, status: Agent['status']): Promise<Agent> {
    await vi.waitFor(async () => expect((await this.get(agent_id)).status).toBe(status), SOON);
    return this.get(agent_id);
  }
}
