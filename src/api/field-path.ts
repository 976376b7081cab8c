/** Formats a field's path for messages: `spec.members[].member_id`. */
export function fieldPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (text, part) => (typeof part === 'number' ? `${text}[]` : `${text && `${text}.`}${inLine(String(part))}`),
    '',
  );
}

/** A key that the client chose, shortened and without control characters. */
function inLine(key: string): string {
  return key.slice(0, 64).replace(/[\u0000-\u001f\u007f-\u009f]/g, '?');
}
