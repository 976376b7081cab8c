/**
 * What a frame changes (pure): the state of a session after it, and what follows from it for others. Both directions
 * are folded, so folding a session's log from its beginning gives the state that is stored. It believes nothing: what it does
 * not know, or what has an unexpected form, changes nothing.
 */
import {
  AGENT_METHODS,
  type AvailableCommand,
  CLIENT_METHODS,
  type PlanEntry,
  PROTOCOL_METHODS,
  PROTOCOL_VERSION,
  type SessionConfigOption,
  type SessionModeState,
} from '@agentclientprotocol/sdk';
import { limits } from '../base/limits.ts';
import { nothingObserved, seeCall, seeRequest } from './acting.ts';
import {
  AUTH_REQUIRED,
  isId,
  isRecord,
  type Message,
  type RequestId,
  type RpcError,
  recordsOf,
  rpcErrors,
  textOf,
} from './message.ts';
import { currentMode, withOneMode } from './modes.ts';
import { type Permission, readPermission } from './permission.ts';
import type { AcpState, Asked, Asking, AuthMethod, Capabilities } from './state.ts';

export type Direction = 'from_agent' | 'to_agent';

/** What follows from a frame, for whoever acts on it. */
export type Happening =
  | { kind: 'initialized' }
  | { kind: 'opened'; method: string }
  | { kind: 'open_failed'; method: string; error: RpcError }
  | { kind: 'auth_required' }
  | { kind: 'authenticated' }
  | { kind: 'failed'; code: string; message: string }
  | { kind: 'turn_ended'; prompt_id: string; stop_reason: string | null; error: RpcError | null }
  | { kind: 'asks_permission'; asking: Asking; permission: Permission }
  | { kind: 'permission_unreadable'; asking: Asking }
  | { kind: 'refused'; asking: Asking; error: RpcError }
  /** `asking`: those of them that are not answered. */
  | { kind: 'withdrawn'; id: RequestId; asking: Asking[] }
  | { kind: 'answered'; asked: Asked; error: RpcError | null };

export interface Folded {
  /** The same object when nothing changed. */
  state: AcpState;
  /** A replayed part of an old conversation. */
  replay: boolean;
  happened: Happening[];
}

export function fold(state: AcpState, direction: Direction, message: Message): Folded {
  const step = direction === 'to_agent' ? foldOurs(state, message) : foldTheirs(state, message);
  return { replay: false, happened: [], ...step, state: withinMode(state, step.state) };
}

/** What was observed in one mode says nothing about another. */
function withinMode(before: AcpState, after: AcpState): AcpState {
  if (before.modes === after.modes && before.config_options === after.config_options) return after;
  const state = withOneMode(before, after);
  return currentMode(before) === currentMode(state) ? state : { ...state, acting: nothingObserved };
}

type Step = Partial<Folded> & { state: AcpState };

// --- ours -------------------------------------------------------------------------------------------------------------

function foldOurs(state: AcpState, message: Message): Step {
  switch (message.kind) {
    case 'request':
      return { state: ask(state, message.id, message.method, message.params) };
    case 'response':
      return { state: respond(state, message) };
    case 'notification':
      return { state };
  }
}

function respond(before: AcpState, { id, result }: Message & { kind: 'response' }): AcpState {
  const at = before.asking.findIndex((one) => one.id === id);
  if (at < 0) return before;
  const state = { ...before, asking: before.asking.toSpliced(at, 1) };
  const chosen = isRecord(result) ? textOf(result.outcome, 'optionId') : null;
  const always = chosen !== null && before.asking[at]!.always?.includes(chosen);
  return always ? { ...state, acting: { ...state.acting, allowed_always: true } } : state;
}

function ask(before: AcpState, request_id: RequestId, method: string, params: unknown): AcpState {
  const id = String(request_id);
  const asked: Asked = { id, method, value: null };
  const state = {
    ...before,
    asked_count: before.asked_count + 1,
    asked: [...before.asked, asked],
  };
  switch (method) {
    case AGENT_METHODS.initialize:
      return { ...state, phase: 'initializing' };
    case AGENT_METHODS.authenticate:
      return { ...state, phase: 'authenticating' };
    case AGENT_METHODS.session_new:
      return { ...state, phase: 'opening', acp_session_id: null };
    case AGENT_METHODS.session_load:
    case AGENT_METHODS.session_resume:
      return { ...state, phase: 'opening', acp_session_id: textOf(params, 'sessionId') };
    case AGENT_METHODS.session_prompt:
      return { ...state, turn: { prompt_id: id } };
    case AGENT_METHODS.session_set_mode:
      asked.value = textOf(params, 'modeId');
      return state;
    default:
      return state;
  }
}

// --- the agent's ------------------------------------------------------------------------------------------------------

function foldTheirs(state: AcpState, message: Message): Step {
  switch (message.kind) {
    case 'request':
      return asks(state, message);
    case 'response':
      return answers(state, message);
    case 'notification':
      if (message.method === CLIENT_METHODS.session_update) return update(state, message.params);
      if (message.method === PROTOCOL_METHODS.cancel_request) return withdraw(state, message.params);
      return { state };
  }
}

