/** The text of output events. */
import { asString, type Fields } from '../json.ts';

/** Replaces bytes that are not UTF-8. `binary`: there are such bytes, or the event is not readable. */
export function outputText({ data, encoding }: Fields): { text: string; binary: boolean } {
  const text = asString(data) ?? '';
  if (encoding !== 'base64') return { text, binary: false };
  try {
    const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
    return { text: new TextDecoder().decode(bytes), binary: true };
  } catch {
    return { text, binary: true };
  }
}
