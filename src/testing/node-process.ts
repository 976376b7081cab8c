/**
 * A node in a process of its own, for tests that kill it: `node node-process.ts <data_dir> <launch as JSON>` starts the
 * session and lives until its stdin ends.
 */
import type { Launch } from '../domain/session.ts';
import { openTestNode } from './local-node.ts';

const [data_dir = '', launch = 'null', sweep_ms] = process.argv.slice(2);
const node = await openTestNode(data_dir, sweep_ms ? { sweep_ms: Number(sweep_ms) } : {});
await node.attach({ snapshot: async () => {}, fact: () => {}, wake: () => {} });
const wanted = JSON.parse(launch) as Launch | null;
if (wanted) await node.start(wanted);
process.stdout.write('up\n');
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
