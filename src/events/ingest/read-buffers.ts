/** Buffers for streams that write continuously. */
import { limits } from '../limits.ts';

/**
 * A bounded pool. A buffer is reused only after its batch is stored. Streams for which no buffer is left allocate
 * memory of the exact size.
 */
export class ReadBuffers {
  readonly #free: Uint8Array[] = [];
  #made = 0;

  /** Undefined if all buffers are in use. */
  take(): Uint8Array | undefined {
    const buffer = this.#free.pop();
    if (buffer || this.#made === limits.ingest_buffers_max) return buffer;
    this.#made++;
    return Buffer.allocUnsafeSlow(limits.ingest_read_bytes + limits.spool_check_bytes);
  }

  give(buffer: Uint8Array | undefined): void {
    if (buffer) this.#free.push(buffer);
  }
}
