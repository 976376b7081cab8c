/**
 * User actions in a conversation: prompts, one turn each and one after another, cancelling a turn, the agent's
 * settings, and sign-in.
 */
import { AGENT_METHODS, PROTOCOL_VERSION } from '@agentclientprotocol/sdk';
import { type ContentBlock, isContentBlock, unsupportedBlock } from '../../acp/content.ts';
import { fits } from '../../acp/fitting.ts';
import type { RpcError } from '../../acp/message.ts';
import { findModeRequest } from '../../acp/modes.ts';
import type { AcpConfig, AcpState } from '../../acp/state.ts';
import { PREVIEW_VERSION } from '../../acp/v2/version.ts';
import { newId } from '../../base/ids.ts';
import { limits as sharedLimits } from '../../base/limits.ts';
import { differs } from '../../core/changes.ts';
import type { Action } from '../../core/policy.ts';
import { invalid, Problem, problems } from '../../core/problem.ts';
import type { Redactor } from '../../core/redaction.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { Caller } from '../accounts/rules.ts';
import { AcpTransaction } from '../agents/acp-transaction.ts';
import type { AgentCore } from '../agents/core.ts';
import { loadAcpState } from '../agents/queries/acp-state.ts';
import { type AgentRow, findSession } from '../agents/queries/agents.ts';
import type { Agent } from '../agents/rules.ts';
import type { AuditEvent } from '../audit/rules/audit.ts';
import { endTurn, sendNext } from './driver.ts';
import { limits } from './limits.ts';
import {
  countOpenPrompts,
  deletePrompt,
  findPrompt,
  openPrompts,
  type PromptRow,
  queuePrompt,
  toContentJson,
  toPrompt,
  updatePrompt,
} from './queries.ts';
import type { Prompt } from './rules.ts';

export interface ConfigChange {
  mode_id?: string | undefined;
  options?: Record<string, string | boolean> | undefined;
}

/** In the form of ACP version 1. */
interface Request {
  method: string;
  params: object;
}

export class Prompting {
  readonly #core: AgentCore;
  /** A caller that waits for the answer to a request, or for the reason why there is none. */
  readonly #waiting = new Map<string, (problem: Problem | null) => void>();

  constructor(core: AgentCore) {
    this.#core = core;
  }

  // --- prompts --------------------------------------------------------------------------------------------------------

  /** `queued`: it waits for the agent, or for the current turn. */
  async prompt(
    caller: Caller,
    agent_id: string,
    content: ContentBlock[],
    idempotency_key: string | null,
  ): Promise<{ prompt_id: string; queued: boolean }> {
    const { store, idempotency } = this.#core;
    const id = newId('prm');
    return store.write(async (tx) => {
      const body = await this.promptIn(tx, caller, agent_id, content, id);
      if (idempotency_key !== null) {
        await idempotency.storeWith(tx, caller, idempotency_key, { status: 200, location: null, body });
      }
      return body;
    });
  }

