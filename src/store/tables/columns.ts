/**
 * How types that SQLite lacks are stored.
 *
 * In all tables, `num` is the internal row id and `id` the public one, which users see. So `agent_num` refers to the
 * `num` of a row of `agents`, and `agent_id` to its `id`.
 */

/** 0 or 1. */
export type Bool = number;

/** A JSON text. */
export type Json = string;
