/** Output of the agent's commands, which is sent separately from the tool calls that show it. */
import { asNumber, asRecord, asString, isRecord } from '../json.ts';
import type { Update } from '../updates.ts';
import { shortOrNull, shortText } from './bounded.ts';
import { bounds } from './bounds.ts';
import { newTerminal, scopedKey, type Terminal } from './calls.ts';

interface Known {
  shown: Terminal;
  /** Decodes chunks, which may end in the middle of a character. */
  decoder: TextDecoder;
}

export class Terminals {
  readonly #known = new Map<string, Known>();

  /** Call this after the agent restarts, because it may reuse ids. */
  reset(): void {
    this.#known.clear();
  }

  /** The output so far. `scope`: the session that scopes its id; '' for the agent's own. */
  get(terminal_id: string, scope: string): Terminal {
    return this.#of(terminal_id, scope).shown;
  }

  /** Returns the id of the terminal. */
  update(
    { terminal_id: id, command, output, exit_status, data }: Extract<Update, { kind: 'terminal' }>,
    scope: string,
  ): string {
    const terminal_id = shortText(id ?? '');
    const known = this.#of(terminal_id, scope);
    if (command !== undefined) known.shown = { ...known.shown, command: shortOrNull(command) };
    if (exit_status !== undefined) known.shown = { ...known.shown, exit: formatExit(exit_status) };
    if (output !== undefined) {
      known.decoder = new TextDecoder();
      known.shown = { ...known.shown, text: '', omitted_chars: 0 };
    }
    append(known, data ?? asRecord(output).data);
    return terminal_id;
  }

  #of(terminal_id: string, scope: string): Known {
    const key = scopedKey(terminal_id, scope);
    const before = this.#known.get(key);
    if (before) return before;
    if (this.#known.size >= bounds.parts) this.#known.clear();
    const known = { shown: newTerminal(terminal_id), decoder: new TextDecoder() };
    this.#known.set(key, known);
    return known;
  }
}

function append(known: Known, data: unknown): void {
  const all = known.shown.text + known.decoder.decode(decodeBase64(data), { stream: true });
  const text = all.slice(-bounds.text_chars);
  known.shown = { ...known.shown, text, omitted_chars: known.shown.omitted_chars + all.length - text.length };
}

function decodeBase64(base64: unknown): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(asString(base64) ?? ''), (char) => char.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}

function formatExit(status: unknown): string | null {
  if (!isRecord(status)) return null;
  const code = asNumber(status.exitCode);
  return shortOrNull(status.signal) ?? (code === null ? 'ended' : `exit code ${code}`);
}
