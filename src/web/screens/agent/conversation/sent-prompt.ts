/** A prompt on its way to the service, and the field that it left (pure). */

export interface Prompt {
  text: string;
  /** The idempotency key. */
  key: string;
}

/** Null if there is none, or if it is malformed. */
export function parsePrompt(stored: string): Prompt | null {
  try {
    return stored === '' ? null : (JSON.parse(stored) as Prompt);
  } catch {
    return null;
  }
}

/** Puts a prompt that may not have arrived back into the field, above what was typed since. */
export function withPrompt(text: string): (now: string) => string {
  return (now) => (now === '' ? text : `${text}\n${now}`);
}

/** Removes it again, because it did arrive. What was changed in it stays. */
export function withoutPrompt(text: string): (now: string) => string {
  return (now) => {
    if (now === text) return '';
    return now.startsWith(`${text}\n`) ? now.slice(text.length + 1) : now;
  };
}
