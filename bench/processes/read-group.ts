import { readSync } from 'node:fs';
import { limits as eventsLimits } from '../../src/events/limits.ts';
import { limits } from '../../src/store/limits.ts';

/** Reads the blocks of 64 KiB that the service would commit together from an open file. Empty at its end. */
export function readGroup(file: number): Buffer[] {
  const group: Buffer[] = [];
  for (let bytes = 0; bytes < limits.group_bytes_max; ) {
    const block = Buffer.allocUnsafe(eventsLimits.event_output_bytes_max);
    const got = readSync(file, block, 0, block.length, null);
    if (got === 0) break;
    group.push(block.subarray(0, got));
    bytes += got;
  }
  return group;
}
