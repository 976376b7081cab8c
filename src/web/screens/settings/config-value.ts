/** A setting's value as text that people edit, and back. The form of a value is seen from the one that it has. */

export type ValueForm = 'switch' | 'list' | 'number' | 'text';

export function formOf(value: unknown): ValueForm {
  if (typeof value === 'boolean') return 'switch';
  if (Array.isArray(value)) return 'list';
  return typeof value === 'number' ? 'number' : 'text';
}

/** One line for each item of a list. */
export function textOf(value: unknown): string {
  if (value === null || value === undefined) return '';
  return Array.isArray(value) ? value.join('\n') : String(value);
}

/** What to send for an edited text. Whether it is allowed, the server says. */
export function readValue(text: string, form: ValueForm): unknown {
  switch (form) {
    case 'switch':
      return text === 'true';
    case 'list':
      return text
        .split('\n')
        .map((line) => line.trim())
        .filter(Boolean);
    default: {
      const trimmed = text.trim();
      // An unset setting does not show whether it is a number.
      return /^-?\d+$/.test(trimmed) ? Number(trimmed) : trimmed;
    }
  }
}
