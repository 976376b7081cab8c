/**
 * Determines from an agent's frames whether it asks before it acts (pure). Acting means writing, running or fetching: a tool
 * call of such a kind that completes without a permission request for it. Read-only commands do not count, because agents
 * that ask run those without a request. Nor does `svc actor`, whose commands svc itself authorizes.
 */
import { lastFitting } from './fitting.ts';
import { limits } from './limits.ts';
import { readText, truncate } from './message.ts';
import { readToolCall } from './tool-calls.ts';

/** An unfinished tool call that acts, or for which permission was requested. */
interface OpenCall {
  id: string;
  kind: string;
  title: string;
  /** The command is read-only, or a `svc actor` command. */
  reads: boolean;
  requested: boolean;
}

export interface Acting {
  /** At least one permission request was made. */
  requested: boolean;
  /** The title of the first call that acted without a request, or null. */
  unasked: string | null;
  /** A kind of action was allowed permanently, so a call without a request proves nothing. */
  allowed_always: boolean;
  calls: OpenCall[];
}

/** `unknown`: the agent has not acted yet. */
export type ObservedBehavior = 'asks' | 'acts' | 'unknown';

export const noObservations: Acting = { requested: false, unasked: null, allowed_always: false, calls: [] };

const ACTING_KINDS = new Set(['edit', 'delete', 'move', 'execute', 'fetch']);

/** Whether the observed calls show that the agent asks, acts without asking, or neither. */
export function observedBehavior({ requested, unasked }: Acting): ObservedBehavior {
  if (unasked !== null) return 'acts';
  return requested ? 'asks' : 'unknown';
}

/** Records a permission request. `toolCall`: the call for which it asks. */
export function recordRequest(acting: Acting, toolCall: unknown): Acting {
  const call = readCall(acting, toolCall);
  const calls = call ? withCall(acting.calls, { ...call, requested: true }) : acting.calls;
  return { ...acting, requested: true, calls };
}

/** Records an update. `update`: a `tool_call` or `tool_call_update`. Returns the same object if nothing is new. */
export function recordCall(acting: Acting, update: Record<string, unknown>): Acting {
  const call = readCall(acting, update);
  if (!call) return acting;
  const { status } = update;
  if (status !== 'completed' && status !== 'failed') {
    return ACTING_KINDS.has(call.kind) ? { ...acting, calls: withCall(acting.calls, call) } : acting;
  }
  const calls = acting.calls.filter(({ id }) => id !== call.id);
  const hasActed = status === 'completed' && ACTING_KINDS.has(call.kind) && !call.requested && !call.reads;
  if (hasActed && !acting.allowed_always) return { ...acting, calls, unasked: acting.unasked ?? call.title };
  return calls.length === acting.calls.length ? acting : { ...acting, calls };
}

/** The known state of the call, merged with `value`; null for a call without an id. */
function readCall({ calls }: Acting, value: unknown): OpenCall | null {
  const report = readToolCall(value);
  if (report.id === null) return null;
  const id = truncate(report.id);
  const known = calls.find((call) => call.id === id);
  const command = readText(report.raw_input, 'command');
  return {
    id,
    kind: truncate(report.tool_kind ?? known?.kind ?? 'other'),
    title: (report.title ?? known?.title ?? '').slice(0, limits.acting_title_chars_max),
    reads: command === null ? (known?.reads ?? false) : isReadOnlyCommand(command),
    requested: known?.requested ?? false,
  };
}

/** Adds or replaces a call; drops the oldest ones beyond the bounds. */
function withCall(calls: OpenCall[], call: OpenCall): OpenCall[] {
  return lastFitting([...calls.filter(({ id }) => id !== call.id), call].slice(-limits.acting_calls_max));
}

const READERS = new Set(
  'basename cat cd cut diff dirname du echo false grep head id ls nl printf pwd realpath rg stat tail test tr true uname wc which whoami'.split(
    ' ',
  ),
);
/** One `svc actor` command: words without special characters, or in single quotes. */
const ACTOR_COMMAND = /^svc actor (?: |[\w%+,./:=@-]|'[^']*'|\\')*$/;
const GIT_READERS = new Set(['blame', 'diff', 'log', 'ls-files', 'rev-parse', 'show', 'status']);

/** Whether a shell command is known to be read-only, or is a `svc actor` command. */
export function isReadOnlyCommand(command: string): boolean {
  if (ACTOR_COMMAND.test(command)) return true;
  // Redirections, substitutions and background jobs can hide anything, except those that only silence output.
  const stripped = command
    .replace(/^\S*sh -l?c (["']?)(.*)\1$/s, '$2')
    // A longer word is the name of a file.
    .replaceAll(/\d?>(&\d|[ \t]*\/dev\/null)(?=[ \t\n;|&]|$)/g, '')
    .replaceAll('&&', ';');
  if (/[<>`&]|\$\(|--(output|pre)\b/.test(stripped)) return false;
  const parts = stripped.split(/[;|\n]+/).filter((part) => part.trim() !== '');
  return parts.length > 0 && parts.every(isReadOnlyPart);
}

function isReadOnlyPart(part: string): boolean {
  const [program = '', sub = ''] = part.trim().split(/\s+/);
  return program === 'git' ? GIT_READERS.has(sub) : READERS.has(program);
}
