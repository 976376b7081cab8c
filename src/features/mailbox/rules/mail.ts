/**
 * Mail between actors of a run. It stays in the receiver's inbox until it is acknowledged, and the receiver is
 * notified at least once. Mail that cannot be delivered is kept as a dead letter, with the reason. Mail sent after its run
 * has ended is a dead letter at once. Mail sent before stays in the inbox: people may still read it, and the run may be
 * resumed.
 *
 *     pending ──▶ delivered ──▶ acknowledged
 *        │            │
 *        └────────────┴──▶ dead_letter        the attempt of its run has ended
 */
import type { Role } from '../../accounts/rules.ts';

export const mailStatuses = ['pending', 'delivered', 'acknowledged', 'dead_letter'] as const;
/** `delivered`: its receiver was notified of it, or listed it. */
export type MailStatus = (typeof mailStatuses)[number];

/** What run events contain of a message: everything except its payload. */
export interface MailHead {
  id: number;
  run_id: string;
  from_actor_id: string;
  to_actor_id: string;
  status: MailStatus;
  /** Only for a dead letter. */
  reason?: string;
  created_at: string;
  delivered_at: string | null;
  acknowledged_at: string | null;
}

export interface Mail extends MailHead {
  payload: Record<string, unknown>;
}

/** The actor that a user wants to act as: a person, or a member of a team that the user may work with. */
export type ActingTarget = { kind: 'human'; username: string } | { kind: 'member'; has_no_agent: boolean };

/** People act as themselves and as members without an agent; root acts as anyone. */
export function mayActAs(user: { username: string; role: Role }, actor: ActingTarget): boolean {
  return user.role === 'root' || isOwn(user, actor);
}

/** Whether a notification to the actor counts as one to the user. */
export function isOwn(user: { username: string }, actor: ActingTarget): boolean {
  return actor.kind === 'human' ? actor.username === user.username : actor.has_no_agent;
}