function asks(before: AcpState, message: Message & { kind: 'request' }): Step {
  const asking: Asking = { number: before.asking_count + 1, id: message.id };
  const state = { ...before, asking_count: asking.number, asking: [...before.asking, asking] };
  if (before.asking.length >= limits.acp_open_requests_max) {
    return { state, happened: [{ kind: 'refused', asking, error: rpcErrors.tooManyRequests }] };
  }
  if (message.method === CLIENT_METHODS.session_request_permission) {
    const permission = readPermission(message.params);
    if (permission === null) return { state, happened: [{ kind: 'permission_unreadable', asking }] };
    const always = permission.options.flatMap((one) => (one.kind === 'allow_always' ? one.option_id : []));
    if (always.length > 0) asking.always = always;
    const acting = seeRequest(state.acting, permission.tool_call);
    return { state: { ...state, acting }, happened: [{ kind: 'asks_permission', asking, permission }] };
  }
  return { state, happened: [{ kind: 'refused', asking, error: rpcErrors.methodNotFound }] };
}

function withdraw(state: AcpState, params: unknown): Step {
  const id = isRecord(params) ? params.requestId : undefined;
  if (!isId(id)) return { state };
  const asking = state.asking.filter((one) => one.id === id);
  return { state, happened: [{ kind: 'withdrawn', id, asking }] };
}

function answers(before: AcpState, message: Message & { kind: 'response' }): Step {
  const { id, result } = message;
  const error = message.error ?? null;
  const asked = before.asked.find((one) => one.id === id);
  if (!asked) return { state: before };
  const state: AcpState = { ...before, asked: before.asked.filter((one) => one !== asked) };
  const { step, happened } = settle(state, asked, result, error);
  return { state: step, happened: [...happened, { kind: 'answered', asked, error }] };
}

interface Settled {
  step: AcpState;
  happened: Happening[];
}

function settle(state: AcpState, asked: Asked, result: unknown, error: RpcError | null): Settled {
  const { method } = asked;
  switch (method) {
    case AGENT_METHODS.initialize:
      return error ? fail(state, 'acp_initialize_failed', error.message) : initialized(state, result);
    case AGENT_METHODS.authenticate:
      return error
        ? { step: { ...state, phase: 'auth_required' }, happened: [] }
        : {
            step: { ...state, phase: state.acp_session_id === null ? 'opening' : 'ready' },
            happened: [{ kind: 'authenticated' }],
          };
    case AGENT_METHODS.session_new:
    case AGENT_METHODS.session_load:
    case AGENT_METHODS.session_resume:
      return error ? openFailed(state, method, error) : opened(state, method, result);
    case AGENT_METHODS.session_prompt:
      return turnEnded(state, asked.id, result, error);
    case AGENT_METHODS.session_set_mode:
      if (error || state.modes === null || asked.value === null) break;
      return { step: { ...state, modes: { ...state.modes, currentModeId: asked.value } }, happened: [] };
    case AGENT_METHODS.session_set_config_option:
      return { step: { ...state, ...configured(result) }, happened: [] };
  }
  return { step: state, happened: [] };
}

function initialized(state: AcpState, result: unknown): Settled {
  const version = isRecord(result) ? result.protocolVersion : undefined;
  if (!isRecord(result) || version !== PROTOCOL_VERSION) {
    const said = typeof version === 'number' ? `ACP version ${version}` : 'no version of ACP';
    return fail(
      state,
      'acp_version_unsupported',
      `the agent speaks ${said}, this service version ${PROTOCOL_VERSION}`,
    );
  }
  const { agentInfo, agentCapabilities, authMethods } = result;
  const step = {
    ...state,
    agent: isRecord(agentInfo)
      ? {
          name: textOf(agentInfo, 'name') ?? '',
          title: textOf(agentInfo, 'title'),
          version: textOf(agentInfo, 'version'),
        }
      : null,
    capabilities: capabilitiesOf(agentCapabilities),
    auth_methods: bounded(recordsOf(authMethods).flatMap(authMethod)),
  };
  return { step, happened: [{ kind: 'initialized' }] };
}

function opened(state: AcpState, method: string, result: unknown): Settled {
  const acp_session_id =
    method === AGENT_METHODS.session_new ? textOf(result, 'sessionId') : state.acp_session_id;
  if (acp_session_id === null)
    return fail(state, 'acp_session_failed', 'the agent opened a session without an id');
  const step: AcpState = { ...state, phase: 'ready', acp_session_id, ...configured(result) };
  return { step, happened: [{ kind: 'opened', method }] };
}

function openFailed(state: AcpState, method: string, error: RpcError): Settled {
  if (error.code === AUTH_REQUIRED) {
    const step: AcpState = { ...state, phase: 'auth_required', acp_session_id: null };
    return { step, happened: [{ kind: 'auth_required' }] };
  }
  const happened: Happening[] = [{ kind: 'open_failed', method, error }];
  if (method !== AGENT_METHODS.session_new) return { step: { ...state, acp_session_id: null }, happened };
  const failed = fail(state, 'acp_session_failed', error.message);
  return { step: failed.step, happened: [...happened, ...failed.happened] };
}

