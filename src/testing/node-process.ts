/**
 * A node in a separate process, for tests that kill it: `node node-process.ts <data_dir> <launch as JSON> [starve]` starts the
 * session and runs until its stdin ends. `starve`: uses up all file descriptors for a while.
 */
import { closeSync, openSync } from 'node:fs';
import { sleep } from '../base/async.ts';
import type { Launch } from '../core/session.ts';
import { openTestNode } from './local-node.ts';

const [data_dir = '', launch = 'null', starve] = process.argv.slice(2);
const node = await openTestNode(data_dir, starve ? { helper_check_ms: 100, sweep_ms: 50 } : {});
await node.attach({ snapshot: async () => {}, fact: () => {}, wake: () => {} });
const wanted = JSON.parse(launch) as Launch | null;
if (wanted) await node.start(wanted);
process.stdout.write('up\n');
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
if (starve) {
  const held: number[] = [];
  const take = () => {
    try {
      for (;;) held.push(openSync('/dev/null', 'r'));
    } catch {
      // None is left.
    }
  };
  take();
  process.stdout.write('starved\n');
  for (let round = 0; round < 40; round++) {
    await sleep(25);
    take();
  }
  for (const fd of held) closeSync(fd);
  process.stdout.write('fed\n');
}
