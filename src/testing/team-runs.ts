/**
 * Teams and runs for tests: `beginRun` starts a run in a `FeaturesFixture`, and `addRun` only inserts its rows, for tests that
 * are not about its execution.
 */
import { expect, vi } from 'vitest';
import { newId } from '../base/ids.ts';
import type { Caller } from '../features/accounts/rules.ts';
import { createRun, createTask } from '../features/runs/creation.ts';
import { agentsOfSteps } from '../features/runs/queries/assignments.ts';
import { findRun, insertRun, parseSpec, type RunRow, updateRun } from '../features/runs/queries/runs.ts';
import { insertSteps, listRunSteps, toStep } from '../features/runs/queries/steps.ts';
import { insertTask } from '../features/runs/queries/tasks.ts';
import type { GraphEvent } from '../features/runs/rules/graph.ts';
import type { RunStatus, Step } from '../features/runs/rules/run.ts';
import { stepRow } from '../features/runs/run-commands.ts';
import { insertTeam, putHumans, teamOfNum } from '../features/teams/queries.ts';
import {
  defaultMember,
  type Member,
  type MemberAgent,
  memberKind,
  type StepSpec,
  type TeamSpec,
} from '../features/teams/rules/team.ts';
import type { Store, Tx } from '../store/store.ts';
import type { Facts } from '../work/facts.ts';
import { ANA, type FeaturesFixture, SOON } from './features-fixture.ts';

function agentOf(command: string, more: Partial<MemberAgent>): MemberAgent {
  const defaults = { argv: null, preset: null, protocol: 'plain', node_id: 'main', env: {} } as const;
  const place = { workdir: null, worktree_mode: 'use_existing', worktree_repo: null } as const;
  return { permission_mode: 'ask', ...defaults, ...place, command, ...more };
}

/** The definition of an agent that speaks ACP. */
export const ACP_AGENT: MemberAgent = agentOf('true', { protocol: 'acp' });

/** A member whose steps run `command`. */
export function plainMember(member_id: string, command: string, more: Partial<MemberAgent> = {}): Member {
  return { member_id, description: '', skills: [], prompt: '', agent: agentOf(command, more) };
}

export interface TeamRequest {
  run_id?: string;
  /** The run's creator. Default: ANA, who creates the team. */
  started_by?: Caller;
  members: Member[];
  steps?: (Partial<StepSpec> & { step_key: string })[];
  leader?: string;
  input?: Record<string, unknown>;
  max_rounds?: number;
  /** For members without a workdir. Null: their nodes choose it. Default: the folder of the fixture. */
  workdir?: string | null;
}

/** Starts a run of a new team; returns its id. */
export async function beginRun(fixture: FeaturesFixture, request: TeamRequest): Promise<string> {
  const { workdir = fixture.folder } = request;
  const members = request.members.map((member) => ({
    ...member,
    agent: member.agent && { ...member.agent, workdir: member.agent.workdir ?? workdir },
  }));
  const leader_member_id = request.leader ?? null;
  const member_id = defaultMember({ leader_member_id, members });
  const defaults = { member_id, depends_on: [], when: 'on_success', prompt: '', input: null } as const;
  const steps = (request.steps ?? []).map((step) => ({
    ...defaults,
    ...{ depends_on: [], timeout_seconds: null, max_attempts: 1 },
    ...step,
  }));
  const spec: TeamSpec = {
    ...{ spec_version: 1, entrypoint: { type: 'task' }, review_route: 'human' },
    ...{ members, leader_member_id, steps, max_rounds: request.max_rounds ?? 20 },
  };
  const id = request.run_id ?? newId('run');
  await fixture.store.write(async (tx) => {
    const started_by = request.started_by ?? ANA;
    await addUser(tx, ANA);
    await addUser(tx, started_by);
    const { user_id: created_by } = ANA;
    const names = { name: newId('team'), description: '', spec: JSON.stringify(spec), version: 1 };
    const num = await insertTeam(tx, {
      id: newId('team'),
      ...names,
      created_by,
      created_at: 0,
      updated_at: 0,
    });
    if (started_by !== ANA) await putHumans(tx, num, [started_by.user_id]);
    const common = { team: (await teamOfNum(tx, num))!, created_by, now: fixture.clock.now() };
    const task_num = await createTask(tx, { team_num: num, title: 'task', created_by, now: common.now });
    await createRun(
      tx,
      { scheduler: fixture.scheduler, nodes: fixture.core.nodes },
      { ...common, id, task_num, input: request.input ?? {}, created_by: started_by.user_id },
    );
  });
  return id;
}

/** Creates the caller's user if it does not exist. */
export async function addUser(tx: Tx, { user_id: id, username, role }: Caller): Promise<void> {
  const row = { id, username, role, password_hash: '', created_at: 0, updated_at: 0 };
  await tx.run(
    tx.sql
      .insertInto('users')
      .values(row)
      .onConflict((conflict) => conflict.doNothing()),
  );
}

