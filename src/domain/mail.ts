/**
 * Mail between actors of a run. It is in the receiver's inbox until it is acknowledged, and told at least once. What
 * cannot be delivered is kept as a dead letter, with the reason.
 */
import type { Role } from './user.ts';

export const mailStatuses = ['pending', 'delivered', 'acknowledged', 'dead_letter'] as const;
/** `delivered`: its receiver was told of it, or listed it. */
export type MailStatus = (typeof mailStatuses)[number];

/** What run events tell of a message: everything but what it says. */
export interface MailHead {
  id: number;
  run_id: string;
  from_actor_id: string;
  to_actor_id: string;
  status: MailStatus;
  /** Of a dead letter. */
  reason?: string;
  created_at: string;
  delivered_at: string | null;
  acknowledged_at: string | null;
}

export interface Mail extends MailHead {
  payload: Record<string, unknown>;
}

/** Whom a user wants to act as. A member is one of a team that the user may work with. */
export type ActedAs = { kind: 'human'; username: string } | { kind: 'member'; outside: boolean };

/** A human acts as themselves and as members that no agent stands for; root as anyone. */
export function mayActAs(user: { username: string; role: Role }, actor: ActedAs): boolean {
  return user.role === 'root' || isOwn(user, actor);
}

/** Whether what is told to the actor is told to the user. */
export function isOwn(user: { username: string }, actor: ActedAs): boolean {
  return actor.kind === 'human' ? actor.username === user.username : actor.outside;
}
