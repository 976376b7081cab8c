/**
 * What people say to an agent that speaks ACP: prompts, one turn each and one after the other, the end of a turn, the
 * agent's own settings, and signing in.
 */
import { AGENT_METHODS } from '@agentclientprotocol/sdk';
import { type ContentBlock, isContentBlock, unsupportedBlock } from '../../acp/content.ts';
import type { RpcError } from '../../acp/message.ts';
import type { AcpConfig, AcpState } from '../../acp/state.ts';
import { newId } from '../../base/ids.ts';
import { limits } from '../../base/limits.ts';
import type { Agent } from '../../domain/agent.ts';
import type { AuditEvent } from '../../domain/audit.ts';
import type { Action } from '../../domain/policy.ts';
import { invalid, Problem, problems } from '../../domain/problem.ts';
import type { Prompt } from '../../domain/prompt.ts';
import type { Caller } from '../../domain/user.ts';
import { loadAcpState } from '../../store/acp.ts';
import { type AgentRow, findSession } from '../../store/agents.ts';
import {
  countOpenPrompts,
  deletePrompt,
  findPrompt,
  openPrompts,
  type PromptRow,
  queuePrompt,
  toPrompt,
  updatePrompt,
} from '../../store/prompts.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { AgentsContext } from '../agents/context.ts';
import { differs } from '../changes.ts';
import { endTurn, sendNext } from './driver.ts';
import { Exchange } from './exchange.ts';

export interface ConfigChange {
  mode_id?: string | undefined;
  options?: Record<string, string | boolean> | undefined;
}

export class Prompting {
  readonly #context: AgentsContext;
  /** What of a request is waited for: its answer, or why there is none. */
  readonly #waiting = new Map<string, (problem: Problem | null) => void>();

  constructor(context: AgentsContext) {
    this.#context = context;
  }

  // --- prompts --------------------------------------------------------------------------------------------------------

