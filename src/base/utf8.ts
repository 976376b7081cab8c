import { isUtf8 } from 'node:buffer';

/** Whether every piece of `bytes` is valid UTF-8 by itself; `ends` says where the pieces end. Costs one look at the whole. */
export function allUtf8(bytes: Uint8Array, ends: readonly number[]): boolean {
  if (!isUtf8(bytes)) return false;
  for (const end of ends) {
    if (end < bytes.length && (bytes[end]! & 0xc0) === 0x80) return false;
  }
  return true;
}
