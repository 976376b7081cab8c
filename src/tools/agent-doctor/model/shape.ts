/** Interface of one model API: parses its requests and writes answers in its format. */
import type { Answer, Conversation } from './conversation.ts';

/** A server-sent event; `event` is its name if the API uses names. */
export interface StreamEvent {
  event?: string;
  /** Text is sent unchanged, everything else as JSON. */
  data: unknown;
}

export interface ModelApi {
  name: string;
  /** Throws a ZodError if the body does not match this API. */
  read(body: unknown, path: string): Conversation;
  complete(answer: Answer, conversation: Conversation): unknown;
  events(answer: Answer, conversation: Conversation): StreamEvent[];
  error(message: string): unknown;
}

/** Splits text into chunks like those that a model streams. */
export function pieces(text: string): string[] {
  if (text.trim() === '') return [];
  const parts = text.split(/(?<=\S)(?=\s)/);
  const last = parts.at(-1)!;
  return last.trim() === '' ? [...parts.slice(0, -2), parts.at(-2)! + last] : parts;
}
