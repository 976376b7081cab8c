/**
 * Reads an `acp_event` of an agent's log into a typed value, for both the CLI and the web UI. Never throws, whatever the
 * form of the message. A message that is too large for an event has no payload, only its method and id.
 */
import type { EventRecord } from '../core/event.ts';
import { asNumber, asRecord, asString, type Fields, isRecord } from './json.ts';
import type { AgentMethod, ClientMethod } from './methods.ts';
import { type OfferedOption, readOption, readToolCall, type ToolCall } from './tool-calls.ts';
import { readUpdate, type Update } from './updates.ts';
import { findCall, toV1Permission, toV1Update } from './v2/reading.ts';

/** A message from the service to the agent. */
export type SentEntry =
  | { kind: 'prompt'; blocks: readonly unknown[] }
  | { kind: 'cancel' }
  | { kind: 'set_mode'; mode_id: string | null }
  | { kind: 'set_option'; option_id: string | null; value: unknown }
  | { kind: 'sign_in'; method_id: string | null }
  /** The answer to a request of the agent; one of the two ids is set if people could answer. */
  | {
      kind: 'answer';
      review_id: string | null;
      elicitation_id: string | null;
      /** Null if the service itself answered. */
      answered_by: string | null;
      result: Fields;
    }
  | { kind: 'other' };

/** A message from the agent to the service. */
export type ReceivedEntry =
  /** `raw`: the update in the form of ACP v1. */
  | { kind: 'update'; update: Update; raw: Fields }
  | {
      kind: 'permission_request';
      /** Null if the request created no review. */
      review_id: string | null;
      call: ToolCall;
      /** A report of the same call, which was sent with the request. */
      reported_call: ToolCall | null;
      options: readonly OfferedOption[];
    }
  /** A form or URL, for `readElicitation`. `elicitation_id` is null if the request was rejected. */
  | { kind: 'elicitation'; elicitation_id: string | null }
  | { kind: 'elicitation_complete' }
  /** The agent withdraws one of its requests. */
  | { kind: 'withdrawal'; request_id: unknown }
  | {
      kind: 'response';
      result: unknown;
      stop_reason: string | null;
      /** The message of the error, which may be empty; null if there was no error. */
      failure: string | null;
    }
  | { kind: 'other' };

/** `id`: the id of the request; undefined for a notification. */
interface Envelope {
  id: unknown;
  /** Null for a response. */
  method: string | null;
  params: unknown;
}

/** Reads an event with the direction `to_agent`. */
export function readSent(event: EventRecord): Envelope & SentEntry {
  const envelope = readEnvelope(event);
  const { method, params } = envelope;
  return { ...envelope, ...(method === null ? readAnswer(event) : readSentParams(method, asRecord(params))) };
}

function readSentParams(method: string, params: Fields): SentEntry {
  const { prompt, modeId, configId, value, methodId } = params;
  switch (method as AgentMethod) {
    case 'session/prompt':
      return { kind: 'prompt', blocks: Array.isArray(prompt) ? prompt : [] };
    case 'session/cancel':
      return { kind: 'cancel' };
    case 'session/set_mode':
      return { kind: 'set_mode', mode_id: asString(modeId) };
    case 'session/set_config_option':
      return { kind: 'set_option', option_id: asString(configId), value };
    case 'authenticate':
    case 'auth/login':
      return { kind: 'sign_in', method_id: asString(methodId) };
    default:
      return { kind: 'other' };
  }
}

/** Reads an event with the direction `from_agent`. */
export function readReceived(event: EventRecord): Envelope & ReceivedEntry {
  const envelope = readEnvelope(event);
  const { id = event.response_to, method, params } = envelope;
  const entry = method === null ? readResponse(event) : readReceivedParams(event, method, asRecord(params));
  return { ...envelope, id, ...entry };
}

