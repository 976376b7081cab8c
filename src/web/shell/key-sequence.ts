/** Recognizes sequences of key presses as commands. Pure: each press has its time. */
import { jumps } from './key-table.ts';

export type KeyCommand = { do: 'sheet' } | { do: 'new_agent' } | { do: 'filter' } | { do: 'go'; to: string };

/** How long the sequence waits for the letter after `g`. */
const WAIT_MS = 1500;

export class KeySequence {
  #g_until = 0;

  /** Whether the next press belongs to a sequence. */
  isWaiting(at_ms: number): boolean {
    return at_ms < this.#g_until;
  }

  press(key: string, at_ms: number): KeyCommand | null {
    const after_g = this.isWaiting(at_ms);
    this.#g_until = 0;
    if (after_g) {
      const jump = Object.entries(jumps).find(([letter]) => letter === key);
      return jump ? { do: 'go', to: jump[1].to } : null;
    }
    switch (key) {
      case 'g':
        this.#g_until = at_ms + WAIT_MS;
        return null;
      case '?':
        return { do: 'sheet' };
      case 'c':
        return { do: 'new_agent' };
      case '/':
        return { do: 'filter' };
      default:
        return null;
    }
  }
}
