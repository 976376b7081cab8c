/** The rows of a team with an open run, for tests of features that depend on them. */

import { insertRun } from '../features/runs/queries/runs.ts';
import { insertTask } from '../features/runs/queries/tasks.ts';
import { insertTeam } from '../features/teams/queries.ts';
import type { Member, TeamSpec } from '../features/teams/rules/team.ts';
import type { Store } from '../store/store.ts';

export function specOf(member_ids: readonly string[], more: Partial<TeamSpec> = {}): TeamSpec {
  const member = (member_id: string): Member => ({
    ...{ member_id, description: '', skills: [], prompt: '', agent: null },
  });
  return {
    spec_version: 1,
    entrypoint: { type: 'task' },
    members: member_ids.map(member),
    leader_member_id: member_ids[0] ?? null,
    steps: [],
    review_route: 'human',
    max_rounds: 20,
    ...more,
  };
}

export interface TeamRows {
  team_num: number;
  run_num: number;
}

/** Inserts the team `team_<name>` with one open run, `run_<name>`. */
export function addTeam(
  store: Store,
  name: string,
  spec: TeamSpec,
  { created_by = 'usr_1', human_ids = [] as string[] } = {},
): Promise<TeamRows> {
  return store.write(async (tx) => {
    const times = { created_at: 0, updated_at: 0 };
    const text = JSON.stringify(spec);
    const team = { id: `team_${name}`, name, description: '', spec: text, version: 1, created_by };
    const team_num = await insertTeam(tx, { ...team, ...times });
    for (const user_id of human_ids)
      await tx.run(tx.sql.insertInto('team_humans').values({ team_num, user_id }));
    const task = { id: `task_${name}`, team_num, title: name, description: '', status: 'open', version: 1 };
    const task_num = await insertTask(tx, {
      ...task,
      ...times,
      status: 'open',
      conversation_id: `conv_${name}`,
      created_by,
    });
    const run = { id: `run_${name}`, team_num, number: 1, task_num, spec: text, input: '{}', attempt: 1 };
    const state = { status: 'running', mode: 'steps', leader: 'unasked' } as const;
    const counts = { rounds: 0, steps_seen: 0, version: 1, created_at: 0 };
    const run_num = await insertRun(tx, { ...run, ...state, ...counts, created_by });
    return { team_num, run_num };
  });
}

/** Makes an agent that of a member. */
export async function joinTeam(
  store: Store,
  agent_id: string,
  rows: TeamRows,
  member_id: string,
): Promise<void> {
  await store.write((tx) =>
    tx.run(
      tx.sql
        .updateTable('agents')
        .set({ ...rows, member_id })
        .where('id', '=', agent_id),
    ),
  );
}

export async function addUser(
  store: Store,
  user: { id: string; username: string; role?: 'root' | 'user' },
): Promise<void> {
  const rest = { password_hash: '', created_at: 0, updated_at: 0 };
  await store.write((tx) =>
    tx.run(tx.sql.insertInto('users').values({ role: 'user' as const, ...user, ...rest })),
  );
}
