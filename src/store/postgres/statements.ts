/**
 * Prepared statements. The server parses and plans a text that is used often once for each connection, instead of with
 * each use.
 */
import { limits } from './limits.ts';

/** The names of the texts that connections of one pool prepare. */
export class StatementNames {
  /** How many times texts without a name were used. */
  #uses = new Map<string, number>();
  readonly #names = new Map<string, string>();
  #generation = 0;

  /** Counts a use of a text. Returns its name, or undefined if it is not used often, or too many others are. */
  nameOf(text: string): string | undefined {
    const name = this.#names.get(text);
    if (name !== undefined || this.#names.size >= limits.prepared_max) return name;
    if (text.length > limits.prepared_chars_max) return undefined;
    const uses = (this.#uses.get(text) ?? 0) + 1;
    if (uses < limits.prepared_from_uses) {
      // Texts vary with the lengths of their lists. Those that are used often are soon counted again.
      if (this.#uses.size >= limits.counted_texts_max) this.#uses.clear();
      this.#uses.set(text, uses);
      return undefined;
    }
    this.#uses.delete(text);
    const given = `${this.#generation}_${this.#names.size}`;
    this.#names.set(text, given);
    return given;
  }

  /** Gives other names from now on, if `name` is still in use, because the server cannot execute what was prepared. */
  renew(name: string): void {
    if (!name.startsWith(`${this.#generation}_`)) return;
    this.#generation++;
    this.#names.clear();
  }
}

/** The statements that one connection has prepared. */
export class PreparedStatements {
  readonly #names: StatementNames;
  /** Names of statements, and whether the server has answered one. */
  readonly #answered = new Map<string, boolean>();

  constructor(names: StatementNames) {
    this.#names = names;
  }

  /**
   * The name with which to send a text now; undefined to send it without one. Until the server has answered the first
   * use of a name, others do not refer to it: if that one fails, nothing was prepared.
   */
  begin(text: string): string | undefined {
    const name = this.#names.nameOf(text);
    if (name === undefined || this.#answered.get(name) === false) return undefined;
    if (!this.#answered.has(name)) this.#answered.set(name, false);
    return name;
  }

  succeeded(name: string): void {
    this.#answered.set(name, true);
  }

  /** Call it for every failure: the next use may have to prepare the statement. */
  failed(name: string): void {
    if (this.#answered.get(name) === false) this.#answered.delete(name);
  }

  /** The server cannot execute what was prepared under this name. */
  isStale(name: string): void {
    this.#names.renew(name);
  }
}
