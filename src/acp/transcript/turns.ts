/** The turns of a conversation. Each lasts from a prompt to the end of the agent's work on it. */
import { bounds } from './bounds.ts';
import type { Turn } from './items.ts';

export class Turns {
  #all: readonly Turn[] = [];

  get all(): readonly Turn[] {
    return this.#all;
  }

  /** The current turn; null between turns. */
  get open(): Turn | null {
    const last = this.#all.at(-1);
    return last?.ended_ts === null ? last : null;
  }

  begin(prompt_id: string, prompt_seq: number, started_ts: number): void {
    const n = (this.#all.at(-1)?.n ?? 0) + 1;
    const turn = {
      n,
      prompt_id,
      prompt_seq,
      started_ts,
      ended_ts: null,
      stop_reason: null,
      cancelled_ts: null,
    };
    this.#all = [...this.#all.slice(1 - bounds.turns), turn];
  }

  cancel(ts: number): void {
    const { open } = this;
    if (open) this.#change({ ...open, cancelled_ts: open.cancelled_ts ?? ts });
  }

  end(stop_reason: string | null, ended_ts: number): void {
    const { open } = this;
    if (open) this.#change({ ...open, ended_ts, stop_reason });
  }

  #change(turn: Turn): void {
    this.#all = [...this.#all.slice(0, -1), turn];
  }
}
