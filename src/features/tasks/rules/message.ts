/** Messages in a task's thread: addressing, and reading their content. */
import { invalid, problems } from '../../../core/problem.ts';
import type { TeamSpec } from '../../teams/rules/team.ts';

export const messageRoutes = ['broadcast', 'to_leader', 'to_member'] as const;
/** `broadcast`: to every member but the sender. `to_member`: also to a person. */
export type MessageRoute = (typeof messageRoutes)[number];

/** Sort order of a list. */
export const messageOrders = ['oldest', 'newest'] as const;
export type MessageOrder = (typeof messageOrders)[number];

export interface Message {
  id: number;
  team_id: string;
  task_id: string;
  conversation_id: string;
  /** The run in which it was delivered; null if none has delivered it, or if that run was deleted. */
  run_id: string | null;
  /** False: it waits for the task's next run. */
  delivered: boolean;
  from_actor_id: string;
  route: MessageRoute;
  /** Null for a broadcast. */
  to_actor_id: string | null;
  payload: Record<string, unknown>;
  /** `payload.text`; null if none exists. */
  text: string | null;
  reply_to: number | null;
  /** The first message of its reply thread. */
  thread: number;
  created_at: string;
}

export interface Conversation {
  id: string;
  team_id: string;
  task_id: string;
  title: string;
  messages: number;
  last_message_id: number | null;
  created_at: string;
}

/**
 * Checks how a message is addressed: the route, then that there is a leader, then that a receiver is named. The
 * caller must check that the receiver exists.
 */
export function assertValidRoute(
  { leader_member_id }: Pick<TeamSpec, 'leader_member_id'>,
  route: MessageRoute,
  to_actor_id: string | undefined,
): void {
  if (!messageRoutes.includes(route)) throw problems.routeInvalid();
  if (route === 'to_leader' && leader_member_id === null) throw problems.leaderRequired();
  if (route === 'to_member' && (to_actor_id ?? '') === '') throw problems.recipientRequired();
}

/** Exactly one of `text` and `payload` is the message. `bytes_max`: its maximum size as JSON. */
export function toPayload(
  message: { text?: string | undefined; payload?: Record<string, unknown> | undefined },
  bytes_max: number,
): Record<string, unknown> {
  if (message.text !== undefined && message.payload !== undefined) throw problems.textOrPayload();
  if (message.payload === undefined && (message.text ?? '').trim() === '') throw problems.textRequired();
  const payload = message.payload ?? { text: message.text };
  if (Buffer.byteLength(JSON.stringify(payload)) > bytes_max) {
    const field = message.payload === undefined ? 'text' : 'payload';
    throw invalid(`${field} must be at most ${bytes_max} bytes as JSON`);
  }
  return payload;
}