/** Adds a step to a run, as its leader can. */
export async function addToRun(
  fixture: FeaturesFixture,
  run_id: string,
  step: { step_key: string; member_id: string; depends_on?: string[]; prompt?: string },
): Promise<void> {
  await fixture.store.write(async (tx) => {
    const run = (await findRun(tx, run_id))!;
    const none = { when: 'on_success', prompt: '', input: null } as const;
    const bounds = { depends_on: [], timeout_seconds: null, max_attempts: 1 };
    const spec: StepSpec = { ...none, ...bounds, ...step };
    const kind = memberKind(parseSpec(run).members.find(({ member_id }) => member_id === step.member_id)!);
    await insertSteps(tx, run.num, [{ ...stepRow(spec, kind), added: 1 }]);
    await fixture.scheduler.apply(tx, run.num, { kind: 'step_added', step: { ...spec, kind } });
  });
}

/** Applies an event to the graph of a run. */
export async function applyEvent(fixture: FeaturesFixture, run_id: string, event: GraphEvent): Promise<void> {
  await fixture.store.write(async (tx) =>
    fixture.scheduler.apply(tx, (await findRun(tx, run_id))!.num, event),
  );
}

export function runOf(fixture: FeaturesFixture, run_id: string): Promise<RunRow> {
  return fixture.store.read(async (reader) => (await findRun(reader, run_id))!);
}

export function stepsOfRun(fixture: FeaturesFixture, run_id: string): Promise<Record<string, Step>> {
  return fixture.store.read(async (reader) => {
    const run = (await findRun(reader, run_id))!;
    const agents = await agentsOfSteps(reader, run);
    const steps = (await listRunSteps(reader, run.num)).map((row) =>
      toStep(row, run_id, agents.get(row.step_key) ?? null),
    );
    return Object.fromEntries(steps.map((step) => [step.step_key, step]));
  });
}

export async function untilRun(
  fixture: FeaturesFixture,
  run_id: string,
  status: RunRow['status'],
): Promise<RunRow> {
  await vi.waitFor(async () => expect((await runOf(fixture, run_id)).status).toBe(status), SOON);
  return runOf(fixture, run_id);
}

// --- rows of runs that are not executed -------------------------------------------------------------------------------

/** `members`: by id, the first one is the leader; null: an outside member. */
export function specWith(members: Record<string, MemberAgent | null>): TeamSpec {
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

/** Inserts a running run of a new team of `owner`. */
export function addRun(store: Store, owner: Caller, spec: TeamSpec, humans: Caller[] = []): Promise<RunRow> {
  return store.write(async (tx) => {
    for (const user of [owner, ...humans]) await addUser(tx, user);
    const id = newId('run');
    const common = { description: '', created_by: owner.user_id, created_at: 0, version: 1 };
    const team_id = newId('team');
    const team_num = await insertTeam(tx, {
      ...common,
      ...{ id: team_id, name: team_id, spec: JSON.stringify(spec), updated_at: 0 },
    });
    for (const { user_id } of humans) {
      await tx.run(tx.sql.insertInto('team_humans').values({ team_num, user_id }));
    }
    const task_num = await insertTask(tx, {
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
    await insertRun(tx, {
      ...rest,
      ...{ id, team_num, number: 1, task_num, status: 'running', spec: JSON.stringify(spec), input: '{}' },
      ...{ attempt: 1, mode: 'outside', leader: 'unasked', rounds: 0, steps_seen: 0 },
    });
    return (await findRun(tx, id))!;
  });
}

/** Changes a run, and records the fact. */
export function changeRun(
  store: Store,
  facts: Facts,
  run: RunRow,
  changes: { status?: RunStatus; attempt?: number },
): Promise<RunRow> {
  return store.write(async (tx) => {
    updateRun(tx, run.num, changes);
    const { status, attempt } = (await findRun(tx, run.id))!;
    await facts.record(tx, 'run_changed', run.id, { run_id: run.id, status, attempt });
    return (await findRun(tx, run.id))!;
  });
}

/** Advances the clock, and lets the time limits of steps pass that are due then. The scheduler sleeps by the real clock. */
export async function passTimeLimits(fixture: FeaturesFixture, ms: number, late_ms = 0): Promise<void> {
  fixture.clock.advance(ms);
  const due = await fixture.store.read((reader) =>
    reader.all(
      reader.sql
        .selectFrom('timers')
        .select(['ref', 'payload'])
        .where('kind', '=', 'step_timeout')
        .where('due_at', '<=', fixture.clock.now()),
    ),
  );
  const fire = fixture.runs.timers!.step_timeout!;
  for (const { ref, payload } of due) {
    await fixture.store.write(async (tx) => {
      await fixture.core.timers.clear(tx, 'step_timeout', ref);
      const timer = { kind: 'step_timeout', ref, payload: JSON.parse(payload) } as const;
      await fire(tx, { ...timer, due_at_ms: fixture.clock.now() - late_ms });
    });
  }
}
