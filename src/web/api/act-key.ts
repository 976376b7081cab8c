/** The idempotency key of a form: it stays the same while the request is the same, so that a retry has no second effect. */
import { useRef } from 'react';
import { newKey } from './client.ts';

export function useActKey(): (request: unknown) => string {
  const held = useRef<{ request: string; key: string } | null>(null);
  return (request) => {
    const text = JSON.stringify(request);
    if (held.current?.request !== text) held.current = { request: text, key: newKey() };
    return held.current.key;
  };
}
