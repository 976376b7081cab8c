/** Accessors for JSON of unknown form. None of them throws. */
export type Fields = Record<string, unknown>;

export function isRecord(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value as a record; empty if it is not a record. */
export function asRecord(value: unknown): Fields {
  return isRecord(value) ? value : {};
}

/** The records in a list, in order. */
export function asRecords(value: unknown): Fields[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

export function asString(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

/** Null for infinity, which JSON numbers can overflow to. */
export function asNumber(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

/** Any value as text. Does not use `String`, because an agent's object may have a `toString` that is not a function. */
export function toText(value: unknown): string {
  return asString(value) ?? JSON.stringify(value) ?? '';
}

/** At most `chars` characters of a text, without half a surrogate pair at the end. */
export function truncateText(text: string, chars: number): string {
  if (text.length <= chars) return text;
  const last = text.charCodeAt(chars - 1);
  const is_half = last >= 0xd800 && last <= 0xdbff;
  return text.slice(0, is_half ? chars - 1 : chars);
}
