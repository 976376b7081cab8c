/**
 * The rooms in which agents live, wired as `main/plane.ts` does, on a real database and a scripted node: for the moments
 * that real processes are too quick for.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import { silentLog } from '../base/log.ts';
import type { Agent } from '../domain/agent.ts';
import type { EventRecord } from '../domain/event.ts';
import type { Node } from '../domain/node.ts';
import type { Caller } from '../domain/user.ts';
import { Feed } from '../events/feed.ts';
import { type EventLog, openEventLog } from '../events/log.ts';
import { Facts } from '../flow/facts.ts';
import { Outbox } from '../flow/outbox.ts';
import { Ingest } from '../ingest/ingest.ts';
import { Conversations } from '../services/acp/conversations.ts';
import { Prompting } from '../services/acp/prompting.ts';
import type { ReviewNotice, ReviewRouting } from '../services/acp/review-routing.ts';
import { Reviews } from '../services/acp/reviews.ts';
import { nodeSink } from '../services/agents/adoption.ts';
import { Agents } from '../services/agents/agents.ts';
import { AgentsContext } from '../services/agents/context.ts';
import type { CreateAgent } from '../services/agents/creation.ts';
import { Forgetting } from '../services/agents/forgetting.ts';
import { Lifecycle } from '../services/agents/lifecycle.ts';
import { Pending } from '../services/agents/pending.ts';
import { restartFacts, restartTimers } from '../services/agents/restarts.ts';
import { Secrets } from '../services/agents/secrets.ts';
import { Settlement } from '../services/agents/settle.ts';
import { Audit } from '../services/audit.ts';
import { IdempotencyKeys } from '../services/idempotency.ts';
import { Mailbox } from '../services/mail/mailbox.ts';
import { Triggers } from '../services/mail/triggers.ts';
import { Waking } from '../services/mail/waking.ts';
import { Push } from '../services/push/push.ts';
import { errandOf } from '../services/teams/attempts.ts';
import type { Progress } from '../services/teams/progress.ts';
import { openRunning } from '../services/teams/running.ts';
import { openSqlite } from '../store/sqlite.ts';
import type { Store } from '../store/store.ts';
import { Timers } from '../timers/timers.ts';
import { TestClock } from './accounts.ts';
import { expectTrue } from './refold.ts';
import { ScriptedNode } from './scripted-node.ts';

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

/** For what happens soon, on however slow a machine. */
export const SOON = { timeout: 20_000 };

export class LivesRoom {
  readonly folder: string;
  readonly store: Store;
  readonly clock = new TestClock();
  readonly log: EventLog;
  readonly feed: Feed;
  readonly node = new ScriptedNode();
  readonly secrets = new Secrets({ redact_env: () => true, actorToken: () => this.actor_token });
  #served: Node | null = null;
  review_timeout_ms: number | null = null;
  /** Of every session. */
  actor_token: string | null = null;
  /** What leaders of teams were told. */
  readonly notices: ReviewNotice[] = [];
  readonly routing: ReviewRouting = {
    leader_timeout_ms: () => 60_000,
    notify: (_tx, notice) => void this.notices.push(notice),
  };
  agents!: Agents;
  forgetting!: Forgetting;
  prompting!: Prompting;
  progress!: Progress;
  reviews!: Reviews;
  idempotency!: IdempotencyKeys;
  mailbox!: Mailbox;
  triggers!: Triggers;
  facts!: Facts;
  push!: Push;
  /** Of push services that tests made. */
  push_origins: string[] = [];
  /** What a plane does when it ends; `open` is its next start. */
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

  /** `served`: a node that takes the place of the scripted one. `kept`: the folder of a room of before. */
  static async make(served: Node | null = null, kept: string | null = null): Promise<LivesRoom> {
    const folder = kept ?? (await mkdtemp(join(tmpdir(), 'svc-lives-')));
    const room = new LivesRoom(folder, await openSqlite({ path: join(folder, 'svc.db'), log: silentLog }));
    room.#served = served;
    await room.open();
    return room;
  }

