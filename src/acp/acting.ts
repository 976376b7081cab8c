/**
 * Whether an agent asks before it acts, as far as its own frames show (pure). Acting is writing, running or fetching: a
 * tool call of such a kind that completes without a permission request for it. Commands that only read are left out,
 * because agents that ask run those without a request.
 */
import { limits } from '../base/limits.ts';
import { isRecord, textOf } from './message.ts';

/** A tool call that acts, or that permission was requested for, and that has not ended. */
interface OpenCall {
  id: string;
  kind: string;
  title: string;
  /** A command that changes nothing. */
  reads: boolean;
  requested: boolean;
}

export interface Acting {
  /** Permission was requested at least once. */
  requested: boolean;
  /** The title of the first call that acted without a request; null: there was none. */
  unasked: string | null;
  /** Somebody allowed a kind of action for good, so that a call without a request proves nothing. */
  allowed_always: boolean;
  calls: OpenCall[];
}

/** `unknown`: it did not act yet. */
export type Asks = 'asks' | 'acts' | 'unknown';

export const nothingObserved: Acting = { requested: false, unasked: null, allowed_always: false, calls: [] };

const ACTING_KINDS = new Set(['edit', 'delete', 'move', 'execute', 'fetch']);

export function asksOf({ requested, unasked }: Acting): Asks {
  if (unasked !== null) return 'acts';
  return requested ? 'asks' : 'unknown';
}

/** `toolCall`: of a permission request. */
export function seeRequest(acting: Acting, toolCall: unknown): Acting {
  const call = readCall(acting, toolCall);
  const calls = call ? withCall(acting.calls, { ...call, requested: true }) : acting.calls;
  return { ...acting, requested: true, calls };
}

/** `update`: a `tool_call` or `tool_call_update`. Answers the same object when it shows nothing new. */
export function seeCall(acting: Acting, update: Record<string, unknown>): Acting {
  const call = readCall(acting, update);
  if (!call) return acting;
  const { status } = update;
  if (status !== 'completed' && status !== 'failed') {
    return ACTING_KINDS.has(call.kind) ? { ...acting, calls: withCall(acting.calls, call) } : acting;
  }
  const calls = acting.calls.filter(({ id }) => id !== call.id);
  const acted = status === 'completed' && ACTING_KINDS.has(call.kind) && !call.requested && !call.reads;
  if (acted && !acting.allowed_always) return { ...acting, calls, unasked: acting.unasked ?? call.title };
  return calls.length === acting.calls.length ? acting : { ...acting, calls };
}

/** What is known of the call so far, with what `value` adds; null for one without an id. */
function readCall({ calls }: Acting, value: unknown): OpenCall | null {
  const id = textOf(value, 'toolCallId');
  if (id === null || !isRecord(value)) return null;
  const known = calls.find((call) => call.id === id);
  const command = textOf(value.rawInput, 'command');
  return {
    id,
    kind: textOf(value, 'kind') ?? known?.kind ?? 'other',
    title: (textOf(value, 'title') ?? known?.title ?? '').slice(0, limits.acting_title_chars_max),
    reads: command === null ? (known?.reads ?? false) : isReading(command),
    requested: known?.requested ?? false,
  };
}

/** The newest ones that fit. */
function withCall(calls: OpenCall[], call: OpenCall): OpenCall[] {
  return [...calls.filter(({ id }) => id !== call.id), call].slice(-limits.acting_calls_max);
}

const READERS = new Set(
  'basename cat cd cut diff dirname du echo false grep head id ls nl printf pwd realpath rg stat tail test tr true uname wc which whoami'.split(
    ' ',
  ),
);
const GIT_READERS = new Set(['blame', 'diff', 'log', 'ls-files', 'rev-parse', 'show', 'status']);

/** Whether a shell command only reads. Whatever cannot be told is not. */
export function isReading(command: string): boolean {
  // Redirections, substitutions and background jobs may hide anything; what only silences a command may not.
  const bare = command
    .replace(/^\S*sh -l?c (["']?)(.*)\1$/s, '$2')
    .replaceAll(/\d?>&\d|\d?>\s*\/dev\/null/g, '')
    .replaceAll('&&', ';');
  if (/[<>`&]|\$\(|--(output|pre)\b/.test(bare)) return false;
  const parts = bare.split(/[;|\n]+/).filter((part) => part.trim() !== '');
  return parts.length > 0 && parts.every(readsAlone);
}

function readsAlone(part: string): boolean {
  const [program = '', sub = ''] = part.trim().split(/\s+/);
  return program === 'git' ? GIT_READERS.has(sub) : READERS.has(program);
}
