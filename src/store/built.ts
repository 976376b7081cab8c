/**
 * Queries that are built once: building one costs several times what running it costs. For what runs with every batch of
 * output and every request.
 */
import type { Compilable, CompiledQuery, Kysely } from 'kysely';
import type { Reader } from './store.ts';
import type { Tables } from './tables.ts';

/** Stands for a parameter while its query is built. */
class StandIn {
  readonly index: number;

  constructor(index: number) {
    this.index = index;
  }
}

/** `build` is called once, with stand-ins: it may hand them on to the query, and look at none of them. */
export function built<Params extends unknown[], Row>(
  build: (sql: Kysely<Tables>, ...params: Params) => Compilable<Row>,
): (reader: Pick<Reader, 'sql'>, ...params: Params) => Compilable<Row> {
  let query: CompiledQuery<Row> | undefined;
  return ({ sql }, ...params) => {
    query ??= build(sql, ...(params.map((_, index) => new StandIn(index)) as Params)).compile();
    const parameters = query.parameters.map((one) => (one instanceof StandIn ? params[one.index] : one));
    const filled = { ...query, parameters };
    return { compile: () => filled };
  };
}
