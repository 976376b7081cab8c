/** Parses the user's input as a value. Pure. */
export type ReadValue = { value: unknown; fault: null } | { value?: undefined; fault: string };

/** An empty text is null. */
export function readValue(text: string, isJson: boolean): ReadValue {
  if (text.trim() === '') return { value: null, fault: null };
  if (!isJson) return { value: text, fault: null };
  try {
    return { value: JSON.parse(text) as unknown, fault: null };
  } catch (error) {
    return { fault: (error as Error).message };
  }
}
