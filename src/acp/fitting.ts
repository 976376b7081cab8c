/** Bounds the lists in a session's stored state. */
import { limits as sharedLimits } from '../base/limits.ts';
import { limits } from './limits.ts';

/** The first items that fit. */
export function firstFitting<T extends object>(items: readonly T[]): T[] {
  let chars = 0;
  const first_items = items.slice(0, sharedLimits.acp_items_max);
  const over = first_items.findIndex((item) => {
    chars += JSON.stringify(item).length;
    return chars > limits.acp_state_list_chars_max;
  });
  return over < 0 ? first_items : first_items.slice(0, over);
}

/** The last items that fit. */
export function lastFitting<T extends object>(items: readonly T[]): T[] {
  return firstFitting(items.toReversed()).toReversed();
}

export function fits(items: readonly object[]): boolean {
  return firstFitting(items).length === items.length;
}
