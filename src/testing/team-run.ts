/** A team with a run, as rows, where a test is not about how they come to be. */
import { newId } from '../base/ids.ts';
import type { RunStatus } from '../domain/run.ts';
import type { MemberAgent, TeamSpec } from '../domain/team.ts';
import type { Caller } from '../domain/user.ts';
import type { Facts } from '../flow/facts.ts';
import { findRun, insertRun, type RunRow, updateRun } from '../store/runs.ts';
import type { Store, Tx } from '../store/store.ts';
import { insertTask } from '../store/tasks.ts';
import { insertTeam } from '../store/teams.ts';

/** An agent that speaks ACP, as far as a spec says. */
export const SPEAKS: MemberAgent = {
  command: 'true',
  argv: null,
  preset: null,
  protocol: 'acp',
  node_id: 'main',
  workdir: null,
  worktree_mode: 'use_existing',
  worktree_repo: null,
  env: {},
};

/** Members by id; null: driven from outside. The first one leads. */
export function specOf(members: Record<string, MemberAgent | null>): TeamSpec {
  return {
    spec_version: 1,
    entrypoint: { type: 'task' },
    members: Object.entries(members).map(([member_id, agent]) => ({
      ...{ member_id, agent, description: '', skills: [], prompt: '' },
    })),
    leader_member_id: Object.keys(members)[0]!,
    steps: [],
    review_route: 'human',
    max_rounds: 20,
  };
}

/** Makes a user with a name and a role, where there is none. */
export function addUser(tx: Tx, { user_id: id, username, role }: Caller): void {
  const row = { id, username, role, password_hash: '', created_at: 0, updated_at: 0 };
  tx.run(
    tx.sql
      .insertInto('users')
      .values(row)
      .onConflict((conflict) => conflict.doNothing()),
  );
}

/** A running run in a new team of `owner`'s. */
export function addRun(store: Store, owner: Caller, spec: TeamSpec, humans: Caller[] = []): Promise<RunRow> {
  return store.write((tx) => {
    for (const user of [owner, ...humans]) addUser(tx, user);
    const id = newId('run');
    const common = { description: '', created_by: owner.user_id, created_at: 0, version: 1 };
    const team_id = newId('team');
    const team_num = insertTeam(tx, {
      ...common,
      ...{ id: team_id, name: team_id, spec: JSON.stringify(spec), updated_at: 0 },
    });
    for (const { user_id } of humans) {
      tx.run(tx.sql.insertInto('team_humans').values({ team_num, user_id }));
    }
    const task_num = insertTask(tx, {
      ...common,
      ...{
        id: newId('task'),
        team_num,
        title: 'task',
        status: 'in_progress',
        conversation_id: newId('conv'),
      },
      updated_at: 0,
    });
    const { description: _, ...rest } = common;
    insertRun(tx, {
      ...rest,
      ...{ id, team_num, number: 1, task_num, status: 'running', spec: JSON.stringify(spec), input: '{}' },
      ...{ attempt: 1, mode: 'outside', leader: 'unasked', rounds: 0, steps_seen: 0 },
    });
    return findRun(tx, id)!;
  });
}

/** What becomes of a run, and that it is told. */
export function changeRun(
  store: Store,
  facts: Facts,
  run: RunRow,
  changes: { status?: RunStatus; attempt?: number },
): Promise<RunRow> {
  return store.write((tx) => {
    updateRun(tx, run.num, changes);
    const { status, attempt } = findRun(tx, run.id)!;
    facts.record(tx, 'run_changed', run.id, { run_id: run.id, status, attempt });
    return findRun(tx, run.id)!;
  });
}
