/**
 * Identifies the caller of an actor method: a process of an agent's session, which acts only as its own actor, or an
 * operator outside every session, who may act as anyone.
 */
import { notAllowedAs } from '../../../core/problem.ts';

export interface ActorCaller {
  /** The session's own actor, or the one that an operator's token names; null: none. */
  actor_id: string | null;
  /**
   * The live session from which the call comes, whatever its credential; null: an operator, by the shared secret or, in
   * `mtls`, by the plane's own certificate.
   */
  session: CallingSession | null;
  /** The address of the request; null if a node passed it on. */
  ip: string | null;
}

export interface CallingSession {
  id: string;
  agent_id: string;
  node_id: string;
  owner_id: string;
  /** For a team's agent: the member that it is, in this run. */
  member: { member_id: string; team_num: number; team_id: string; run_num: number | null } | null;
}

/**
 * The actor as which a call is made. Throws `not allowed to act as <actor_id>` if that is not the caller's own, which
 * may also be given as a bare member id. Only an operator may choose.
 */
export function actingAs(
  caller: Pick<ActorCaller, 'actor_id' | 'session'>,
  requested_id: string | undefined,
): string | null {
  if (requested_id === undefined || requested_id === caller.actor_id) return caller.actor_id;
  if (caller.session === null) return requested_id;
  if (caller.actor_id !== null && requested_id === caller.session.member?.member_id) return caller.actor_id;
  throw notAllowedAs(requested_id);
}

/** The actor id of a team's member. */
export function memberActorId(member_id: string, team_id: string): string {
  return `${member_id}@${team_id}`;
}

/** The actor id of a human. */
export function humanActorId(username: string): string {
  return `user:${username}`;
}

/** The username in a person's actor id (`user:<username>`); null for any other. */
export function parseUsername(actor_id: string): string | null {
  return actor_id.startsWith('user:') ? actor_id.slice('user:'.length) : null;
}

export interface ActorCall {
  method: string;
  params: unknown;
  /** Null: the connection shows the operator's certificate. */
  token: string | null;
  /** The node through which the call arrived. */
  node_id: string;
  /** The address of the caller; null: it is on the node, which does not report it. */
  ip?: string | null;
}
