/**
 * Decides what the service sends to an ACP agent and what it records from the agent's messages. It initializes the agent,
 * opens or resumes a session, sends one prompt after another, and shows every request to people. It never answers a
 * permission request itself.
 */
import { AGENT_METHODS, type McpServer, PROTOCOL_VERSION } from '@agentclientprotocol/sdk';
import type { AcpEvent } from '../../acp/fold.ts';
import { type RpcError, rpcErrors } from '../../acp/message.ts';
import { PREVIEW_VERSION } from '../../acp/v2/version.ts';
import { version } from '../../base/version.ts';
import type { AcpTransaction } from '../agents/acp-transaction.ts';
import {
  cancelElicitations,
  completeElicitations,
  elicitationRequests,
  openElicitation,
} from '../elicitations/rows.ts';
import { limits as reviewLimits } from '../reviews/limits.ts';
import { pendingReviews } from '../reviews/queries.ts';
import type { ReviewRouting } from '../reviews/routing.ts';
import { closeReview, openReview, reviewRequests } from '../reviews/rows.ts';
import { limits } from './limits.ts';
import { applyPermissionMode, isApplying, isPermissionMode } from './permission-mode.ts';
import { findPrompt, nextPrompt, updatePrompt } from './queries.ts';

export interface DriverOptions {
  /** How long a review or an elicitation waits for its answer; null: without limit. */
  review_timeout_ms(): number | null;
  /** The newest ACP version that is offered to agents. */
  acp_version(): number;
  routing: ReviewRouting;
  /** Called after the commit when the agent has answered a request of the service. */
  onResponse(request_id: string, error: RpcError | null): void;
  /** Called after the commit when the session ended without answering these requests of the service. */
  onNoResponse(request_ids: string[]): void;
}

/** The answer to a permission request of a turn that is cancelled. */
const CANCELLED = { outcome: { outcome: 'cancelled' } };

/** Sends the first message of a session. `newest`: the ACP version to offer. */
export async function initializeAgent(transaction: AcpTransaction, newest: number): Promise<void> {
  if (transaction.state.phase !== 'starting') return;
  const info = { name: 'svc', title: 'svc', version };
  const elicitation = { form: {}, url: {} };
  const preview = { protocolVersion: PREVIEW_VERSION, info, capabilities: { elicitation } };
  transaction.request(AGENT_METHODS.initialize, {
    // An agent without version 2 reads the fields of version 1.
    ...(newest === PREVIEW_VERSION ? preview : { protocolVersion: PROTOCOL_VERSION }),
    clientInfo: info,
    clientCapabilities: {
      fs: { readTextFile: false, writeTextFile: false },
      terminal: false,
      elicitation,
      session: { configOptions: { boolean: {} } },
      subagents: {},
    },
  });
  await setSilenceTimer(transaction);
}

/** Sets a timer that reports the agent as silent if it does not answer a message that precedes its first prompt. */
export async function setSilenceTimer({ tx, core, session, state, now }: AcpTransaction): Promise<void> {
  const silent_ms = state.phase === 'opening' ? limits.acp_opening_ms : limits.acp_silent_ms;
  await core.timers.set(tx, 'acp_silent', session.id, now + silent_ms, {});
}

type Reactions = {
  [K in AcpEvent['kind']]: (
    transaction: AcpTransaction,
    event: Extract<AcpEvent, { kind: K }>,
    options: DriverOptions,
  ) => Promise<void>;
};

