/**
 * A table for keys that others choose, such as a status that an agent reports: unlike an object literal, it has no value for
 * `constructor` or `__proto__`.
 */
export function table<T>(entries: Readonly<Record<string, T>>): Readonly<Record<string, T>> {
  return Object.assign(Object.create(null), entries);
}
