/**
 * Computes what a frame changes, in the version of ACP that its session uses (pure). A v2 frame is folded as the
 * equivalent v1 frames. v1 has no equivalent for the end of a turn, which `work.ts` determines.
 */
import { AGENT_METHODS, CLIENT_METHODS, PROTOCOL_VERSION } from '@agentclientprotocol/sdk';
import { type Direction, type Folded, fold } from '../fold.ts';
import { asRecord, asRecords, type Fields, isRecord } from '../json.ts';
import { type Message, readError, readText, rpcErrors } from '../message.ts';
import type { AcpState } from '../state.ts';
import { toV1Permission, toV1Update, type UpdateKind, withV1Options } from './reading.ts';
import { PREVIEW_VERSION } from './version.ts';
import { fromV2 } from './wire.ts';
import { type End, markBusy, markIdle, type Work, withPrompt } from './work.ts';

type Response = Message & { kind: 'response' };

export interface FoldedFrame extends Folded {
  /** The agent accepted a prompt, and its turn continues. */
  accepted: boolean;
}

/**
 * Folds a frame of the agent, like `foldFrame`, but never throws, because the session could not get past that frame. If it
 * cannot be folded, the state stays as it is, and the only event says so. But a response counts as an error, so that the
 * service does not wait for it any more.
 */
export function foldReceived(state: AcpState, message: Message): FoldedFrame {
  try {
    return foldFrame(state, 'from_agent', message);
  } catch (error) {
    const unreadable = { kind: 'unreadable' as const, message, error };
    const unchanged = { state, replay: false, source: null, accepted: false };
    if (message.kind !== 'response' || message.error) return { ...unchanged, events: [unreadable] };
    const failed = foldReceived(state, { kind: 'response', id: message.id, error: rpcErrors.unreadable });
    return { ...failed, events: [unreadable, ...failed.events] };
  }
}

/** Folds a frame from the log. */
export function foldFrame(state: AcpState, direction: Direction, message: Message): FoldedFrame {
  return { accepted: false, ...foldEither(state, direction, message) };
}

function foldEither(
  state: AcpState,
  direction: Direction,
  message: Message,
): Folded & { accepted?: boolean } {
  if (state.protocol_version === PREVIEW_VERSION) {
    return direction === 'to_agent' ? foldOutgoing(state, message) : foldIncoming(state, message);
  }
  const result = direction === 'from_agent' ? chosenV2Result(state, message) : null;
  return result
    ? foldInitializeResponse(state, message as Response, result)
    : fold(state, direction, message);
}

// --- initialize -------------------------------------------------------------------------------------------------------

/** The result of an agent that was offered v2 and chose it; null for every other message. */
function chosenV2Result({ asked: request }: AcpState, message: Message): Fields | null {
  if (message.kind !== 'response' || !isRecord(message.result)) return null;
  const { method, value } = request.find(({ id }) => id === message.id) ?? {};
  const is_offered = method === AGENT_METHODS.initialize && value === String(PREVIEW_VERSION);
  return is_offered && message.result.protocolVersion === PREVIEW_VERSION ? message.result : null;
}

function foldInitializeResponse(before: AcpState, message: Response, result: Fields): Folded {
  const { session } = asRecord(result.capabilities);
  const folded = fold(before, 'from_agent', { ...message, result: toV1InitializeResult(result, session) });
  const { mcp } = asRecord(session);
  const mcp_stdio = isRecord(asRecord(mcp).stdio);
  const state: AcpState = { ...folded.state, protocol_version: PREVIEW_VERSION, mcp_stdio };
  if (isRecord(session)) return { ...folded, state };
  const failed = {
    kind: 'failed' as const,
    code: 'acp_sessions_unsupported',
    message: `the agent speaks ACP version ${PREVIEW_VERSION} but does not support sessions`,
  };
  const others = folded.events.filter(({ kind }) => kind !== 'initialized');
  return { ...folded, state: { ...state, phase: 'failed' }, events: [failed, ...others] };
}

function toV1InitializeResult({ info, authMethods }: Fields, session: unknown): Fields {
  const prompt = asRecord(asRecord(session).prompt);
  return {
    protocolVersion: PROTOCOL_VERSION,
    agentInfo: info,
    agentCapabilities: {
      // In v2, every agent that has sessions can resume them.
      sessionCapabilities: { resume: {} },
      promptCapabilities: {
        image: isRecord(prompt.image),
        audio: isRecord(prompt.audio),
        embeddedContext: isRecord(prompt.embeddedContext),
      },
    },
    authMethods: asRecords(authMethods).map(({ methodId, ...method }) => ({ ...method, id: methodId })),
  };
}

// --- from the service -------------------------------------------------------------------------------------------------

function foldOutgoing(before: AcpState, message: Message): Folded {
  const folded = fold(before, 'to_agent', fromV2(message));
  if (message.kind === 'request' && message.method === AGENT_METHODS.session_prompt) {
    return withWork(folded, withPrompt(before.work));
  }
  const cancels = message.kind === 'notification' && message.method === AGENT_METHODS.session_cancel;
  return cancels ? withWork(folded, { ...before.work, cancelled: true }) : folded;
}

