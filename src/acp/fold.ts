/**
 * The fold: computes the state of a session after a frame, and the events that follow from it (pure). It folds both
 * directions, so folding a session's log from the beginning gives the stored state. It trusts nothing: unknown messages and
 * those of an unexpected form change nothing.
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
import { noObservations, recordCall, recordRequest } from './acting.ts';
import { type ElicitationEvent, elicitationCompletion, elicitationRequest } from './elicitation.ts';
import { firstFitting, fits } from './fitting.ts';
import { asNumber, asRecord, asRecords, type Fields, isRecord } from './json.ts';
import { limits } from './limits.ts';
import {
  AUTH_REQUIRED,
  isId,
  type Message,
  type RequestId,
  type RpcError,
  readText,
  rpcErrors,
  truncate,
} from './message.ts';
import { currentMode, withConsistentMode } from './modes.ts';
import { type Permission, readPermission } from './permission.ts';
import { type AgentInfo, type ReportedSettings, readAgentInfo, readSettings } from './settings.ts';
import type { AcpState, AuthMethod, Capabilities, ReceivedRequest, SentRequest } from './state.ts';
import {
  findRequester,
  findSource,
  type Requester,
  type Source,
  scopedCall,
  updateSubagents,
} from './subagents.ts';
import { readOutcome, readToolCall } from './tool-calls.ts';
import { readUpdate, type Update } from './updates.ts';

export type Direction = 'from_agent' | 'to_agent';

/** An event that follows from a frame, for callers to act on. */
export type AcpEvent =
  | { kind: 'initialized' }
  | { kind: 'opened'; method: string }
  | { kind: 'open_failed'; method: string; error: RpcError }
  | { kind: 'auth_required' }
  | { kind: 'authenticated' }
  | { kind: 'failed'; code: string; message: string }
  | { kind: 'turn_ended'; prompt_id: string; stop_reason: string | null; error: RpcError | null }
  | {
      kind: 'permission_requested';
      request: ReceivedRequest;
      permission: Permission;
      requester: Requester | null;
    }
  | { kind: 'permission_unreadable'; request: ReceivedRequest }
  /** Folding the message threw `error`. */
  | { kind: 'unreadable'; message: Message; error: unknown }
  | ElicitationEvent
  /** The agent is idle after work that no prompt started. */
  | { kind: 'idle' }
  | { kind: 'refused'; request: ReceivedRequest; error: RpcError }
  /** `requests`: the withdrawn requests that have not been answered yet. */
  | { kind: 'withdrawn'; id: RequestId; requests: ReceivedRequest[] }
  | { kind: 'answered'; asked: SentRequest; error: RpcError | null };

export interface Folded {
  /** The same object if nothing changed. */
  state: AcpState;
  /** The frame is a replayed part of an old conversation. */
  replay: boolean;
  source: Source;
  events: AcpEvent[];
}

/** Folds one frame. Pure: the result has a new state, or the same object if nothing changed. */
export function fold(state: AcpState, direction: Direction, message: Message): Folded {
  const is_own = direction === 'to_agent' || message.kind === 'response';
  const source = is_own ? null : findSource(state, message.params);
  const step = direction === 'to_agent' ? foldOutgoing(state, message) : foldIncoming(state, message, source);
  return { replay: false, source, events: [], ...step, state: discardOldObservations(state, step.state) };
}

/** Discards the observations if the mode changed, because they are not valid for another mode. */
function discardOldObservations(before: AcpState, after: AcpState): AcpState {
  if (before.modes === after.modes && before.config_options === after.config_options) return after;
  const state = withConsistentMode(before, after);
  return currentMode(before) === currentMode(state) ? state : { ...state, acting: noObservations };
}

type Step = Partial<Folded> & { state: AcpState };

// --- from the service -------------------------------------------------------------------------------------------------

function foldOutgoing(state: AcpState, message: Message): Step {
  switch (message.kind) {
    case 'request':
      return { state: sendRequest(state, message.id, message.method, message.params) };
    case 'response':
      return { state: sendResponse(state, message) };
    case 'notification':
      return { state };
  }
}

function sendResponse(before: AcpState, { id, result, error }: Message & { kind: 'response' }): AcpState {
  // The refused request is not in the list, but an earlier one may have the same id.
  if (error?.code === rpcErrors.tooManyRequests.code) return before;
  const at = before.received.findIndex((item) => item.id === id);
  if (at < 0) return before;
  const state = { ...before, received: before.received.toSpliced(at, 1) };
  const chosen = readOutcome(result).option_id;
  const always = chosen !== null && before.received[at]!.always?.includes(chosen);
  return always ? { ...state, acting: { ...state.acting, allowed_always: true } } : state;
}

