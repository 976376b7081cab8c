/**
 * For `test/team-runs.test.ts`: the services of a plane on an existing folder, with real processes. Begins the run or continues
 * it, and exits when the run is over; a failpoint may end the process earlier.
 */
import { join } from 'node:path';
import { sleep } from '../base/async.ts';
import type { Folders } from '../core/node.ts';
import { findRun } from '../features/runs/queries/runs.ts';
import { listRunSteps } from '../features/runs/queries/steps.ts';
import { isRunOver } from '../features/runs/rules/run.ts';
import { FeaturesFixture } from './features-fixture.ts';
import { openTestNode } from './local-node.ts';
import { beginRun, plainMember } from './team-runs.ts';

const RUN = 'run_of_child';
const [folder, agent] = process.argv.slice(2) as [string, string];
const node = await openTestNode(join(folder, 'data'), {
  folders: {
    resolve: async (path: string) => ({ path, below_worktree_root: false, claimed_by: null }),
  } as Folders,
});
const fixture = await FeaturesFixture.make(node, folder);
if (!(await loadRun())) {
  const note = 'echo "$SVC_STEP_KEY" >>done; echo "$SVC_STEP_KEY"';
  const acp_agent = {
    command: null,
    argv: [process.execPath, agent, 'flood', '3'],
    protocol: 'acp' as const,
  };
  await beginRun(fixture, {
    run_id: RUN,
    members: [plainMember('m', note), plainMember('speaker', '', acp_agent)],
    steps: [
      { step_key: 'a', member_id: 'm' },
      { step_key: 'b', depends_on: ['a'] },
      { step_key: 'c', depends_on: ['a'] },
      { step_key: 'd', member_id: 'speaker', depends_on: ['b', 'c'] },
      { step_key: 'e', member_id: 'speaker', depends_on: ['d'] },
      { step_key: 'f', depends_on: ['e'] },
    ],
  });
}
while (!isRunOver((await loadRun())!)) await sleep(20);
// The run stops its agents.
while (Object.values(await sessionsLive()).length > 0) await sleep(20);
const result = await fixture.store.read(async (reader) => ({
  status: (await findRun(reader, RUN))!.status,
  steps: (await listRunSteps(reader, (await findRun(reader, RUN))!.num)).map(
    ({ step_key, status, attempt, output, error_text }) => ({
      ...{ step_key, status, attempt, output, error_text },
    }),
  ),
  prompts: (await reader.all(reader.sql.selectFrom('prompts').select('state'))).map(({ state }) => state),
}));
process.stdout.write(JSON.stringify(result));
await fixture.close();
await node.close();
process.exit(0);

function loadRun() {
  return fixture.store.read((reader) => findRun(reader, RUN));
}

function sessionsLive() {
  return fixture.store.read((reader) =>
    reader.all(reader.sql.selectFrom('sessions').select('id').where('state', '<>', 'ended')),
  );
}
