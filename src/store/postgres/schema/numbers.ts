/**
 * Which numbers are settled (`settled-numbers.ts`). Before a transaction takes its first number from a sequence, it takes
 * a shared advisory lock whose key contains the sequence's last number. All numbers that it takes later are higher. It
 * holds the lock until its end, and it releases it after its rows are visible. So a number is settled if it was taken
 * before the locks were read, and if no lock was held whose key contains a lower one.
 *
 * `pg_sequence_last_value`: a serializable transaction that reads a sequence like a table conflicts with all others that
 * take numbers from it.
 */
import { type NumberedTable, numbered_columns } from '../../settled-numbers.ts';

/** The upper 8 bits of the keys of a table's locks. */
const tags: Record<NumberedTable, number> = { facts: 1, feed: 2, run_events: 3, messages: 4 };

/** The other 56 bits contain a number. */
const NUMBER_BITS = 56;

const functions = `
CREATE FUNCTION hold_numbers() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    held text := 'svc.holds_' || TG_TABLE_NAME;
  BEGIN
    IF coalesce(current_setting(held, true), '') = '' THEN
      PERFORM set_config(held, 'yes', true);
      PERFORM pg_advisory_xact_lock_shared(
        (TG_ARGV[0]::bigint << ${NUMBER_BITS}) | coalesce(pg_sequence_last_value(TG_ARGV[1]::regclass), 0));
    END IF;
    RETURN NULL;
  END
$$;
-- The order of the statements matters. Neither of them depends on the snapshot of the transaction.
CREATE FUNCTION settled_numbers(tag bigint, sequence regclass, OUT up_to bigint, OUT is_open boolean)
  LANGUAGE plpgsql AS $$
  DECLARE
    held bigint;
  BEGIN
    up_to := coalesce(pg_sequence_last_value(sequence), 0);
    SELECT min(((classid::bigint << 32) | objid::bigint) & ((1::bigint << ${NUMBER_BITS}) - 1)) INTO held
      FROM pg_locks
      WHERE locktype = 'advisory' AND objsubid = 1 AND classid::bigint >> (${NUMBER_BITS} - 32) = tag
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
    up_to := least(up_to, held);
    is_open := held IS NOT NULL;
  END
$$;
`;

function trigger([table, tag]: [string, number]): string {
  return `CREATE TRIGGER hold_numbers BEFORE INSERT ON ${table}
  FOR EACH STATEMENT EXECUTE FUNCTION hold_numbers(${tag}, '${sequenceOf(table as NumberedTable)}');
`;
}

function sequenceOf(table: NumberedTable): string {
  return `${table}_${numbered_columns[table]}_seq`;
}

export const sql = functions + Object.entries(tags).map(trigger).join('');

/** What to pass to the function `settled_numbers`. */
export function settledArguments(table: NumberedTable): { tag: number; sequence: string } {
  return { tag: tags[table], sequence: sequenceOf(table) };
}
