/** What is said in a task's conversation: whom a message goes to, and what of it can be read. */
import { invalid, problems } from './problem.ts';
import type { TeamSpec } from './team.ts';

export const messageRoutes = ['broadcast', 'to_leader', 'to_member'] as const;
/** `broadcast`: to every member but the sender. `to_member`: also to a human. */
export type MessageRoute = (typeof messageRoutes)[number];

/** Which messages a list begins with. */
export const messageOrders = ['oldest', 'newest'] as const;
export type MessageOrder = (typeof messageOrders)[number];

export interface Message {
  id: number;
  team_id: string;
  task_id: string;
  conversation_id: string;
  /** The run that it was delivered in; null: it waits for the task's next one. */
  run_id: string | null;
  from_actor_id: string;
  route: MessageRoute;
  /** Null for a broadcast. */
  to_actor_id: string | null;
  payload: Record<string, unknown>;
  /** The payload's own; null: it has none. */
  text: string | null;
  reply_to: number | null;
  /** The message that its thread began with. */
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
 * Checks how a message is addressed: the route, then that there is a leader, then that somebody is named. Whether
 * somebody is known of that name is for the caller to find out.
 */
export function mustBeRouted(
  { leader_member_id }: Pick<TeamSpec, 'leader_member_id'>,
  route: MessageRoute,
  to_actor_id: string | undefined,
): void {
  if (!messageRoutes.includes(route)) throw problems.routeInvalid();
  if (route === 'to_leader' && leader_member_id === null) throw problems.leaderRequired();
  if (route === 'to_member' && (to_actor_id ?? '') === '') throw problems.recipientRequired();
}

/** One of them is what is said. `bytes_max`: of it as JSON. */
export function payloadOf(
  said: { text?: string | undefined; payload?: Record<string, unknown> | undefined },
  bytes_max: number,
): Record<string, unknown> {
  if (said.text !== undefined && said.payload !== undefined) throw problems.textOrPayload();
  if (said.payload === undefined && (said.text ?? '').trim() === '') throw problems.textRequired();
  const payload = said.payload ?? { text: said.text };
  if (Buffer.byteLength(JSON.stringify(payload)) > bytes_max) {
    const field = said.payload === undefined ? 'text' : 'payload';
    throw invalid(`${field} must be at most ${bytes_max} bytes as JSON`);
  }
  return payload;
}