function turnEnded(state: AcpState, prompt_id: string, result: unknown, error: RpcError | null): Settled {
  const stop_reason = textOf(result, 'stopReason');
  const ended: AcpState = state.turn?.prompt_id === prompt_id ? { ...state, turn: null } : state;
  const happened: Happening[] = [{ kind: 'turn_ended', prompt_id, stop_reason, error }];
  if (error?.code !== AUTH_REQUIRED) return { step: ended, happened };
  return { step: { ...ended, phase: 'auth_required' }, happened: [{ kind: 'auth_required' }, ...happened] };
}

function fail(state: AcpState, code: string, message: string): Settled {
  return { step: { ...state, phase: 'failed' }, happened: [{ kind: 'failed', code, message }] };
}

// --- updates ----------------------------------------------------------------------------------------------------------

function update(state: AcpState, params: unknown): Step {
  const replay = state.asked.some(({ method }) => method === AGENT_METHODS.session_load);
  const told = isRecord(params) && isRecord(params.update) ? params.update : {};
  return { state: replay ? replayed(state, told) : updated(state, told), replay };
}

/** What acted in the replayed part did so in another session, maybe in another mode. */
function replayed(state: AcpState, told: Record<string, unknown>): AcpState {
  const after = updated(state, told);
  return after.acting === state.acting ? after : { ...after, acting: state.acting };
}

function updated(state: AcpState, told: Record<string, unknown>): AcpState {
  switch (told.sessionUpdate) {
    case 'tool_call':
    case 'tool_call_update': {
      const acting = seeCall(state.acting, told);
      return acting === state.acting ? state : { ...state, acting };
    }
    case 'plan':
      return { ...state, plan: bounded(recordsOf(told.entries)) as unknown as PlanEntry[] };
    case 'available_commands_update':
      return {
        ...state,
        commands: bounded(recordsOf(told.availableCommands)) as unknown as AvailableCommand[],
      };
    case 'current_mode_update': {
      const currentModeId = textOf(told, 'currentModeId');
      if (currentModeId === null) return state;
      return { ...state, modes: { availableModes: [], ...state.modes, currentModeId } };
    }
    case 'config_option_update':
      return { ...state, ...configured(told) };
    case 'session_info_update':
      return told.title === undefined ? state : { ...state, title: textOf(told, 'title') };
    case 'usage_update': {
      const { used, size } = told;
      if (!isNumber(used) || !isNumber(size)) return state;
      return { ...state, usage: { used, size, ...costOf(told.cost) } };
    }
    default:
      return state;
  }
}

function configured(result: unknown): Partial<AcpState> {
  if (!isRecord(result)) return {};
  const { modes, configOptions } = result;
  return {
    ...(isRecord(modes) &&
      textOf(modes, 'currentModeId') !== null && {
        modes: {
          currentModeId: textOf(modes, 'currentModeId')!,
          availableModes: bounded(recordsOf(modes.availableModes)),
        } as unknown as SessionModeState,
      }),
    ...(Array.isArray(configOptions) && {
      config_options: bounded(recordsOf(configOptions)) as unknown as SessionConfigOption[],
    }),
  };
}

// --- values -----------------------------------------------------------------------------------------------------------

function capabilitiesOf(value: unknown): Capabilities {
  const said = isRecord(value) ? value : {};
  const prompt = isRecord(said.promptCapabilities) ? said.promptCapabilities : {};
  const session = isRecord(said.sessionCapabilities) ? said.sessionCapabilities : {};
  return {
    load: said.loadSession === true,
    resume: isRecord(session.resume),
    image: prompt.image === true,
    audio: prompt.audio === true,
    embedded_context: prompt.embeddedContext === true,
  };
}

function authMethod(value: Record<string, unknown>): AuthMethod[] {
  const [id, name] = [textOf(value, 'id'), textOf(value, 'name')];
  if (id === null || name === null) return [];
  return [{ id, name, description: textOf(value, 'description'), type: textOf(value, 'type') ?? 'agent' }];
}

function costOf(value: unknown): { cost?: { amount: number; currency: string } } {
  if (!isRecord(value) || !isNumber(value.amount)) return {};
  return { cost: { amount: value.amount, currency: textOf(value, 'currency') ?? '' } };
}

/** JSON can say numbers that it cannot hold: those are none. */
function isNumber(value: unknown): value is number {
  return Number.isFinite(value);
}

/** The first of them that fit: the whole of it stands in the log. */
function bounded<T extends object>(items: T[]): T[] {
  let chars = 0;
  const kept = items.slice(0, limits.acp_items_max);
  const over = kept.findIndex((item) => {
    chars += JSON.stringify(item).length;
    return chars > limits.acp_state_chars_max;
  });
  return over < 0 ? kept : kept.slice(0, over);
}
