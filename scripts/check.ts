/** `npm run check`: all checks that do not run the service. Prints the failures. */
import { type Outcome, run } from './run.ts';

const checks: Record<string, [string, ...string[]]> = {
  types: ['tsc', '--project', '.'],
  'types of the web UI': ['tsc', '--project', 'src/web'],
  'types of the client': ['tsc', '--project', 'tsconfig.client.json', '--noEmit'],
  'format and lint': ['biome', 'ci', '--colors=off', '.'],
  'dead code': ['knip'],
  'import rules and documentation': ['vitest', 'run', '--project', 'unit', 'test/architecture'],
  'generated files': ['node', 'scripts/generate.ts', '--check'],
};

async function webSizes(): Promise<Outcome> {
  const built = await run(['node', 'scripts/build-web.ts', '--if-needed']);
  return built.ok ? run(['size-limit']) : built;
}

const outcomes = await Promise.all(
  [
    ...Object.entries(checks).map(([name, argv]) => ({ name, outcome: run(argv) })),
    { name: 'sizes of the web UI', outcome: webSizes() },
  ].map(async ({ name, outcome }): Promise<[string, Outcome]> => [name, await outcome]),
);
for (const [name, { ok, output, seconds }] of outcomes) {
  console.log(`${ok ? 'ok    ' : 'FAILED'} ${name} (${seconds.toFixed(1)} s)`);
  if (!ok) console.log(output.trimEnd());
}
if (outcomes.some(([, { ok }]) => !ok)) process.exitCode = 1;
