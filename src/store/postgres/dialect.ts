/** PostgreSQL as the query builder and the driver see it: the dialect, and how values are sent and received. */
import {
  DummyDriver,
  HandleEmptyInListsPlugin,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  replaceWithNoncontingentExpression,
} from 'kysely';
import type { Tables } from '../tables.ts';

export const kysely = new Kysely<Tables>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
  // PostgreSQL has no empty list after IN. Nothing is in it, as in SQLite.
  plugins: [new HandleEmptyInListsPlugin({ strategy: replaceWithNoncontingentExpression })],
});

/**
 * Converts a parameter of a statement. Replaces U+0000, which text cannot contain, with U+FFFD. Throws a `TypeError` for
 * values that SQLite does not accept either.
 */
export function toParameter(value: unknown): string | Buffer | null {
  if (value === null) return null;
  if (typeof value === 'string') return value.includes('\0') ? value.replaceAll('\0', '\ufffd') : value;
  if (typeof value === 'number' || typeof value === 'bigint') return String(value);
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  throw new TypeError(`a parameter of a statement must not be of type ${typeof value}`);
}

type Parse = (text: string) => unknown;

/** By the object id of the type in `pg_type`. The driver receives all values as text. */
const parsers = new Map<number, Parse>([
  // bool: a number, as in SQLite
  [16, (text) => (text === 't' ? 1 : 0)],
  // bytea
  [17, (text) => new Uint8Array(Buffer.from(text.slice(2), 'hex'))],
  // int2, int4, int8, oid
  ...[21, 23, 20, 26].map((oid): [number, Parse] => [oid, toNumber]),
  // float4, float8
  ...[700, 701].map((oid): [number, Parse] => [oid, Number]),
  // numeric, for example a sum of int8
  [1700, toNumber],
  // text, varchar, name, unknown
  ...[25, 1043, 19, 705].map((oid): [number, Parse] => [oid, String]),
]);

/** The driver's interface for the conversion of results. */
export const types = {
  getTypeParser(oid: number): Parse {
    return parsers.get(oid) ?? (() => unknownType(oid));
  },
};

function unknownType(oid: number): never {
  throw new TypeError(`cannot convert a value of the PostgreSQL type ${oid}`);
}

/** Throws a `RangeError` instead of returning another integer than the database contains. */
function toNumber(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) && !text.includes('.'))
    throw new RangeError(`${text} is not a safe integer`);
  return value;
}