  /** Like `prompt`, in a transaction of the caller. */
  async promptIn(
    tx: Tx,
    caller: Caller,
    agent_id: string,
    content: ContentBlock[],
    prompt_id: string,
  ): Promise<{ prompt_id: string; queued: boolean }> {
    assertContent(content);
    const row = await this.#running(tx, caller, agent_id);
    assertSupportedContent(await loadAcpState(tx, (await findSession(tx, row.session_id!))!.num), content);
    if ((await countOpenPrompts(tx, row.num)) >= limits.prompts_waiting_max) throw problems.tooManyPrompts();
    await queuePrompt(tx, row.num, {
      id: prompt_id,
      content,
      created_by: caller.user_id,
      created_at: this.#core.clock.now(),
    });
    await this.#audit(tx, caller, 'agent_prompted', row, { prompt_id });
    await AcpTransaction.run(this.#core, tx, row.session_id!, sendNext);
    return { prompt_id, queued: (await findPrompt(tx, row.num, prompt_id))!.state === 'queued' };
  }

  /** The current prompt and the queued prompts, in the order of sending. */
  list(caller: Caller, agent_id: string): Promise<Prompt[]> {
    return this.#core.store.read(async (reader) => {
      const row = await this.#core.records.find(reader, caller, 'agent.read', agent_id);
      return (await openPrompts(reader, row.num)).map(toPrompt);
    });
  }

  /** Also finds a prompt whose turn is over. */
  get(caller: Caller, agent_id: string, prompt_id: string): Promise<Prompt> {
    return this.#core.store.read(async (reader) => {
      const row = await this.#core.records.find(reader, caller, 'agent.read', agent_id);
      const prompt = await findPrompt(reader, row.num, prompt_id);
      if (!prompt) throw problems.promptNotFound();
      return toPrompt(prompt);
    });
  }

  /** Changes a queued prompt. Throws `prompt_sent` once it has been sent. Without a change, it is not audited. */
  async edit(caller: Caller, agent_id: string, prompt_id: string, content: ContentBlock[]): Promise<Prompt> {
    assertContent(content);
    return this.#core.store.write(async (tx) => {
      const row = await this.#core.records.find(tx, caller, 'agent.drive', agent_id);
      const prompt = await requireQueuedPrompt(tx, row, prompt_id);
      const values = { content: toContentJson(content) };
      if (!differs(prompt, values)) return toPrompt(prompt);
      await updatePrompt(tx, prompt.num, values);
      await this.#audit(tx, caller, 'agent_prompt_changed', row, { prompt_id });
      return toPrompt({ ...prompt, ...values });
    });
  }

  /** Removes a queued prompt. Throws like `edit`. */
  remove(caller: Caller, agent_id: string, prompt_id: string): Promise<void> {
    const { store, facts } = this.#core;
    return store.write(async (tx) => {
      const row = await this.#core.records.find(tx, caller, 'agent.drive', agent_id);
      await deletePrompt(tx, (await requireQueuedPrompt(tx, row, prompt_id)).num);
      await this.#audit(tx, caller, 'agent_prompt_removed', row, { prompt_id });
      if (row.run_num !== null) await facts.record(tx, 'prompt_removed', prompt_id, { agent_id, prompt_id });
    });
  }

  /**
   * Cancels the current turn; the agent keeps running and gets the next queued prompt. `only`: the prompt whose turn it must
   * be (null: work without a prompt), so that a late or repeated request does not cancel another turn. Throws `no_turn`.
   */
  async cancel(caller: Caller, agent_id: string, only?: string | null): Promise<Agent> {
    const { store, timers } = this.#core;
    return store.write(async (tx) => {
      const row = await this.#running(tx, caller, agent_id);
      const ended = await AcpTransaction.run(this.#core, tx, row.session_id!, async (transaction) => {
        const current = transaction.state.turn?.prompt_id ?? null;
        return only === undefined || only === current ? endTurn(transaction, caller.username) : null;
      });
      if (ended === null) throw problems.noTurn();
      const { prompt_id } = ended;
      const due_at = this.#core.clock.now() + sharedLimits.turn_cancel_ms;
      await timers.set(tx, 'turn_cancel', row.session_id!, due_at, { prompt_id });
      await this.#audit(tx, caller, 'agent_turn_cancelled', row, { prompt_id });
      return this.#core.records.toAgent(await this.#core.records.mustFind(tx, agent_id));
    });
  }

  // --- settings -------------------------------------------------------------------------------------------------------

  /** The settings of the current or last session. Throws `agent is not running` if there has been none. */
  config(caller: Caller, agent_id: string): Promise<AcpConfig> {
    return this.#config(caller, 'agent.read', agent_id);
  }

  /** `action`: the action to authorize. */
  #config(caller: Caller, action: Action, agent_id: string): Promise<AcpConfig> {
    return this.#core.store.read(async (reader) => {
      const row = assertAcpAgent(await this.#core.records.find(reader, caller, action, agent_id));
      const session = row.session_id === null ? undefined : await findSession(reader, row.session_id);
      if (!session) throw problems.agentNotRunning();
      const redactor = await this.#core.secrets.redactor(reader, session.id);
      return toConfig(await loadAcpState(reader, session.num), redactor);
    });
  }

  /** Sets them one after another, and returns the resulting settings. Throws the agent's own message if it refuses. */
  async configure(caller: Caller, agent_id: string, change: ConfigChange): Promise<AcpConfig> {
    const settings: ((state: AcpState) => Request)[] = Object.entries(change.options ?? {}).map(
      ([configId, value]) =>
        () => ({
          method: AGENT_METHODS.session_set_config_option,
          params: typeof value === 'boolean' ? { configId, type: 'boolean', value } : { configId, value },
        }),
    );
    const { mode_id } = change;
    if (mode_id !== undefined) settings.unshift((state) => modeRequest(state, mode_id));
    for (const setting of settings) {
      await this.#sendRequest(caller, agent_id, (state) => {
        if (state.phase !== 'ready') throw problems.acpNotReady();
        const { method, params } = setting(state);
        return { method, params: { sessionId: state.acp_session_id, ...params } };
      });
    }
    return this.#config(caller, 'agent.drive', agent_id);
  }

  /** Signs in with one of the methods that the agent offers. Throws the agent's own message if it rejects the sign-in. */
  async authenticate(caller: Caller, agent_id: string, method_id: string): Promise<AcpConfig> {
    await this.#sendRequest(caller, agent_id, (state) => {
      // An agent may never answer a sign-in that was abandoned, for example in a browser.
      if (state.phase !== 'auth_required' && state.phase !== 'authenticating') throw problems.noSignIn();
      if (!state.auth_methods.some(({ id }) => id === method_id)) throw problems.unknownAuthMethod();
      return { method: AGENT_METHODS.authenticate, params: { methodId: method_id } };
    });
    return this.#config(caller, 'agent.drive', agent_id);
  }

  /** The agent answered a request of the service. */
  onResponse(request_id: string, error: RpcError | null): void {
    this.#finish(
      request_id,
      error && new Problem('conflict', 'agent_refused', `the agent refused: ${error.message}`),
    );
  }

  /** The agent ended and will not answer. */
  onNoResponse(request_ids: readonly string[]): void {
    for (const id of request_ids) this.#finish(id, problems.agentNotRunning());
  }

  #finish(request_id: string, problem: Problem | null): void {
    this.#waiting.get(request_id)?.(problem);
    this.#waiting.delete(request_id);
  }

  async #sendRequest(caller: Caller, agent_id: string, request: (state: AcpState) => Request): Promise<void> {
    const sent = await this.#core.store.write(async (tx) => {
      const row = await this.#running(tx, caller, agent_id);
      const id = await AcpTransaction.run(this.#core, tx, row.session_id!, async (transaction) => {
        const { asked } = transaction.state;
        if (asked.length >= limits.acp_asked_max || !fits(asked)) throw problems.acpSilent();
        const { method, params } = request(transaction.state);
        await this.#audit(tx, caller, 'agent_configured', row, { method });
        return transaction.request(method, params);
      });
      // Registered before the commit is published, because the answer may arrive at once.
      const { promise, resolve } = Promise.withResolvers<Problem | null>();
      tx.afterCommit(() => this.#waiting.set(id!, resolve));
      return { id: id!, promise };
    });
    const timeout = setTimeout(() => this.#finish(sent.id, problems.acpSilent()), limits.acp_answer_ms);
    const problem = await sent.promise;
    clearTimeout(timeout);
    if (problem) throw problem;
  }

  async #running(reader: Reader, caller: Caller, agent_id: string): Promise<AgentRow> {
    const row = assertAcpAgent(await this.#core.records.find(reader, caller, 'agent.drive', agent_id));
    if (row.status !== 'running' || row.session_state !== 'running') throw problems.agentNotRunning();
    if ((await findSession(reader, row.session_id!))?.stdin_lost === 1) throw problems.stdinLost();
    return row;
  }

  async #audit(
    tx: Tx,
    caller: Caller,
    event: AuditEvent,
    row: AgentRow,
    details: Record<string, unknown>,
  ): Promise<void> {
    const { user_id, ip } = caller;
    await this.#core.audit.record(tx, { event, agent_id: row.id, user_id, ip, details });
  }
}

