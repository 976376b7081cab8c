/** The active one of several planes is cut off from all others without notice: packets vanish, and connections stay open. */
import { expect, test } from 'vitest';
import { hasNamespaces } from '../src/testing/namespaces.ts';
import { partitionPlanes } from '../src/testing/partitions.ts';
import { programs } from '../src/testing/postgres-programs.ts';

/** `docs/how-to/several-planes.md` says about 10 seconds; this machine may be busy. */
const TAKEOVER_MS_MAX = 25_000;

test.runIf(hasNamespaces() && programs !== undefined)(
  'a plane that the network cuts off is replaced in time, and refused when it is connected again',
  { timeout: 240_000 },
  async ({ signal }) => {
    const partitions = await partitionPlanes(signal);
    const taken_over = 'svc: another control plane has taken over the database';
    const end = { exit_code: 1, last_line: taken_over, later_links: 0 };
    expect(partitions).toMatchObject([
      { name: 'a', ...end },
      { name: 'b', ...end },
    ]);
    for (const { takeover_ms } of partitions) expect(takeover_ms).toBeLessThan(TAKEOVER_MS_MAX);
  },
);
