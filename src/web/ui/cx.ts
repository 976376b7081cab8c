/** Joins class names, and skips empty and conditional ones that do not apply. */
export function cx(...names: unknown[]): string {
  return names.filter((name) => typeof name === 'string' && name !== '').join(' ');
}