function sendRequest(before: AcpState, request_id: RequestId, method: string, params: unknown): AcpState {
  const id = String(request_id);
  const sent_request: SentRequest = { id, method, value: null };
  const state = {
    ...before,
    asked_count: before.asked_count + 1,
    asked: [...before.asked, sent_request],
  };
  switch (method) {
    case AGENT_METHODS.initialize:
      sent_request.value = asNumber(asRecord(params).protocolVersion)?.toString() ?? null;
      return { ...state, phase: 'initializing' };
    case AGENT_METHODS.authenticate:
      return { ...state, phase: 'authenticating' };
    case AGENT_METHODS.session_new:
      return { ...state, phase: 'opening', acp_session_id: null, subagents: [] };
    case AGENT_METHODS.session_load:
    case AGENT_METHODS.session_resume:
      return { ...state, phase: 'opening', acp_session_id: readText(params, 'sessionId'), subagents: [] };
    case AGENT_METHODS.session_prompt:
      return { ...state, turn: { prompt_id: id }, now: null };
    case AGENT_METHODS.session_set_mode:
      sent_request.value = readText(params, 'modeId');
      return state;
    default:
      return state;
  }
}

// --- from the agent ---------------------------------------------------------------------------------------------------

function foldIncoming(state: AcpState, message: Message, source: Source): Step {
  switch (message.kind) {
    case 'request':
      return receiveRequest(state, message, source);
    case 'response':
      return receiveResponse(state, message);
    case 'notification':
      if (message.method === CLIENT_METHODS.session_update) return update(state, message.params, source);
      if (message.method === PROTOCOL_METHODS.cancel_request) return withdraw(state, message.params);
      return { state, events: elicitationCompletion(message.method, message.params) };
  }
}

function receiveRequest(before: AcpState, message: Message & { kind: 'request' }, source: Source): Step {
  const request: ReceivedRequest = { number: before.received_count + 1, id: message.id };
  const counted = { ...before, received_count: request.number };
  const received = [...before.received, request];
  // Not kept until it is refused, because a refusal cannot be sent if stdin was lost.
  if (received.length > limits.acp_open_requests_max || !fits(received)) {
    return { state: counted, events: [{ kind: 'refused', request, error: rpcErrors.tooManyRequests }] };
  }
  const state = { ...counted, received };
  if (message.method === CLIENT_METHODS.session_request_permission) {
    const permission = readPermission(message.params);
    if (permission === null) return { state, events: [{ kind: 'permission_unreadable', request }] };
    const always = permission.options.flatMap((option) =>
      option.kind === 'allow_always' ? option.option_id : [],
    );
    // Without the ids, an answer counts as one that allows the action once.
    if (always.length > 0 && fits([...before.received, { ...request, always }])) request.always = always;
    const acting = recordRequest(state.acting, scopedCall(source, permission.tool_call));
    const subagents = updateSubagents(state, source, permission.tool_call);
    const requester = findRequester({ ...state, subagents }, source);
    const events: AcpEvent[] = [{ kind: 'permission_requested', request, permission, requester }];
    const { title } = readToolCall(permission.tool_call);
    return { state: withNow({ ...state, acting, subagents }, title), events };
  }
  const elicitation = elicitationRequest(message.method, request, message.params);
  if (elicitation?.kind === 'input_requested') {
    return { state: withNow(state, elicitation.elicitation.message), events: [elicitation] };
  }
  if (elicitation !== null) return { state, events: [elicitation] };
  return { state, events: [{ kind: 'refused', request, error: rpcErrors.methodNotFound }] };
}

function withdraw(state: AcpState, params: unknown): Step {
  const id = asRecord(params).requestId;
  if (!isId(id)) return { state };
  const requests = state.received.filter((item) => item.id === id);
  return { state, events: [{ kind: 'withdrawn', id, requests }] };
}

function receiveResponse(before: AcpState, message: Message & { kind: 'response' }): Step {
  const { id, result } = message;
  const error = message.error ?? null;
  const sent_request = before.asked.find((item) => item.id === id);
  if (!sent_request) return { state: before };
  const later = before.asked.slice(before.asked.indexOf(sent_request) + 1);
  const state: AcpState = { ...before, asked: before.asked.filter((item) => item !== sent_request) };
  const { state: step, events } = afterResponse(state, { sent_request, later }, result, error);
  return { state: step, events: [...events, { kind: 'answered', asked: sent_request, error }] };
}

