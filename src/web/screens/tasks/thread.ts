/** How a thread shows its messages (pure). */
import type { ItemOf } from '../../api/client.ts';
import type { TeamRecord } from '../../api/queries.ts';

export type MessageRecord = ItemOf<'listMessages'>;
export type MessageRoute = MessageRecord['route'];

/** All messages once, oldest first: pages as they were read, newest first, and messages that arrived since. */
export function mergeMessages(
  pages: readonly (readonly MessageRecord[])[],
  fresh: readonly MessageRecord[],
): MessageRecord[] {
  const known = new Map<number, MessageRecord>();
  for (const message of [...pages.flat(), ...fresh]) {
    // A message changes once, when a run takes it.
    if (!known.get(message.id)?.delivered) known.set(message.id, message);
  }
  return [...known.values()].sort((a, b) => a.id - b.id);
}

/** New messages that belong to the shown ones: all, those of the thread, or those that the search found. */
export function filterShown(
  fresh: readonly MessageRecord[],
  read: readonly MessageRecord[],
  shown: { thread?: number | undefined; q?: string | undefined },
): MessageRecord[] {
  if (shown.q) {
    const found = new Set(read.map(({ id }) => id));
    return fresh.filter(({ id }) => found.has(id));
  }
  return shown.thread === undefined ? [...fresh] : fresh.filter(({ thread }) => thread === shown.thread);
}

/** `dev@team_1` is `dev` here, `user:ana` is `ana`. */
export function shortActorName(actor_id: string): string {
  if (actor_id.startsWith('user:')) return actor_id.slice('user:'.length);
  return actor_id.split('@')[0]!;
}

export function formatReceiver({ route, to_actor_id }: Pick<MessageRecord, 'route' | 'to_actor_id'>): string {
  if (route === 'broadcast') return 'everyone';
  return to_actor_id === null ? 'the leader' : shortActorName(to_actor_id);
}

/** The beginning of a message, for its replies. */
export function excerpt(message: Pick<MessageRecord, 'text' | 'payload'>): string {
  const text = (message.text ?? JSON.stringify(message.payload)).replace(/\s+/g, ' ').trim();
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}

/** The rest of a payload as JSON; null if it is only the text. */
export function payloadRest({ payload, text }: Pick<MessageRecord, 'payload' | 'text'>): string | null {
  const { text: _, ...others } = payload;
  const rest = text === null ? payload : others;
  return Object.keys(rest).length === 0 && text !== null ? null : JSON.stringify(rest, null, 2);
}

interface Piece {
  /** Its offset in the text. */
  at: number;
  text: string;
  /** Null: plain text. */
  href: string | null;
}

/** Characters that belong to the sentence if they are at the end of a URL. */
const PUNCTUATION = new Set('.,;:!?)]}');

/** Splits a text at its web addresses. */
export function pieces(text: string): Piece[] {
  const parts: Piece[] = [];
  let from = 0;
  const plain = (until: number) => {
    if (until > from) parts.push({ at: from, text: text.slice(from, until), href: null });
  };
  for (const match of text.matchAll(/https?:\/\/[^\s<>"'`\\]+/g)) {
    let end = match[0].length;
    while (PUNCTUATION.has(match[0][end - 1]!)) end--;
    const address = match[0].slice(0, end);
    if (!URL.canParse(address)) continue;
    plain(match.index);
    parts.push({ at: match.index, text: address, href: address });
    from = match.index + address.length;
  }
  plain(text.length);
  return parts;
}

/** The receivers that `to_member` accepts. */
export function receivers({ spec, human_members }: Pick<TeamRecord, 'spec' | 'human_members'>): string[] {
  return [...spec.members.map(({ member_id }) => member_id), ...human_members.map((name) => `user:${name}`)];
}

export type ComposerField = 'route' | 'member' | 'text';

/** The control that the server's error is about. */
export function composerFieldFor(message: string): ComposerField {
  if (message.startsWith('route')) return 'route';
  return /^(to_actor_id|unknown actor)/.test(message) ? 'member' : 'text';
}

export type TaskField = 'title' | 'description' | 'assignee' | 'form';

export function taskFieldFor(message: string): TaskField {
  if (message.startsWith('title')) return 'title';
  if (message.startsWith('description')) return 'description';
  return message.startsWith('assignee_member_id') ? 'assignee' : 'form';
}
