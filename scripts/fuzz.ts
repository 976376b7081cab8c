/**
 * `npm run fuzz [-- --seed N --minutes M --batches B --only http,raw,grpc,acp]`: sends malformed input to every
 * listener of a real plane and a real node, one batch after another; the seed determines all batches. Stops at the
 * first finding and prints how to reproduce it. Without `--minutes` and `--batches`, it runs for ten minutes.
 */
import { parseArgs } from 'node:util';
import { type EntryPointName, entryPointNames, Finding } from '../src/testing/fuzz/entry-point.ts';
import { openEntryPoints } from '../src/testing/fuzz/entry-points.ts';
import { rssMib } from '../src/testing/fuzz/watch.ts';

const USAGE = `npm run fuzz [-- --seed N --minutes M --batches B --only ${entryPointNames.join(',')}]`;

interface FuzzOptions {
  seed: number;
  minutes: number;
  batches: number;
  only: readonly EntryPointName[];
}

function readArguments(): FuzzOptions {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
      minutes: { type: 'string' },
      batches: { type: 'string' },
      only: { type: 'string', default: entryPointNames.join(',') },
    },
  });
  const only = values.only.split(',').map((name) => entryPointNames.find((entry) => entry === name));
  const batches = Number(values.batches ?? Infinity);
  const minutes = Number(values.minutes ?? (values.batches === undefined ? 10 : Infinity));
  const seed = Number(values.seed);
  const known = only.flatMap((name) => name ?? []);
  if (known.length !== only.length || !Number.isInteger(seed) || !(minutes > 0) || !(batches > 0)) {
    console.error(USAGE);
    process.exit(2);
  }
  return { seed, minutes, batches, only: known };
}

/**
 * Runs batches for one listener after another, until the time or number is reached. Returns the number of cases per
 * listener.
 */
async function fuzz({ seed, minutes, batches, only }: FuzzOptions): Promise<void> {
  const until_ms = performance.now() + minutes * 60_000;
  const cases = new Map<EntryPointName, number>();
  const { plane, entries, close } = await openEntryPoints(only);
  let peak_mib = 0;
  const show = () => {
    const counts = entries.map(({ name }) => `${name} ${cases.get(name) ?? 0}`).join(', ');
    console.log(`${counts}; resident memory at most ${peak_mib.toFixed(0)} MiB`);
  };
  try {
    for (let done = 0; done < batches && performance.now() < until_ms; done++) {
      for (const entry of entries) {
        cases.set(entry.name, (cases.get(entry.name) ?? 0) + (await entry.batch(seed + done)));
        peak_mib = Math.max(peak_mib, await rssMib(plane.pid));
      }
      if (done % 10 === 0) show();
    }
    show();
    console.log('no findings');
  } catch (error) {
    if (!(error instanceof Finding)) throw error;
    show();
    console.log(error.message);
    process.exitCode = 1;
  } finally {
    await close();
  }
}

const options = readArguments();
console.log(`seed ${options.seed}`);
await fuzz(options);
// In Node 26, a socket that is reset while it is being ended is never closed, and a normal exit would wait for it.
process.exit();