function assertAcpAgent(row: AgentRow): AgentRow {
  if (row.protocol !== 'acp') throw problems.agentNotAcp();
  return row;
}

function assertContent(content: ContentBlock[]): void {
  const wrong = content.findIndex((block) => !isContentBlock(block));
  if (wrong >= 0) throw invalid(`content[${wrong}] must be a content block of ACP`);
}

/** If the agent has not reported its capabilities yet, it rejects unsupported content itself. */
function assertSupportedContent(state: AcpState, content: ContentBlock[]): void {
  if (state.phase === 'failed') throw problems.acpFailed();
  const type = state.agent || state.phase === 'ready' ? unsupportedBlock(content, state.capabilities) : null;
  if (type !== null) throw invalid(`content of type ${type} is not taken by this agent`, 'content_not_taken');
}

async function requireQueuedPrompt(reader: Reader, row: AgentRow, prompt_id: string): Promise<PromptRow> {
  const prompt = await findPrompt(reader, row.num, prompt_id);
  if (!prompt) throw problems.promptNotFound();
  if (prompt.state !== 'queued') throw problems.promptSent();
  return prompt;
}

/** Redacted, except for the ids of settings, which are sent back to the agent unchanged. */
function toConfig(state: AcpState, redactor: Redactor | null): AcpConfig {
  const { phase, agent, title, modes, config_options, commands, plan, usage } = state;
  const { subagents, capabilities, auth_methods } = state;
  // Sessions opened by an earlier release.
  const protocol_version =
    state.protocol_version ?? (state.acp_session_id === null ? null : PROTOCOL_VERSION);
  const redactable = { agent, title, commands, plan, subagents };
  const redacted = redactor
    ? (JSON.parse(redactor.json(JSON.stringify(redactable))) as typeof redactable)
    : redactable;
  return { ...redacted, phase, protocol_version, modes, config_options, usage, capabilities, auth_methods };
}

/** ACP version 2 has modes only as options; in version 1, the agent decides whether it supports the mode. */
function modeRequest(state: AcpState, mode_id: string): Request {
  if (state.protocol_version !== PREVIEW_VERSION) {
    return { method: AGENT_METHODS.session_set_mode, params: { modeId: mode_id } };
  }
  const setting = findModeRequest(state, mode_id);
  if (setting === null) throw invalid(`the agent does not offer the mode ${mode_id}`, 'unknown_mode');
  return setting;
}
