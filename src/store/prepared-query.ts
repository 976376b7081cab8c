/**
 * Queries that are built only once. Use them for queries that run with every batch of output or every request, because
 * building a query takes several times as long as running it.
 */
import type { Compilable, CompiledQuery, Kysely } from 'kysely';
import type { Reader } from './store.ts';
import type { Tables } from './tables.ts';

/** A placeholder for a parameter while its query is built. */
class Placeholder {
  readonly index: number;

  constructor(index: number) {
    this.index = index;
  }
}

/** A built query and its parameters. */
class Filled<Row> implements Compilable<Row> {
  readonly #built: CompiledQuery<Row>;
  readonly #parameters: readonly unknown[];

  constructor(built: CompiledQuery<Row>, parameters: readonly unknown[]) {
    this.#built = built;
    this.#parameters = parameters;
  }

  compile(): CompiledQuery<Row> {
    const { sql, query, queryId } = this.#built;
    return { sql, query, queryId, parameters: this.#parameters };
  }
}

/** `build` is called once, with placeholders. It may only pass them to the query, not read them. */
export function preparedQuery<Params extends unknown[], Row>(
  build: (sql: Kysely<Tables>, ...params: Params) => Compilable<Row>,
): (reader: Pick<Reader, 'sql'>, ...params: Params) => Compilable<Row> {
  let query: CompiledQuery<Row> | undefined;
  return ({ sql }, ...params) => {
    query ??= build(sql, ...(params.map((_, index) => new Placeholder(index)) as Params)).compile();
    const parameters = query.parameters.slice();
    for (let i = 0; i < parameters.length; i++) {
      const one = parameters[i];
      if (one instanceof Placeholder) parameters[i] = params[one.index];
    }
    return new Filled(query, parameters);
  };
}