function readReceivedParams(event: EventRecord, method: string, params: Fields): ReceivedEntry {
  switch (method as ClientMethod) {
    case 'session/update': {
      const raw = toV1Update(asRecord(params.update));
      return { kind: 'update', update: readUpdate(raw), raw };
    }
    case 'session/request_permission':
      return readPermissionRequest(event, params);
    case 'elicitation/create':
      return { kind: 'elicitation', elicitation_id: asString(event.elicitation_id) };
    case 'elicitation/complete':
      return { kind: 'elicitation_complete' };
    case '$/cancel_request':
      return { kind: 'withdrawal', request_id: params.requestId };
    default:
      return { kind: 'other' };
  }
}

function readEnvelope({ payload, method: of_event, request_id }: EventRecord): Envelope {
  const { id = request_id, method, params } = asRecord(payload);
  return { id, method: asString(method) ?? asString(of_event), params };
}

function readResponse({ payload }: EventRecord): ReceivedEntry {
  const { result, error } = asRecord(payload);
  const stop_reason = asString(asRecord(result).stopReason);
  return { kind: 'response', result, stop_reason, failure: readFailure(error) };
}

function readAnswer({ payload, review_id, elicitation_id, answered_by }: EventRecord): SentEntry {
  return {
    kind: 'answer',
    review_id: asString(review_id),
    elicitation_id: asString(elicitation_id),
    answered_by: asString(answered_by),
    result: asRecord(asRecord(payload).result),
  };
}

function readPermissionRequest({ review_id }: EventRecord, params: Fields): ReceivedEntry {
  const { toolCall, options } = toV1Permission(params);
  const called = findCall(params);
  return {
    kind: 'permission_request',
    review_id: asString(review_id),
    call: readToolCall(toolCall),
    reported_call: called && readToolCall(called),
    options: Array.isArray(options) ? options.flatMap((option) => readOption(option) ?? []) : [],
  };
}

/** The content of a request for a form or URL, from its params. */
export function readElicitation(params: unknown) {
  const { message, url, requestedSchema } = asRecord(params);
  return {
    message: asString(message) ?? '',
    url: asString(url),
    field_names: Object.keys(asRecord(asRecord(requestedSchema).properties)),
  };
}

function readFailure(error: unknown): string | null {
  return isRecord(error) ? (asString(error.message) ?? '') : null;
}

/** The sub-agent that sent a message. */
export interface Author {
  /** The id of the sub-agent. */
  id: string;
  /** The sub-agent sent the message in a session that the agent did not announce. */
  unknown_session: boolean;
  /** The session that scopes the ids of its tool calls; '' for the agent's own, which sub-agents without a session share. */
  scope: string;
}

/** Null for the agent itself. */
export function readAuthor({ payload, subagent, unknown_session }: EventRecord): Author | null {
  const id = asString(subagent);
  if (id === null) return null;
  const { sessionId } = asRecord(asRecord(payload).params);
  const is_unknown = unknown_session === true;
  // The id of an unknown session may be shortened.
  return { id, unknown_session: is_unknown, scope: is_unknown || sessionId === id ? id : '' };
}

/** The end of a turn that the service marked on a frame of ACP v2; null for other frames. */
export function readTurnEndMark({ turn_ended }: EventRecord) {
  if (!isRecord(turn_ended)) return null;
  return { prompt_id: asString(turn_ended.prompt_id), stop_reason: asString(turn_ended.stop_reason) };
}

/** How an event ends the turn of this prompt, or null. In ACP v2, a frame other than the response ends the turn. */
export function readTurnEnd(
  event: EventRecord,
  prompt_id: string,
): { stop_reason: string | null; failure: string | null } | null {
  if (event.type !== 'acp_event' || event.direction !== 'from_agent') return null;
  const { result, error } = asRecord(event.payload);
  const failure = readFailure(error);
  const marked = readTurnEndMark(event);
  if (marked !== null) {
    return marked.prompt_id === prompt_id ? { stop_reason: marked.stop_reason, failure } : null;
  }
  if (event.response_to !== prompt_id || event.accepted) return null;
  return { stop_reason: asString(asRecord(result).stopReason), failure };
}

/** The size in bytes of a message that is too large for an event; null for other messages. */
export function oversizedBytes({ payload, size }: EventRecord): number | null {
  return isRecord(payload) ? null : asNumber(size);
}
