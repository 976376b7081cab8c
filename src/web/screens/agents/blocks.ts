/** Divides long lists into blocks that a browser can skip as a whole while they are out of view. */

/** The average number of rows in a block. */
const BLOCK_ROWS = 32;

/**
 * Consecutive blocks of rows. The ids decide where a block begins, not the positions: when a row moves, only the blocks that it
 * leaves and enters change, and all other rows keep their elements, and with them the focus.
 */
export function blocksOf<Row extends { id: string }>(rows: readonly Row[]): Row[][] {
  const blocks: Row[][] = [];
  for (const row of rows) {
    if (blocks.length === 0 || beginsBlock(row.id)) blocks.push([]);
    blocks.at(-1)!.push(row);
  }
  return blocks;
}

function beginsBlock(id: string): boolean {
  let hash = 0;
  for (let i = 0; i < id.length; i++) hash = Math.imul(hash ^ id.charCodeAt(i), 0x01000193);
  // Ids that differ in one digit get hashes that differ in many bits.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) % BLOCK_ROWS === 0;
}
