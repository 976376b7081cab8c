/**
 * What remains to be done of the last request to start, stop or restart an agent, as a state of the agent's row:
 *
 *     nothing    ──▶ restarting   the stop of a restart is stored
 *     nothing    ──▶ stalled      the node does not answer an intent of the session
 *     any        ──▶ kept         the node does not answer a request
 *     restarting ──▶ kept         a plane starts, and the last one ended during the restart
 *     any        ──▶ nothing      the request is carried out, replaced, withdrawn or given up; or a session starts or ends,
 *                                 and nothing remains to be done
 */
import type { Principal } from './core.ts';
import type { AgentRow, SessionRow } from './queries/agents.ts';
import type { PendingKind } from './rules.ts';

/** `request`: a `StoredRequest` as JSON. Its text identifies the request. Clients see `kind`. */
export type PendingState =
  | { is: 'nothing' }
  /** A restart waits for its stop, in this process, and starts the agent afterwards. Clients do not see it. */
  | { is: 'restarting'; request: string }
  /** The session's intent is retried until the node answers. The node may already have received it. */
  | { is: 'stalled'; kind: 'start' | 'stop' }
  /** The intent `pursue` carries out the request once the node answers. The node has received nothing yet. */
  | { is: 'kept'; kind: PendingKind; request: string };

type Columns = Pick<AgentRow, 'pending' | 'pending_request'>;

export const nothingPending = { pending: null, pending_request: null } as const;

export function toColumns(state: PendingState): Columns {
  return {
    pending: 'kind' in state ? state.kind : null,
    pending_request: 'request' in state ? state.request : null,
  };
}

export function pendingState({ pending: kind, pending_request: request }: Columns): PendingState {
  if (kind === null) return request === null ? { is: 'nothing' } : { is: 'restarting', request };
  if (request !== null) return { is: 'kept', kind, request };
  return { is: 'stalled', kind: kind as 'start' | 'stop' };
}

export function hasState(row: Columns, state: PendingState): boolean {
  const { pending, pending_request } = toColumns(state);
  return row.pending === pending && row.pending_request === pending_request;
}

/** The columns that change when a session starts. A stop remains to be done, and a restart that stops this session. */
export function pendingAfterStart({ pending }: Columns, { stopping }: SessionRow): Partial<Columns> {
  return pending === 'stop' || stopping === 1 ? {} : nothingPending;
}

/**
 * The columns that change when a session ends. A start or restart remains to be done, unless it was the start of this session,
 * which never ran.
 */
export function pendingAfterEnd(agent: Columns, session: SessionRow): Partial<Columns> {
  const state = pendingState(agent);
  const starts = state.is === 'restarting' || (state.is === 'kept' && state.kind !== 'stop');
  const never_ran = session.state === 'starting' && session.stopping === 0;
  return starts && !never_ran ? {} : nothingPending;
}

export interface StoredRequest {
  kind: PendingKind;
  /** Who made the request. */
  principal: Principal;
  /** 0 for a start. */
  grace_ms: number;
  /** Derived from an idempotency key. */
  session_id?: string | undefined;
}

/** Earlier versions stored the principal as `doer`. */
export function parseRequest(text: string): StoredRequest {
  const stored = JSON.parse(text);
  return { principal: stored.doer, ...stored };
}
