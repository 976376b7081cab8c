/** The draft of a team's definition, as it is stored (pure). */
import { isObject } from './document.ts';

export interface Saving {
  text: string;
  /** The version of the team that it changes; null for a new team. */
  version: number | null;
}

export function toDraft(text: string, version: number | null): string {
  return JSON.stringify({ version, text } satisfies Saving);
}

/** Null if there is no draft, or if it is malformed. */
export function readDraft(held: string): Saving | null {
  if (held === '') return null;
  try {
    const value = JSON.parse(held) as Partial<Saving>;
    return isObject(value) && typeof value.text === 'string'
      ? { text: value.text, version: typeof value.version === 'number' ? value.version : null }
      : null;
  } catch {
    return null;
  }
}

/** What remains of a draft after a text was saved as this version: changes that were made meanwhile; empty if there are none. */
export function unsaved(held: string, saved: string, version: number): string {
  const text = readDraft(held)?.text ?? saved;
  return text === saved ? '' : toDraft(text, version);
}
