/**
 * A mutation with an idempotency key that stays the same for retries of the same request, so that a lost response does not
 * cause a second effect.
 */
import { useMutation } from '@tanstack/react-query';
import { useRef } from 'react';
import { newKey } from './client.ts';

export function useAct<A, R>(
  act: (args: A, idempotency_key: string) => Promise<R>,
  onDone?: (result: R, args: A) => void,
) {
  const held = useRef<{ of: string; key: string } | null>(null);
  return useMutation({
    mutationFn: (args: A) => {
      const of = JSON.stringify(args) ?? '';
      if (held.current?.of !== of) held.current = { of, key: newKey() };
      return act(args, held.current.key);
    },
    onSuccess: (result, args) => {
      held.current = null;
      onDone?.(result, args);
    },
  });
}
