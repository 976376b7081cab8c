/**
 * Which numbers of a table are settled: no transaction can add a row with one of them any more. A reader that continues
 * after the highest number that it has read reads settled numbers only. Otherwise, it would miss a row if transactions
 * overlap and the one that took the lower number commits later.
 *
 * In SQLite, transactions do not overlap, so all numbers are settled. `postgres/schema/numbers.ts` says how PostgreSQL
 * knows them.
 */
import { limits } from './limits.ts';

/** The tables with such readers. The sequences that assign their numbers are named after table and column. */
export const numbered_columns = { facts: 'id', feed: 'id', run_events: 'id', messages: 'num' } as const;

export type NumberedTable = keyof typeof numbered_columns;

export interface SettledNumbers {
  /**
   * This number and all lower ones are settled. They remain so, although a later answer may be lower. Transactions that
   * begin after the answer see all of their rows.
   */
  up_to: number;
  /** A transaction that took higher numbers, or is about to, has not ended. If it is rolled back, nobody is notified. */
  open: boolean;
}

export const all_settled: SettledNumbers = { up_to: Number.MAX_SAFE_INTEGER, open: false };

/** How long a reader that found nothing more may wait before it asks again, in ms; at most `wait_ms`. */
export function waitAfter({ open }: SettledNumbers, wait_ms?: number): number | undefined {
  return open ? Math.min(limits.settle_ms, wait_ms ?? Infinity) : wait_ms;
}
