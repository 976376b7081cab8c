/** `npm run check`: everything that can be said about the code without running the service. Prints what failed. */
import { type Outcome, run } from './run.ts';

const checks: Record<string, [string, ...string[]]> = {
  types: ['tsc', '--project', '.'],
  'format and lint': ['biome', 'ci', '--colors=off', '.'],
  'dead code': ['knip'],
  protocols: ['buf', 'lint'],
  'walls and habits': ['vitest', 'run', '--project', 'unit', 'test/house'],
  'generated files': ['node', 'scripts/generate.ts', '--check'],
};

const outcomes = await Promise.all(
  Object.entries(checks).map(async ([name, argv]): Promise<[string, Outcome]> => [name, await run(argv)]),
);
for (const [name, { ok, output, seconds }] of outcomes) {
  console.log(`${ok ? 'ok    ' : 'FAILED'} ${name} (${seconds.toFixed(1)} s)`);
  if (!ok) console.log(output.trimEnd());
}
if (outcomes.some(([, { ok }]) => !ok)) process.exitCode = 1;
