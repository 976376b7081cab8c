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
const launch_options = JSON.parse(launch) as Launch | null;
if (launch_options) await node.start(launch_options);
process.stdout.write('up\n');
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
if (starve) {
  const descriptors: number[] = [];
  const openAll = () => {
    try {
      for (;;) descriptors.push(openSync('/dev/null', 'r'));
    } catch {
      // No descriptor is free.
    }
  };
  openAll();
  process.stdout.write('starved\n');
  for (let round = 0; round < 40; round++) {
    await sleep(25);
    openAll();
  }
  for (const fd of descriptors) closeSync(fd);
  process.stdout.write('released\n');
}