const reactions: Reactions = {
  initialized: open,
  authenticated: async (transaction) => {
    if (transaction.state.phase === 'ready') await ready(transaction);
    else await open(transaction);
  },
  open_failed: async (transaction, { method, error }) => openFailed(transaction, method, error.message),
  opened: async (transaction) => {
    applyPermissionMode(transaction);
    if (isApplying(transaction)) return setSilenceTimer(transaction);
    await clearSilenceTimer(transaction);
    await ready(transaction);
  },
  auth_required: async (transaction) => {
    const methods = transaction.state.auth_methods;
    await clearSilenceTimer(transaction);
    await reportBlocked(transaction, 'auth_required', 'the agent requires a sign-in first', { methods });
  },
  failed: async (transaction, { code, message }) => {
    await clearSilenceTimer(transaction);
    transaction.error(code, message);
    const { tx, core, session, agent } = transaction;
    const failed = { agent_id: agent.id, session_id: session.id, error: transaction.redact(message) };
    await core.facts.record(tx, 'acp_failed', session.id, failed);
  },
  turn_ended: async (transaction, { prompt_id, stop_reason, error }) => {
    const { tx, core, session, agent } = transaction;
    await core.timers.clear(tx, 'turn_cancel', session.id);
    const prompt = await findPrompt(tx, agent.num, prompt_id);
    if (prompt)
      await updatePrompt(tx, prompt.num, { state: 'ended', stop_reason, ended_at: transaction.now });
    if (error) transaction.error('prompt_failed', error.message, { prompt_id });
    if (agent.run_num !== null) {
      const ended = { agent_id: agent.id, session_id: session.id, prompt_id, stop_reason };
      await core.facts.record(tx, 'turn_ended', session.id, ended);
    }
    await sendNext(transaction);
  },
  idle: async (transaction) => {
    const { tx, core, session, state } = transaction;
    await core.timers.clear(tx, 'turn_cancel', session.id);
    if (state.phase === 'ready' && !isApplying(transaction)) await ready(transaction);
  },
  permission_requested: async (transaction, { request, permission, requester }, options) => {
    // After `endTurn`. Nobody would see the review, and a backlog of requests would delay the end of the agent.
    if (transaction.is_stopping) return transaction.respond(request.id, { result: CANCELLED });
    const about = { request, permission, requester };
    await openReview(transaction, about, options.review_timeout_ms(), options.routing);
  },
  permission_unreadable: async (transaction, { request }) => {
    const message = 'the agent sent a permission request that is not valid ACP';
    transaction.error('permission_unreadable', message);
    transaction.respond(request.id, { error: rpcErrors.invalidParams });
  },
  unreadable: async (transaction, { message }) => {
    transaction.error('message_unreadable', 'a message of the agent could not be read, and has no effect');
    if (message.kind === 'request') transaction.respond(message.id, { error: rpcErrors.unreadable });
  },
  input_requested: async (transaction, { request, elicitation }, options) => {
    if (transaction.is_stopping) return transaction.respond(request.id, { result: { action: 'cancel' } });
    await openElicitation(transaction, request, elicitation, options.review_timeout_ms());
  },
  input_unreadable: async (transaction, { request, reason }) => {
    transaction.error('elicitation_unreadable', `the agent's request for input was refused: ${reason}`);
    const { code, message } = rpcErrors.invalidParams;
    transaction.respond(request.id, { error: { code, message: `${message}: ${reason}` } });
  },
  input_completed: (transaction, { acp_id }) => completeElicitations(transaction, acp_id),
  refused: async (transaction, { request, error }) => transaction.respond(request.id, { error }),
  withdrawn: async (transaction, { id, requests }) => {
    // While an agent is being stopped, nothing is pending, and what is not delivered is recorded at its end.
    if (!transaction.is_stopping) {
      await reviewRequests.withdraw(transaction, id);
      await elicitationRequests.withdraw(transaction, id);
    }
    for (const request of requests) transaction.respond(request.id, { error: rpcErrors.requestCancelled });
  },
  answered: async (transaction, { asked: received, error }, options) => {
    transaction.tx.afterCommit(() => options.onResponse(received.id, error));
    if (isPermissionMode(transaction, received.id)) await permissionModeAnswered(transaction, error);
  },
};

export async function react(
  transaction: AcpTransaction,
  event: AcpEvent,
  options: DriverOptions,
): Promise<void> {
  const reaction = reactions[event.kind] as Reactions[keyof Reactions];
  await reaction(transaction, event as never, options);
  // After requests of any kind, because an agent chooses in which order it sends them.
  if ('request' in event && event.request.number % reviewLimits.requests_per_cleanup === 0) {
    await reviewRequests.deleteOld(transaction.tx, transaction.agent.num);
    await elicitationRequests.deleteOld(transaction.tx, transaction.agent.num);
  }
}

async function permissionModeAnswered(transaction: AcpTransaction, error: RpcError | null): Promise<void> {
  if (error) {
    const message = `the agent refused the mode in which it would ask before it acts: ${error.message}`;
    transaction.error('permission_mode_refused', message);
  }
  if (isApplying(transaction)) return;
  await clearSilenceTimer(transaction);
  await ready(transaction);
}

async function clearSilenceTimer({ tx, core, session }: AcpTransaction): Promise<void> {
  await core.timers.clear(tx, 'acp_silent', session.id);
}

/** Reports why the agent accepts no prompts yet: in its log and, for a team's member, to its run. */
export async function reportBlocked(
  transaction: AcpTransaction,
  code: string,
  reason: string,
  more: Record<string, unknown> = {},
): Promise<void> {
  transaction.error(code, reason, more);
  const { tx, core, session, agent } = transaction;
  if (agent.run_num === null) return;
  const waiting = { agent_id: agent.id, session_id: session.id, reason };
  await core.facts.record(tx, 'acp_waits', session.id, waiting);
}