  /** `queued`: it waits for the agent, or for a turn that goes on. */
  async prompt(
    caller: Caller,
    agent_id: string,
    content: ContentBlock[],
    idempotency_key: string | null,
  ): Promise<{ prompt_id: string; queued: boolean }> {
    mustBeContent(content);
    const { store, idempotency } = this.#context.options;
    const id = newId('prm');
    return store.write((tx) => {
      const row = this.#running(tx, caller, agent_id);
      mustTake(loadAcpState(tx, findSession(tx, row.session_id!)!.num), content);
      if (countOpenPrompts(tx, row.num) >= limits.prompts_waiting_max) throw problems.tooManyPrompts();
      queuePrompt(tx, row.num, { id, content, created_by: caller.user_id, created_at: this.#context.now() });
      this.#audit(tx, caller, 'agent_prompted', row, { prompt_id: id });
      Exchange.run(this.#context, tx, row.session_id!, sendNext);
      const body = { prompt_id: id, queued: findPrompt(tx, row.num, id)!.state === 'queued' };
      if (idempotency_key !== null) {
        idempotency.keepWith(tx, caller, idempotency_key, { status: 200, location: null, body });
      }
      return body;
    });
  }

  /** What waits, and what its turn goes on for, in the order of sending. */
  list(caller: Caller, agent_id: string): Promise<Prompt[]> {
    return this.#context.options.store.read((reader) => {
      const row = this.#context.find(reader, caller, 'agent.read', agent_id);
      return openPrompts(reader, row.num).map(toPrompt);
    });
  }

  /** Also one whose turn is over. */
  get(caller: Caller, agent_id: string, prompt_id: string): Promise<Prompt> {
    return this.#context.options.store.read((reader) => {
      const row = this.#context.find(reader, caller, 'agent.read', agent_id);
      const prompt = findPrompt(reader, row.num, prompt_id);
      if (!prompt) throw problems.promptNotFound();
      return toPrompt(prompt);
    });
  }

  async edit(caller: Caller, agent_id: string, prompt_id: string, content: ContentBlock[]): Promise<Prompt> {
    mustBeContent(content);
    return this.#context.options.store.write((tx) => {
      const row = this.#context.find(tx, caller, 'agent.drive', agent_id);
      const prompt = mustWait(tx, row, prompt_id);
      const values = { content: JSON.stringify(content) };
      if (!differs(prompt, values)) return toPrompt(prompt);
      updatePrompt(tx, prompt.num, values);
      this.#audit(tx, caller, 'agent_prompt_changed', row, { prompt_id });
      return toPrompt({ ...prompt, ...values });
    });
  }

  remove(caller: Caller, agent_id: string, prompt_id: string): Promise<void> {
    const { store, facts } = this.#context.options;
    return store.write((tx) => {
      const row = this.#context.find(tx, caller, 'agent.drive', agent_id);
      deletePrompt(tx, mustWait(tx, row, prompt_id).num);
      this.#audit(tx, caller, 'agent_prompt_removed', row, { prompt_id });
      if (row.run_num !== null) facts.record(tx, 'prompt_removed', prompt_id, { agent_id, prompt_id });
    });
  }

  /** Ends the turn that goes on; the agent stays, and what waits is sent next. */
  async cancel(caller: Caller, agent_id: string): Promise<Agent> {
    const { store, timers } = this.#context.options;
    return store.write((tx) => {
      const row = this.#running(tx, caller, agent_id);
      const prompt_id = Exchange.run(this.#context, tx, row.session_id!, (exchange) =>
        endTurn(exchange, caller.username),
      );
      if (prompt_id === null) throw problems.noTurn();
      const due_at = this.#context.now() + limits.turn_cancel_ms;
      timers.set(tx, 'turn_cancel', row.session_id!, due_at, { prompt_id });
      this.#audit(tx, caller, 'agent_turn_cancelled', row, { prompt_id });
      return this.#context.record(this.#context.mustFind(tx, agent_id));
    });
  }

  // --- settings -------------------------------------------------------------------------------------------------------

  config(caller: Caller, agent_id: string): Promise<AcpConfig> {
    return this.#config(caller, 'agent.read', agent_id);
  }

  /** `action`: what the caller asked for. */
  #config(caller: Caller, action: Action, agent_id: string): Promise<AcpConfig> {
    return this.#context.options.store.read((reader) => {
      const row = mustSpeak(this.#context.find(reader, caller, action, agent_id));
      const session = row.session_id === null ? undefined : findSession(reader, row.session_id);
      if (!session) throw problems.agentNotRunning();
      return toConfig(loadAcpState(reader, session.num));
    });
  }

  /** Sets them one after the other, and answers what they are then. Throws the agent's own words when it refuses. */
  async configure(caller: Caller, agent_id: string, change: ConfigChange): Promise<AcpConfig> {
    const requests: { method: string; params: object }[] = Object.entries(change.options ?? {}).map(
      ([configId, value]) => ({
        method: AGENT_METHODS.session_set_config_option,
        params: typeof value === 'boolean' ? { configId, type: 'boolean', value } : { configId, value },
      }),
    );
    if (change.mode_id !== undefined) {
      requests.unshift({ method: AGENT_METHODS.session_set_mode, params: { modeId: change.mode_id } });
    }
    for (const { method, params } of requests) {
      await this.#ask(caller, agent_id, method, (state) => {
        if (state.phase !== 'ready') throw problems.acpNotReady();
        return { sessionId: state.acp_session_id, ...params };
      });
    }
    return this.#config(caller, 'agent.drive', agent_id);
  }

  async authenticate(caller: Caller, agent_id: string, method_id: string): Promise<AcpConfig> {
    await this.#ask(caller, agent_id, AGENT_METHODS.authenticate, (state) => {
      if (state.phase !== 'auth_required') throw problems.noSignIn();
      if (!state.auth_methods.some(({ id }) => id === method_id)) throw problems.unknownAuthMethod();
      return { methodId: method_id };
    });
    return this.#config(caller, 'agent.drive', agent_id);
  }

  /** The agent answered a request of ours. */
  answered(request_id: string, error: RpcError | null): void {
    this.#settle(
      request_id,
      error && new Problem('conflict', 'agent_refused', `the agent refused: ${error.message}`),
    );
  }

  /** The agent ended, and answers no more. */
  unanswered(request_ids: readonly string[]): void {
    for (const id of request_ids) this.#settle(id, problems.agentNotRunning());
  }

  #settle(request_id: string, problem: Problem | null): void {
    this.#waiting.get(request_id)?.(problem);
    this.#waiting.delete(request_id);
  }

  async #ask(
    caller: Caller,
    agent_id: string,
    method: string,
    params: (state: AcpState) => object,
  ): Promise<void> {
    const asked = await this.#context.options.store.write((tx) => {
      const row = this.#running(tx, caller, agent_id);
      this.#audit(tx, caller, 'agent_configured', row, { method });
      const id = Exchange.run(this.#context, tx, row.session_id!, (exchange) => {
        if (exchange.state.asked.length >= limits.acp_asked_max) throw problems.acpSilent();
        return exchange.request(method, params(exchange.state));
      });
      // Before the commit is told: the answer may come at once.
      const { promise, resolve } = Promise.withResolvers<Problem | null>();
      tx.afterCommit(() => this.#waiting.set(id!, resolve));
      return { id: id!, promise };
    });
    const patience = setTimeout(() => this.#settle(asked.id, problems.acpSilent()), limits.acp_answer_ms);
    const problem = await asked.promise;
    clearTimeout(patience);
    if (problem) throw problem;
  }

  #running(reader: Reader, caller: Caller, agent_id: string): AgentRow {
    const row = mustSpeak(this.#context.find(reader, caller, 'agent.drive', agent_id));
    if (row.status !== 'running' || row.session_state !== 'running') throw problems.agentNotRunning();
    if (findSession(reader, row.session_id!)?.stdin_lost === 1) throw problems.stdinLost();
    return row;
  }

  #audit(tx: Tx, caller: Caller, event: AuditEvent, row: AgentRow, details: Record<string, unknown>): void {
    const { user_id, ip } = caller;
    this.#context.options.audit.record(tx, { event, agent_id: row.id, user_id, ip, details });
  }
}

function mustSpeak(row: AgentRow): AgentRow {
  if (row.protocol !== 'acp') throw problems.agentNotAcp();
  return row;
}

function mustBeContent(content: ContentBlock[]): void {
  const wrong = content.findIndex((block) => !isContentBlock(block));
  if (wrong >= 0) throw invalid(`content[${wrong}] must be a content block of ACP`);
}

/** Where the agent has not said yet what it takes, it says so itself. */
function mustTake(state: AcpState, content: ContentBlock[]): void {
  if (state.phase === 'failed') throw problems.acpFailed();
  const type = state.agent || state.phase === 'ready' ? unsupportedBlock(content, state.capabilities) : null;
  if (type !== null) throw invalid(`content of type ${type} is not taken by this agent`, 'content_not_taken');
}

function mustWait(reader: Reader, row: AgentRow, prompt_id: string): PromptRow {
  const prompt = findPrompt(reader, row.num, prompt_id);
  if (!prompt) throw problems.promptNotFound();
  if (prompt.state !== 'queued') throw problems.promptSent();
  return prompt;
}

function toConfig(state: AcpState): AcpConfig {
  const { modes, config_options, commands, agent, capabilities, auth_methods, usage, title, plan, phase } =
    state;
  return { phase, agent, title, modes, config_options, commands, plan, usage, capabilities, auth_methods };
}
