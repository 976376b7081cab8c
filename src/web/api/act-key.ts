/**
 * What the last attempt of a request was sent with, above all its idempotency key: a repetition after a lost response needs the
 * same, so that it has no second effect.
 */
import { useRef, useState } from 'react';
import { newKey } from './client.ts';

export interface LastAttempt<T = string> {
  /** What the last attempt was sent with, if it was the same request; otherwise makes it, and keeps it. */
  of: (request: unknown, make: () => T) => T;
  /** After success: when the same is sent again, it is another request. */
  forget: (request: unknown) => void;
}

/** `read` and `write` access the text in which the last attempt is stored. Null means that there is none. */
export function lastAttempt<T>(
  read: () => string | null,
  write: (text: string | null) => void,
): LastAttempt<T> {
  const find = (request: string): T | undefined => {
    try {
      const [sent, made] = JSON.parse(read() ?? '[]') as [string, T];
      return sent === request ? made : undefined;
    } catch {
      // Malformed: ignore it.
      return undefined;
    }
  };
  return {
    of: (request, make) => {
      const text = JSON.stringify(request) ?? '';
      const found = find(text);
      if (found !== undefined) return found;
      const made = make();
      write(JSON.stringify([text, made]));
      return made;
    },
    forget: (request) => {
      if (find(JSON.stringify(request) ?? '') !== undefined) write(null);
    },
  };
}

/** The last attempt of a form whose fields are not stored: until the page is left. */
export function useLastAttempt(): LastAttempt {
  const held = useRef<string | null>(null);
  return lastAttempt(
    () => held.current,
    (text) => {
      held.current = text;
    },
  );
}

/** The idempotency key of a form: it stays the same while the request is the same. */
export function useActKey(): (request: unknown) => string {
  const last = useLastAttempt();
  return (request) => last.of(request, newKey);
}

/** Idempotency keys: each request keeps its key, whatever was requested in between. */
export function keyPerRequest(): (request: unknown) => string {
  const keys = new Map<string, string>();
  return (request) => {
    const text = JSON.stringify(request);
    const key = keys.get(text) ?? newKey();
    keys.set(text, key);
    return key;
  };
}

/** See `keyPerRequest`. Until the page is left. */
export function useKeyPerRequest(): (request: unknown) => string {
  return useState(keyPerRequest)[0];
}