async function ready(transaction: AcpTransaction): Promise<void> {
  await sendNext(transaction);
  const { tx, core, session, agent } = transaction;
  if (agent.run_num === null) return;
  await core.facts.record(tx, 'session_ready', session.id, {
    agent_id: agent.id,
    session_id: session.id,
  });
}

/** Sends the oldest queued prompt if the agent accepts one. */
export async function sendNext(transaction: AcpTransaction): Promise<void> {
  const { tx, agent, session, state } = transaction;
  if (state.phase !== 'ready' || state.turn !== null || state.work.busy || isApplying(transaction)) return;
  // A prompt sent now would be lost with this session, so it stays queued for the next one.
  if (session.stopping === 1 || session.stdin_lost === 1) return;
  const prompt = await nextPrompt(tx, agent.num);
  if (!prompt) return;
  await updatePrompt(tx, prompt.num, { state: 'sent', session_num: session.num, sent_at: transaction.now });
  transaction.request(
    AGENT_METHODS.session_prompt,
    { sessionId: state.acp_session_id, prompt: JSON.parse(prompt.content) },
    prompt.id,
  );
  if (agent.run_num === null) return;
  const began = { agent_id: agent.id, session_id: session.id, prompt_id: prompt.id };
  await transaction.core.facts.record(tx, 'turn_began', session.id, began);
}

/**
 * Answers the agent's pending requests with `cancelled`, and then cancels its turn; otherwise, some agents keep waiting.
 * `by`: the person's display name; null for the service. Returns the prompt of the turn (null for work without a prompt), or
 * null if there is nothing to end.
 */
export async function endTurn(
  transaction: AcpTransaction,
  by: string | null,
): Promise<{ prompt_id: string | null } | null> {
  const { tx, agent, session, state, core } = transaction;
  for (const row of await pendingReviews(tx, agent.num, session.num)) {
    transaction.respond(
      JSON.parse(row.request_id),
      { result: CANCELLED },
      { review_id: row.id, answered_by: by },
    );
    await closeReview(core, tx, row, { status: 'cancelled', answered_by: by });
    transaction.publishAtEnd();
  }
  await cancelElicitations(transaction, by);
  if (state.turn === null && !state.work.busy) return null;
  transaction.notify(AGENT_METHODS.session_cancel, { sessionId: state.acp_session_id });
  return { prompt_id: state.turn?.prompt_id ?? null };
}

/** Continues the agent's previous session if the agent supports that, preferably with `session/resume`. */
async function open(transaction: AcpTransaction): Promise<void> {
  const { load, resume } = transaction.state.capabilities;
  const before = transaction.agent.acp_session_id;
  if (before === null) await openNew(transaction);
  else if (resume) await reopen(transaction, AGENT_METHODS.session_resume, before);
  else if (load) await reopen(transaction, AGENT_METHODS.session_load, before);
  else await openWithoutContext(transaction, 'the agent can neither resume nor load a session');
}

async function openFailed(transaction: AcpTransaction, method: string, reason: string): Promise<void> {
  const before = transaction.agent.acp_session_id;
  if (method === AGENT_METHODS.session_resume && transaction.state.capabilities.load && before !== null) {
    await reopen(transaction, AGENT_METHODS.session_load, before);
  } else if (method !== AGENT_METHODS.session_new) await openWithoutContext(transaction, reason);
}

/** Starts a new session, because the previous one cannot be continued. */
async function openWithoutContext(transaction: AcpTransaction, reason: string): Promise<void> {
  transaction.error('context_lost', `the agent starts a new session without the earlier context: ${reason}`);
  await openNew(transaction);
}

async function openNew(transaction: AcpTransaction): Promise<void> {
  transaction.request(AGENT_METHODS.session_new, sessionParams(transaction));
  await setSilenceTimer(transaction);
}

async function reopen(transaction: AcpTransaction, method: string, sessionId: string): Promise<void> {
  transaction.request(method, { sessionId, ...sessionParams(transaction) });
  await setSilenceTimer(transaction);
}

/**
 * The parameters for opening a session: the folder and the MCP servers. A team's member gets a server for calls to its team.
 */
function sessionParams({ agent, core, state }: AcpTransaction): {
  cwd: string;
  mcpServers: McpServer[];
} {
  const is_member = agent.team_num !== null && agent.member_id !== null;
  const may_call = is_member && state.mcp_stdio && core.actor_calls;
  return { cwd: agent.workdir, mcpServers: may_call ? [actorTools] : [] };
}

/** `svc` comes first in every agent's PATH, and the session's environment contains everything it needs. */
const actorTools: McpServer = { name: 'svc', command: 'svc', args: ['mcp', '--actor'], env: [] };
