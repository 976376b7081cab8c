/**
 * What the service says to an agent that speaks ACP, and what it writes down of what the agent said: it introduces itself,
 * opens or resumes a session, sends one prompt after the other, and puts every question before people. It answers no
 * permission by itself.
 */
import { AGENT_METHODS, type McpServer, PROTOCOL_VERSION } from '@agentclientprotocol/sdk';
import type { Happening } from '../../acp/fold.ts';
import { type RpcError, rpcErrors } from '../../acp/message.ts';
import { limits } from '../../base/limits.ts';
import { version } from '../../base/version.ts';
import { findPrompt, nextPrompt, updatePrompt } from '../../store/prompts.ts';
import { pendingReviews } from '../../store/reviews.ts';
import type { Exchange } from './exchange.ts';
import { applyPermissionMode, isApplying, isPermissionMode } from './permission-mode.ts';
import type { ReviewRouting } from './review-routing.ts';
import { closeReview, openReview, withdrawReviews } from './review-rows.ts';

export interface DriverOptions {
  /** How long a review may wait for its answer; null: for ever. */
  review_timeout_ms(): number | null;
  routing: ReviewRouting;
  /** A request of ours was answered; called after the commit. */
  answered(request_id: string, error: RpcError | null): void;
  /** The session ended before it answered requests of ours; called after the commit. */
  unanswered(request_ids: string[]): void;
}

/** The first words of a session. */
export function introduce(exchange: Exchange): void {
  if (exchange.state.phase !== 'starting') return;
  exchange.request(AGENT_METHODS.initialize, {
    protocolVersion: PROTOCOL_VERSION,
    clientInfo: { name: 'svc', title: 'svc', version },
    clientCapabilities: {
      fs: { readTextFile: false, writeTextFile: false },
      terminal: false,
      session: { configOptions: { boolean: {} } },
    },
  });
  awaitAnswer(exchange);
}

/** An agent that does not answer what it needs before its first prompt is reported as silent. */
export function awaitAnswer({ tx, context, session, now }: Exchange): void {
  context.options.timers.set(tx, 'acp_silent', session.id, now + limits.acp_silent_ms, {});
}

type Reactions = {
  [K in Happening['kind']]: (
    exchange: Exchange,
    happened: Extract<Happening, { kind: K }>,
    options: DriverOptions,
  ) => void;
};

const reactions: Reactions = {
  initialized: (exchange) => {
    heard(exchange);
    open(exchange);
  },
  authenticated: (exchange) => {
    if (exchange.state.phase === 'ready') ready(exchange);
    else open(exchange);
  },
  open_failed: (exchange, { method, error }) => openFailed(exchange, method, error.message),
  opened: (exchange) => {
    applyPermissionMode(exchange);
    if (isApplying(exchange)) awaitAnswer(exchange);
    else ready(exchange);
  },
  auth_required: (exchange) => {
    const methods = exchange.state.auth_methods;
    waits(exchange, 'auth_required', 'the agent wants somebody to sign in first', { methods });
  },
  failed: (exchange, { code, message }) => {
    heard(exchange);
    exchange.error(code, message);
    const { tx, context, session, agent } = exchange;
    const failed = { agent_id: agent.id, session_id: session.id, error: exchange.told(message) };
    context.options.facts.record(tx, 'acp_failed', session.id, failed);
  },
  turn_ended: (exchange, { prompt_id, stop_reason, error }) => {
    const { tx, context, session, agent } = exchange;
    context.options.timers.clear(tx, 'turn_cancel', session.id);
    const prompt = findPrompt(tx, agent.num, prompt_id);
    if (prompt) updatePrompt(tx, prompt.num, { state: 'ended', stop_reason, ended_at: exchange.now });
    if (error) exchange.error('prompt_failed', error.message, { prompt_id });
    if (agent.run_num !== null) {
      const ended = { agent_id: agent.id, session_id: session.id, prompt_id, stop_reason };
      context.options.facts.record(tx, 'turn_ended', session.id, ended);
    }
    sendNext(exchange);
  },
  asks_permission: (exchange, { asking, permission }, options) =>
    openReview(exchange, asking, permission, options.review_timeout_ms(), options.routing),
  permission_unreadable: (exchange, { asking }) => {
    const told = 'the agent asked for a permission in a form that ACP does not have';
    exchange.error('permission_unreadable', told);
    exchange.respond(asking.id, { error: rpcErrors.invalidParams });
  },
  refused: (exchange, { asking, error }) => exchange.respond(asking.id, { error }),
  withdrawn: (exchange, { id, asking }) => {
    withdrawReviews(exchange, id);
    for (const one of asking) exchange.respond(one.id, { error: rpcErrors.requestCancelled });
  },
  answered: (exchange, { asked, error }, options) => {
    exchange.tx.afterCommit(() => options.answered(asked.id, error));
    if (isPermissionMode(exchange, asked.id)) permissionModeAnswered(exchange, error);
  },
};

export function react(exchange: Exchange, happened: Happening, options: DriverOptions): void {
  const reaction = reactions[happened.kind] as Reactions[keyof Reactions];
  reaction(exchange, happened as never, options);
}

