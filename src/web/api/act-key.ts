/** The key that makes a repeated request the same act: it stays while the request does, and another request is another act. */
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
