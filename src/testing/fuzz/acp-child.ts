/**
 * An agent that sends malformed lines of ACP while it reads requests, and then `_fuzz/last`: `node acp-child.ts SEED LINES`. It
 * exits when its input ends.
 */
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setImmediate } from 'node:timers/promises';
import { LAST_METHOD, line } from './acp-frames.ts';
import { Rng } from './rng.ts';

const [seed, count] = process.argv.slice(2).map(Number) as [number, number];
const rng = new Rng(seed);
const request_ids: string[] = [];
const input = createInterface({ input: process.stdin });
input.on('line', (text) => {
  const { id, method } = JSON.parse(text) as { id?: unknown; method?: unknown };
  if (id !== undefined && method !== undefined) request_ids.push(JSON.stringify(id));
});
input.on('close', () => process.exit(0));
await once(input, 'line');
for (let remaining = count; remaining > 0; remaining--) {
  if (!process.stdout.write(line(rng, request_ids))) await once(process.stdout, 'drain');
  await setImmediate();
}
process.stdout.write(`\n${JSON.stringify({ jsonrpc: '2.0', method: LAST_METHOD })}\n`);
