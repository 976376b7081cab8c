/** Records the calls of methods inside transactions, which may run again or be rolled back. */
import { vi } from 'vitest';
import type { Tx } from '../store/store.ts';

type Method = (tx: Tx, ...args: never[]) => Promise<unknown>;

/** The arguments, after `tx`, of the calls of a method whose transactions are committed; in the order of the commits. */
export function committedCalls<Name extends string>(
  object: Record<Name, Method>,
  name: Name,
): readonly (readonly unknown[])[] {
  const calls: unknown[][] = [];
  const original = object[name].bind(object);
  vi.spyOn(object as Record<string, Method>, name).mockImplementation((tx, ...args) => {
    tx.afterCommit(() => void calls.push(args));
    return original(tx, ...args);
  });
  return calls;
}
