/** What SQLite stores for types that it does not have. */

/** 0 or 1. */
export type Bool = number;

/** A JSON text. */
export type Json = string;
