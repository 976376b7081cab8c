/**
 * A mutation with an idempotency key that stays the same for retries of the same request, so that a lost response does not
 * cause a second effect.
 */
import { useMutation } from '@tanstack/react-query';
import { type LastAttempt, useLastAttempt } from './act-key.ts';
import { newKey } from './client.ts';

/** `kept`: the last attempt of the draft that is sent, for retries after a reload. */
export function useAct<A, R>(
  act: (args: A, idempotency_key: string) => Promise<R>,
  onDone?: (result: R, args: A) => void,
  kept?: LastAttempt,
) {
  const held = useLastAttempt();
  const last = kept ?? held;
  return useMutation({
    mutationFn: (args: A) => act(args, last.of(args, newKey)),
    onSuccess: (result, args) => {
      last.forget(args);
      onDone?.(result, args);
    },
  });
}