/** A request that was answered, and the ones without an answer that were sent after it. */
interface Answered {
  sent_request: SentRequest;
  later: readonly SentRequest[];
}

interface AfterResponse {
  state: AcpState;
  events: AcpEvent[];
}

function afterResponse(
  state: AcpState,
  { sent_request, later }: Answered,
  result: unknown,
  error: RpcError | null,
): AfterResponse {
  const { method } = sent_request;
  switch (method) {
    case AGENT_METHODS.initialize:
      return error
        ? fail(state, 'acp_initialize_failed', error.message)
        : initialized(state, sent_request, result);
    case AGENT_METHODS.authenticate:
      return error ? signInRefused(state, later) : signedIn(state);
    case AGENT_METHODS.session_new:
    case AGENT_METHODS.session_load:
    case AGENT_METHODS.session_resume:
      return error ? openFailed(state, method, error) : opened(state, method, result);
    case AGENT_METHODS.session_prompt:
      return turnEnded(state, sent_request.id, result, error);
    case AGENT_METHODS.session_set_mode:
      if (error || state.modes === null || sent_request.value === null) break;
      return {
        state: { ...state, modes: { ...state.modes, currentModeId: sent_request.value } },
        events: [],
      };
    case AGENT_METHODS.session_set_config_option:
      return { state: { ...state, ...configured(readSettings(result)) }, events: [] };
  }
  return { state, events: [] };
}

/** A later attempt that has not been answered still counts. An earlier one may never be answered. */
function signInRefused(state: AcpState, later: readonly SentRequest[]): AfterResponse {
  const continues = later.some(({ method }) => method === AGENT_METHODS.authenticate);
  if (state.phase !== 'authenticating' || continues) return { state, events: [] };
  return { state: { ...state, phase: 'auth_required' }, events: [] };
}

/** Another attempt may have succeeded before. */
function signedIn(state: AcpState): AfterResponse {
  if (state.phase !== 'authenticating' && state.phase !== 'auth_required') return { state, events: [] };
  return {
    state: { ...state, phase: state.acp_session_id === null ? 'opening' : 'ready' },
    events: [{ kind: 'authenticated' }],
  };
}

function initialized(state: AcpState, { value }: SentRequest, result: unknown): AfterResponse {
  const version = isRecord(result) ? result.protocolVersion : undefined;
  if (!isRecord(result) || version !== PROTOCOL_VERSION) {
    const chosen = typeof version === 'number' ? `ACP version ${version}` : 'no version of ACP';
    const newer = Number(value) > PROTOCOL_VERSION;
    const supported = newer ? `versions ${PROTOCOL_VERSION} and ${value}` : `version ${PROTOCOL_VERSION}`;
    return fail(state, 'acp_version_unsupported', `the agent speaks ${chosen}, this service ${supported}`);
  }
  const { agentInfo, agentCapabilities, authMethods } = result;
  const step = {
    ...state,
    protocol_version: PROTOCOL_VERSION,
    agent: shortInfo(readAgentInfo(agentInfo)),
    capabilities: readCapabilities(agentCapabilities),
    auth_methods: firstFitting(asRecords(authMethods).flatMap(authMethod)),
  };
  return { state: step, events: [{ kind: 'initialized' }] };
}

function opened(state: AcpState, method: string, result: unknown): AfterResponse {
  const acp_session_id =
    method === AGENT_METHODS.session_new ? readText(result, 'sessionId') : state.acp_session_id;
  if (acp_session_id === null)
    return fail(state, 'acp_session_failed', 'the agent opened a session without an id');
  const step: AcpState = { ...state, phase: 'ready', acp_session_id, ...configured(readSettings(result)) };
  return { state: step, events: [{ kind: 'opened', method }] };
}

function openFailed(state: AcpState, method: string, error: RpcError): AfterResponse {
  if (error.code === AUTH_REQUIRED) {
    const step: AcpState = { ...state, phase: 'auth_required', acp_session_id: null };
    return { state: step, events: [{ kind: 'auth_required' }] };
  }
  const events: AcpEvent[] = [{ kind: 'open_failed', method, error }];
  if (method !== AGENT_METHODS.session_new) return { state: { ...state, acp_session_id: null }, events };
  const failed = fail(state, 'acp_session_failed', error.message);
  return { state: failed.state, events: [...events, ...failed.events] };
}