// --- from the agent ---------------------------------------------------------------------------------------------------

function foldIncoming(state: AcpState, message: Message): Folded & { accepted?: boolean } {
  const { kind } = message;
  if (kind === 'response') return receiveResponse(state, message);
  const params = asRecord(message.params);
  if (kind === 'request') {
    const asks = message.method === CLIENT_METHODS.session_request_permission && isRecord(message.params);
    return fold(state, 'from_agent', asks ? { ...message, params: toV1Permission(params) } : message);
  }
  if (message.method !== CLIENT_METHODS.session_update || !isRecord(params.update)) {
    return fold(state, 'from_agent', message);
  }
  const { update } = params;
  // The agent may also report on the sessions of its sub-agents.
  const is_own = state.acp_session_id === null || params.sessionId === state.acp_session_id;
  switch (is_own ? (update.sessionUpdate as UpdateKind) : null) {
    case 'state_update':
      return afterStateUpdate(state, update);
    case 'user_message':
    case 'user_message_chunk':
      if (state.turn === null || state.work.echoed) break;
      return fold({ ...state, work: { ...state.work, echoed: true } }, 'from_agent', message);
  }
  return fold(state, 'from_agent', {
    ...message,
    params: { ...params, update: cancelledAsFailed(toV1Update(update)) },
  });
}

/** v1 has no cancelled calls. Like a failed call, a cancelled one did not act. */
function cancelledAsFailed(update: Fields): Fields {
  return update.status === 'cancelled' ? { ...update, status: 'failed' } : update;
}

function receiveResponse(state: AcpState, message: Response): Folded & { accepted?: boolean } {
  const request = state.asked.find(({ id }) => id === message.id);
  switch (request?.method) {
    case AGENT_METHODS.session_prompt:
      return foldPromptResponse(state, message);
    case AGENT_METHODS.session_new:
    case AGENT_METHODS.session_resume:
    case AGENT_METHODS.session_set_config_option:
      return foldSessionResponse(state, message);
    default:
      return fold(state, 'from_agent', message);
  }
}

function foldPromptResponse(state: AcpState, message: Response): Folded & { accepted?: boolean } {
  const { work } = state;
  if (message.error) {
    const was_cancelled = work.cancelled && message.error.code === rpcErrors.requestCancelled.code;
    return was_cancelled
      ? endTurn(state, message.id, { stop_reason: 'cancelled', error: null })
      : fold(state, 'from_agent', message);
  }
  if (work.end !== null) return endTurn(state, message.id, work.end);
  return {
    state: setWork(state, { ...work, accepted: true }),
    replay: false,
    source: null,
    events: [],
    accepted: true,
  };
}

function foldSessionResponse(state: AcpState, message: Response): Folded {
  if (!isRecord(message.result)) return fold(state, 'from_agent', message);
  const result = withV1Options(message.result);
  const folded = fold(state, 'from_agent', { ...message, result });
  if (!Array.isArray(result.availableCommands)) return folded;
  const { availableCommands } = result;
  const update = { sessionUpdate: 'available_commands_update', availableCommands };
  return { ...folded, state: fold(folded.state, 'from_agent', toUpdate(update)).state };
}

function toUpdate(update: Fields): Message {
  return { kind: 'notification', method: CLIENT_METHODS.session_update, params: { update } };
}

function afterStateUpdate(state: AcpState, update: Fields): Folded {
  const same: Folded = { state, replay: false, source: null, events: [] };
  const { turn, work } = state;
  if (update.state === 'running' || update.state === 'requires_action') {
    return withWork(same, markBusy(work, turn !== null));
  }
  if (update.state !== 'idle') return same;
  if (turn === null) {
    return work.busy ? { ...withWork(same, { ...work, busy: false }), events: [{ kind: 'idle' }] } : same;
  }
  const end = readEnd(update);
  const { work: after, ends } = markIdle(work, end);
  const now_idle = withWork(same, after);
  return ends ? endTurn(now_idle.state, turn.prompt_id, end) : now_idle;
}

function readEnd(update: Fields): End {
  const stop_reason = readText(update, 'stopReason');
  if (stop_reason !== 'error') return { stop_reason, error: null };
  return { stop_reason, error: readError(asRecord(update.error)) };
}

/** Ends a turn the way v1 does: by the response to the prompt. */
function endTurn(state: AcpState, id: Response['id'], { stop_reason, error }: End): Folded {
  const result = stop_reason === null ? {} : { stopReason: stop_reason };
  return fold(state, 'from_agent', { kind: 'response', id, result, ...(error && { error }) });
}

function withWork(folded: Folded, work: Work): Folded {
  return { ...folded, state: setWork(folded.state, work) };
}

function setWork(state: AcpState, work: Work): AcpState {
  return state.work === work ? state : { ...state, work };
}
