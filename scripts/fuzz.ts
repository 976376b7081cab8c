/**
 * `npm run fuzz [-- --seed N --minutes M --batches B --only http,raw,grpc,acp]`: sends nonsense to every door of a real plane and
 * a real node, one batch after the other, each of the seed after the one before. Ends at the first finding with the words
 * that show it again. Without `--minutes` and `--batches` it takes ten minutes.
 */
import { parseArgs } from 'node:util';
import { type DoorName, doorNames, Finding } from '../src/testing/fuzz/door.ts';
import { openDoors } from '../src/testing/fuzz/doors.ts';
import { rssMib } from '../src/testing/fuzz/watch.ts';

const USAGE = `npm run fuzz [-- --seed N --minutes M --batches B --only ${doorNames.join(',')}]`;

interface Asked {
  seed: number;
  minutes: number;
  batches: number;
  only: readonly DoorName[];
}

function readArguments(): Asked {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
      minutes: { type: 'string' },
      batches: { type: 'string' },
      only: { type: 'string', default: doorNames.join(',') },
    },
  });
  const only = values.only.split(',').map((name) => doorNames.find((door) => door === name));
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

/** Batches of one door after the other, until time or number is reached. Answers how many cases each door had. */
async function fuzz({ seed, minutes, batches, only }: Asked): Promise<void> {
  const until_ms = performance.now() + minutes * 60_000;
  const cases = new Map<DoorName, number>();
  const { plane, doors, close } = await openDoors(only);
  let peak_mib = 0;
  const show = () => {
    const counts = doors.map(({ name }) => `${name} ${cases.get(name) ?? 0}`).join(', ');
    console.log(`${counts}; resident now ${peak_mib.toFixed(0)} MiB at most`);
  };
  try {
    for (let done = 0; done < batches && performance.now() < until_ms; done++) {
      for (const door of doors) {
        cases.set(door.name, (cases.get(door.name) ?? 0) + (await door.batch(seed + done)));
        peak_mib = Math.max(peak_mib, await rssMib(plane.pid));
      }
      if (done % 10 === 0) show();
    }
    show();
    console.log('nothing was found');
  } catch (error) {
    if (!(error instanceof Finding)) throw error;
    show();
    console.log(error.message);
    process.exitCode = 1;
  } finally {
    await close();
  }
}

const asked = readArguments();
console.log(`seed ${asked.seed}`);
await fuzz(asked);
// On Node 26 a socket that is reset while its own end is under way is never closed, and the way out waits for it.
process.exit();
