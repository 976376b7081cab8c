/** Converts a setting's value to editable text and back. The control depends on the current value. */

export type ValueForm = 'switch' | 'list' | 'number' | 'text';

export function getValueForm(value: unknown): ValueForm {
  if (typeof value === 'boolean') return 'switch';
  if (Array.isArray(value)) return 'list';
  return typeof value === 'number' ? 'number' : 'text';
}

/** One line per list item. */
export function formatValue(value: unknown): string {
  if (value === null || value === undefined) return '';
  return Array.isArray(value) ? value.join('\n') : String(value);
}

/** The value to send for an edited text. The server validates it. */
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
      // The type of an unset setting is unknown, so integers are sent as numbers.
      return /^-?\d+$/.test(trimmed) ? Number(trimmed) : trimmed;
    }
  }
}
