/**
 * Small byte arrays that are kept for long. Node takes small buffers from pieces of 64 KiB, and one that is kept keeps its whole
 * piece: after 80 batches of malformed requests, 1 MiB of kept entries held 8 MiB. These buffers have their own memory.
 */

/** The text in UTF-8. */
export function keptText(text: string): Buffer {
  const kept = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  kept.write(text);
  return kept;
}

/** A copy. */
export function keptBytes(bytes: Uint8Array): Buffer {
  const kept = Buffer.allocUnsafeSlow(bytes.length);
  kept.set(bytes);
  return kept;
}