function permissionModeAnswered(exchange: Exchange, error: RpcError | null): void {
  if (error) {
    const told = `the agent refused the mode in which it would ask before it acts: ${error.message}`;
    exchange.error('permission_mode_refused', told);
  }
  if (isApplying(exchange)) return;
  heard(exchange);
  ready(exchange);
}

function heard({ tx, context, session }: Exchange): void {
  context.options.timers.clear(tx, 'acp_silent', session.id);
}

/** Tells why the agent takes no prompts yet: in its log and, of a team's, to its run. */
export function waits(
  exchange: Exchange,
  code: string,
  reason: string,
  more: Record<string, unknown> = {},
): void {
  exchange.error(code, reason, more);
  const { tx, context, session, agent } = exchange;
  if (agent.run_num === null) return;
  const waiting = { agent_id: agent.id, session_id: session.id, reason };
  context.options.facts.record(tx, 'acp_waits', session.id, waiting);
}

function ready(exchange: Exchange): void {
  sendNext(exchange);
  const { tx, context, session, agent } = exchange;
  if (agent.run_num === null) return;
  context.options.facts.record(tx, 'session_ready', session.id, {
    agent_id: agent.id,
    session_id: session.id,
  });
}

/** Sends the oldest prompt that waits, when the agent takes one. */
export function sendNext(exchange: Exchange): void {
  const { tx, agent, session, state } = exchange;
  if (state.phase !== 'ready' || state.turn !== null || isApplying(exchange)) return;
  // It would end with this session, or never arrive: it waits for the next one.
  if (session.stopping === 1 || session.stdin_lost === 1) return;
  const prompt = nextPrompt(tx, agent.num);
  if (!prompt) return;
  updatePrompt(tx, prompt.num, { state: 'sent', session_num: session.num, sent_at: exchange.now });
  exchange.request(
    AGENT_METHODS.session_prompt,
    { sessionId: state.acp_session_id, prompt: JSON.parse(prompt.content) },
    prompt.id,
  );
  if (agent.run_num === null) return;
  const began = { agent_id: agent.id, session_id: session.id, prompt_id: prompt.id };
  exchange.context.options.facts.record(tx, 'turn_began', session.id, began);
}

/**
 * Answers what the agent waits for with `cancelled`, then cancels its turn: agents that are asked otherwise wait on.
 * `by`: who did it, as people read it; null: the service. Answers the prompt whose turn it was.
 */
export function endTurn(exchange: Exchange, by: string | null): string | null {
  const { tx, agent, session, state, context } = exchange;
  for (const row of pendingReviews(tx, agent.num, session.num)) {
    const result = { outcome: { outcome: 'cancelled' } };
    exchange.respond(JSON.parse(row.request_id), { result }, { review_id: row.id, answered_by: by });
    closeReview(context, tx, row, { status: 'cancelled', answered_by: by });
    exchange.touch();
  }
  if (state.turn === null) return null;
  exchange.notify(AGENT_METHODS.session_cancel, { sessionId: state.acp_session_id });
  return state.turn.prompt_id;
}

/** Goes on with the agent's session of before where the agent can, by the gentlest way that it offers. */
function open(exchange: Exchange): void {
  const { load, resume } = exchange.state.capabilities;
  const before = exchange.agent.acp_session_id;
  if (before === null) openNew(exchange);
  else if (resume) reopen(exchange, AGENT_METHODS.session_resume, before);
  else if (load) reopen(exchange, AGENT_METHODS.session_load, before);
  else lost(exchange, 'the agent can neither resume nor load a session');
}

function openFailed(exchange: Exchange, method: string, reason: string): void {
  const before = exchange.agent.acp_session_id;
  if (method === AGENT_METHODS.session_resume && exchange.state.capabilities.load && before !== null) {
    reopen(exchange, AGENT_METHODS.session_load, before);
  } else if (method !== AGENT_METHODS.session_new) lost(exchange, reason);
}

function lost(exchange: Exchange, reason: string): void {
  exchange.error('context_lost', `the agent begins anew and knows nothing of before: ${reason}`);
  openNew(exchange);
}

function openNew(exchange: Exchange): void {
  exchange.request(AGENT_METHODS.session_new, placeOf(exchange));
}

function reopen(exchange: Exchange, method: string, sessionId: string): void {
  exchange.request(method, { sessionId, ...placeOf(exchange) });
}

/** Where it works, and the tools that it is offered: a team's member gets those by which it speaks to the team. */
function placeOf({ agent, session, context }: Exchange): { cwd: string; mcpServers: McpServer[] } {
  const is_member = agent.team_num !== null && agent.member_id !== null;
  const may_call = is_member && context.options.actorToken(session.id) !== null;
  return { cwd: agent.workdir, mcpServers: may_call ? [actorTools] : [] };
}

/** `svc` is first on every agent's PATH, and what it needs is in the session's environment. */
const actorTools: McpServer = { name: 'svc', command: 'svc', args: ['mcp', '--actor'], env: [] };
