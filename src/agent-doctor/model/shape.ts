/** One API that agents speak to models: how a request of it is read, and how an answer is said in it. */
import type { Answer, Conversation } from './conversation.ts';

/** One event of a stream of server-sent events; `event` names it where the API does so. */
export interface StreamEvent {
  event?: string;
  /** A text goes as it is, everything else as JSON. */
  data: unknown;
}

export interface Shape {
  name: string;
  /** Throws a ZodError when the body is not of this API. */
  read(body: unknown, path: string): Conversation;
  whole(answer: Answer, conversation: Conversation): unknown;
  events(answer: Answer, conversation: Conversation): StreamEvent[];
  error(message: string): unknown;
}

/** A text in the pieces that a model would stream it in. */
export function pieces(text: string): string[] {
  if (text.trim() === '') return [];
  const parts = text.split(/(?<=\S)(?=\s)/);
  const last = parts.at(-1)!;
  return last.trim() === '' ? [...parts.slice(0, -2), parts.at(-2)! + last] : parts;
}