function turnEnded(
  state: AcpState,
  prompt_id: string,
  result: unknown,
  error: RpcError | null,
): AfterResponse {
  const stop_reason = readText(result, 'stopReason');
  const ended: AcpState = state.turn?.prompt_id === prompt_id ? { ...state, turn: null } : state;
  const events: AcpEvent[] = [{ kind: 'turn_ended', prompt_id, stop_reason, error }];
  if (error?.code !== AUTH_REQUIRED) return { state: ended, events };
  return { state: { ...ended, phase: 'auth_required' }, events: [{ kind: 'auth_required' }, ...events] };
}

function fail(state: AcpState, code: string, message: string): AfterResponse {
  return { state: { ...state, phase: 'failed' }, events: [{ kind: 'failed', code, message }] };
}

// --- updates ----------------------------------------------------------------------------------------------------------

function update(before: AcpState, params: unknown, source: Source): Step {
  const replay = before.asked.some(({ method }) => method === AGENT_METHODS.session_load);
  const changes = asRecord(asRecord(params).update);
  const subagents = updateSubagents(before, source, changes);
  const state = subagents === before.subagents ? before : { ...before, subagents };
  return { state: replay ? replayed(state, changes, source) : updated(state, changes, source), replay };
}

/** Ignores replayed actions, because they took place in another session and possibly in another mode. */
function replayed(state: AcpState, changes: Fields, source: Source): AcpState {
  const { acting, now } = state;
  const after = updated(state, changes, source);
  return after.acting === acting && after.now === now ? after : { ...after, acting, now };
}

function updated(state: AcpState, changes: Fields, source: Source): AcpState {
  const update = readUpdate(changes);
  if (update.kind === 'tool_call' && update.operation !== 'appends') {
    // Actions of a sub-agent count as the agent's own.
    const acting = recordCall(state.acting, scopedCall(source, changes));
    return withNow(acting === state.acting ? state : { ...state, acting }, update.call.title);
  }
  // A sub-agent has its own plan, mode and options.
  return source === null ? reported(state, update) : state;
}

/** Null: the report does not say what the agent does. */
function withNow(state: AcpState, text: string | null): AcpState {
  const now = truncate(text ?? '');
  return now === '' || now === state.now ? state : { ...state, now };
}

function reported(state: AcpState, update: Update): AcpState {
  switch (update.kind) {
    case 'plan':
      return { ...state, plan: firstFitting(update.entries) as unknown as PlanEntry[] };
    case 'commands':
      return { ...state, commands: firstFitting(update.commands) as unknown as AvailableCommand[] };
    case 'mode': {
      if (update.mode_id === null) return state;
      const currentModeId = truncate(update.mode_id);
      return { ...state, modes: { availableModes: [], ...state.modes, currentModeId } };
    }
    case 'settings':
      return { ...state, ...configured(update.settings) };
    case 'title':
      return update.title === undefined ? state : { ...state, title: update.title && truncate(update.title) };
    case 'usage': {
      const { used, size, cost } = update;
      if (used === null || size === null) return state;
      const shown = cost && { ...cost, currency: truncate(cost.currency) };
      return { ...state, usage: { used, size, ...(shown && { cost: shown }) } };
    }
    default:
      return state;
  }
}

function configured({ modes, config_options }: ReportedSettings): Partial<AcpState> {
  return {
    ...(modes && {
      modes: {
        currentModeId: truncate(modes.current_id),
        availableModes: firstFitting(modes.available),
      } as unknown as SessionModeState,
    }),
    ...(config_options && {
      config_options: firstFitting(config_options) as unknown as SessionConfigOption[],
    }),
  };
}

// --- values -----------------------------------------------------------------------------------------------------------

function readCapabilities(value: unknown): Capabilities {
  const { loadSession, promptCapabilities, sessionCapabilities } = asRecord(value);
  const prompt = asRecord(promptCapabilities);
  return {
    load: loadSession === true,
    resume: isRecord(asRecord(sessionCapabilities).resume),
    image: prompt.image === true,
    audio: prompt.audio === true,
    embedded_context: prompt.embeddedContext === true,
  };
}

function shortInfo(info: AgentInfo | null): AcpState['agent'] {
  if (info === null) return null;
  const { name, title, version } = info;
  return { name: truncate(name), title: title && truncate(title), version: version && truncate(version) };
}

function authMethod(value: Fields): AuthMethod[] {
  const [id, name] = [readText(value, 'id'), readText(value, 'name')];
  if (id === null || name === null) return [];
  return [
    { id, name, description: readText(value, 'description'), type: readText(value, 'type') ?? 'agent' },
  ];
}
