/**
 * Who calls the plane from a command line: a process of an agent's session, or somebody who holds the shared secret of
 * the internal surface and so may act as anyone.
 */
import { notAllowedAs } from './problem.ts';

export interface ActorCaller {
  /** `secret`: an operator, by the shared secret or, in `mtls`, by the plane's own certificate. */
  kind: 'session' | 'secret';
  /** Whom the credential itself names; null: nobody in particular. */
  actor_id: string | null;
  /** The live session that the call comes from; null: from none. */
  session: CallingSession | null;
  /** The address of the request; null where a node passed it on. */
  ip: string | null;
}

export interface CallingSession {
  id: string;
  agent_id: string;
  node_id: string;
  owner_id: string;
  /** Of a team's agent: the member that it is, in this run. */
  member: { member_id: string; team_num: number; team_id: string; run_num: number | null } | null;
}

/**
 * The actor that a call is made as. Throws `not allowed to act as <actor_id>` when that is another than the caller's
 * own, which may also be named by its member id alone; only the secret's holder may choose.
 */
export function actingAs(caller: ActorCaller, asked: string | undefined): string | null {
  if (asked === undefined || asked === caller.actor_id) return caller.actor_id;
  if (caller.kind === 'secret') return asked;
  if (caller.actor_id !== null && asked === caller.session?.member?.member_id) return caller.actor_id;
  throw notAllowedAs(asked);
}

/** The actor id of a team's member. */
export function actorIdOf(member_id: string, team_id: string): string {
  return `${member_id}@${team_id}`;
}

/** The actor id of a human. */
export function humanActorId(username: string): string {
  return `user:${username}`;
}

/** The name of a human's actor id (`user:<username>`); null for any other. */
export function usernameOf(actor_id: string): string | null {
  return actor_id.startsWith('user:') ? actor_id.slice('user:'.length) : null;
}
