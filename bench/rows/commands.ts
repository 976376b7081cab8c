/** How long the CLI takes: without the service, and with one request to it. */
import { spawnSync } from 'node:child_process';
import { SVC, type TestPlane } from '../../src/testing/plane.ts';
import { atMost, type Figure, median, type Row } from '../figure.ts';
import { withProgram } from '../program.ts';

export const commands: Row = {
  name: 'commands',
  how:
    'The time from the start of a command to its end, with the compile cache warm: the median of several. ' +
    '`svc agents ls` lists one agent of a service on the same machine.',
  run: async ({ quick }) =>
    withProgram(async (plane) => {
      await plane.agent(['/bin/true']);
      const rounds = quick ? 3 : 15;
      return [
        {
          what: '`svc --version`',
          unit: 'ms',
          value: medianMs(plane, ['--version'], rounds),
          goal: atMost(80),
        },
        {
          what: '`svc agents ls`',
          unit: 'ms',
          value: medianMs(plane, ['agents', 'ls'], rounds),
          goal: atMost(200),
        },
      ] satisfies Figure[];
    }),
};

function medianMs(plane: TestPlane, args: string[], rounds: number): number {
  const env = { ...plane.env, SVC_URL: plane.url, SVC_TOKEN: plane.token };
  const times: number[] = [];
  for (let round = 0; round <= rounds; round++) {
    const begun_ms = performance.now();
    const { status, stderr } = spawnSync(SVC, args, { env, encoding: 'utf8' });
    if (status !== 0) throw new Error(`svc ${args.join(' ')} ended with ${status}: ${stderr}`);
    times.push(performance.now() - begun_ms);
  }
  // The first one fills the compile cache.
  return median(times.slice(1));
}