  async open(): Promise<void> {
    const { store, clock, log, feed } = this;
    const node = this.#served ?? this.node;
    const common = { store, clock, log: silentLog };
    const [facts, outbox, timers] = [new Facts(common), new Outbox(common), new Timers(common)];
    this.idempotency = new IdempotencyKeys({ store, clock, key: new Uint8Array(32) });
    this.facts = facts;
    const audit = new Audit(common);
    const context = new AgentsContext({
      audit,
      idempotency: this.idempotency,
      ...{ store, log, feed, facts, outbox, timers, clock, logger: silentLog, plane_id: 'pln_a' },
      actorToken: () => this.actor_token,
      secrets: this.secrets,
      node: () => node,
      farewell: (tx, session_id) => conversations.farewell(tx, session_id),
      errand: errandOf,
      ended: (tx, session_id, exit) => running.ended(tx, session_id, exit),
      reached: (session_id, stdin_bytes) => reviews.written(session_id, stdin_bytes),
    });
    const prompting = new Prompting(context);
    const { routing } = this;
    const reviews = new Reviews(context, { routing, onAnswered: () => {} });
    const conversations = new Conversations(context, {
      review_timeout_ms: () => this.review_timeout_ms,
      routing,
      answered: (id, error) => prompting.answered(id, error),
      unanswered: (ids) => prompting.unanswered(ids),
    });
    const settlement = new Settlement(context);
    const ingest = new Ingest({
      ...{ ...common, node },
      load: (session_id) => settlement.load(session_id, 'main'),
      settle: (session_id, fact) => settlement.settle(session_id, fact),
      frames: (batch) => conversations.frames(batch),
      rebase: (session_id, stream) => settlement.rebase(session_id, stream),
    });
    const lifecycle = new Lifecycle(context, settlement, () => ingest);
    const pending = new Pending(context, lifecycle);
    this.forgetting = new Forgetting(context, settlement);
    this.agents = new Agents(context, lifecycle, pending);
    const running = openRunning(context, lifecycle, (...asked) => this.mailbox.pendingWords(...asked));
    this.progress = running.progress;
    this.mailbox = new Mailbox({ store, clock, facts, timers, audit, progress: this.progress });
    this.triggers = new Triggers(
      { store, clock, timers, audit, idempotency: this.idempotency },
      this.mailbox,
    );
    const waking = new Waking(context, this.mailbox);
    const push = new Push({
      ...{ ...common, audit, outbox, timers, key: new Uint8Array(32).fill(9) },
      own_origins: this.push_origins,
      subject: 'mailto:ops@example.org',
    });
    this.push = push;
    [this.prompting, this.reviews] = [prompting, reviews];
    await node.attach(nodeSink(context, settlement, 'main', ingest));
    await facts.open({
      'agent-restarts': restartFacts(context),
      conversations: conversations.facts(),
      runs: running.facts,
      mail: waking.facts(),
      triggers: this.triggers.facts(),
      push: push.facts(),
    });
    timers.open({
      ...restartTimers(context, lifecycle),
      ...conversations.timers(),
      ...reviews.timers(),
      ...running.timers,
      ...waking.timers(),
      ...this.triggers.timers(),
      ...push.timers(),
    });
    const handlers = lifecycle.handlers();
    await outbox.open({
      ...handlers,
      ...pending.handlers(),
      ...this.forgetting.handlers(),
      ...running.intents,
      input: async (intent) => {
        const length = await handlers.input(intent);
        await reviews.written(intent.session_id, length);
        return length;
      },
      ...push.intents(),
    });
    this.close = async () => {
      outbox.close();
      await push.close();
      await timers.close();
      await facts.close();
      await node.detach();
      await ingest.close();
    };
  }

  /** Ends everything, and deletes the folder. */
  async end(): Promise<void> {
    await this.close();
    await this.feed.close();
    await this.log.close();
    await this.store.close();
    await rm(this.folder, { recursive: true, force: true });
  }

  create(
    more: Partial<CreateAgent> = {},
    key: string | null = null,
    caller = ANA,
    options: { replace?: boolean } = {},
  ): Promise<Agent> {
    const none = { argv: null, preset: null, worktree_repo: null, worktree_ref: null, env: {}, labels: {} };
    const request = { ...none, name: 'a', command: 'true', workdir: this.folder, node_id: 'main' };
    const usual = { worktree_mode: 'use_existing', protocol: 'auto', restart_policy: 'never' } as const;
    const rest = {
      permission_mode: 'ask',
      stdin: false,
      on_exit: 'kill',
      prompt: null,
      start: false,
    } as const;
    return this.agents.create(caller, { ...request, ...usual, ...rest, ...more }, key, options);
  }

  get(agent_id: string): Promise<Agent> {
    return this.agents.get(ANA, agent_id);
  }

  /** An agent's whole log. */
  events(agent_id: string): Promise<EventRecord[]> {
    return this.log.page(agent_id, { after: 0, limit: 100_000 });
  }

  /** Codes of the errors that its log tells, in order. */
  async errors(agent_id: string): Promise<string[]> {
    return (await this.events(agent_id)).flatMap(({ type, code }) =>
      type === 'error' ? [String(code)] : [],
    );
  }

  /** Expects every conversation with an agent to be what its log tells. */
  async expectTrue(agent_id: string): Promise<void> {
    const log = await this.events(agent_id);
    const sessions = new Set(
      log.flatMap(({ type, session_id }) => (type === 'acp_event' ? [session_id!] : [])),
    );
    await this.store.read((reader) => {
      for (const session_id of sessions) expectTrue(reader, log, session_id);
    });
  }

  /** Time passes; what is due then happens. */
  async pass(ms: number): Promise<void> {
    this.clock.advance(ms);
    // The scheduler sleeps by the real clock: the next start looks anew.
    await this.close();
    await this.open();
  }

  async until(agent_id: string, status: Agent['status']): Promise<Agent> {
    await vi.waitFor(async () => expect((await this.get(agent_id)).status).toBe(status), SOON);
    return this.get(agent_id);
  }
}
