/** Teams and runs of tests, put straight into the tables of a `LivesRoom`, and what is known of them afterwards. */
import { expect, vi } from 'vitest';
import { newId } from '../base/ids.ts';
import type { Happened, Step } from '../domain/run.ts';
import {
  defaultMember,
  type Member,
  type MemberAgent,
  memberKind,
  type StepSpec,
  type TeamSpec,
} from '../domain/team.ts';
import {
  agentsOfSteps,
  findRun,
  insertRun,
  insertSteps,
  type RunRow,
  stepsOf,
  toStep,
} from '../store/runs.ts';
import type { Tx } from '../store/store.ts';
import { insertTask } from '../store/tasks.ts';
import { insertTeam } from '../store/teams.ts';
import { ANA, type LivesRoom, SOON } from './lives.ts';

/** A member whose steps run `command`. */
export function plainMember(member_id: string, command: string, more: Partial<MemberAgent> = {}): Member {
  const usual = { argv: null, preset: null, protocol: 'plain', node_id: 'main', env: {} } as const;
  const place = { workdir: null, worktree_mode: 'use_existing', worktree_repo: null } as const;
  const agent = { ...usual, ...place, command, ...more };
  return { member_id, description: '', skills: [], prompt: '', agent };
}

export interface AskedTeam {
  run_id?: string;
  members: Member[];
  steps?: (Partial<StepSpec> & { step_key: string })[];
  leader?: string;
  input?: Record<string, unknown>;
  max_rounds?: number;
}

/** Begins a run of a new team in the room's folder; answers the run's id. */
export async function beginRun(room: LivesRoom, asked: AskedTeam): Promise<string> {
  const members = asked.members.map((member) => ({
    ...member,
    agent: member.agent && { ...member.agent, workdir: member.agent.workdir ?? room.folder },
  }));
  const leader_member_id = asked.leader ?? null;
  const member_id = defaultMember({ leader_member_id, members });
  const usual = { member_id, depends_on: [], when: 'on_success', prompt: '', input: null } as const;
  const steps = (asked.steps ?? []).map((step) => ({
    ...usual,
    ...{ depends_on: [], timeout_seconds: null, max_attempts: 1 },
    ...step,
  }));
  const spec: TeamSpec = {
    ...{ spec_version: 1, entrypoint: { type: 'task' }, review_route: 'human' },
    ...{ members, leader_member_id, steps, max_rounds: asked.max_rounds ?? 20 },
  };
  const run_id = asked.run_id ?? newId('run');
  await room.store.write((tx) => {
    insertUser(tx);
    const made = { created_by: ANA.user_id, created_at: 0 };
    const names = { name: newId('team'), description: '', spec: JSON.stringify(spec), version: 1 };
    const team_num = insertTeam(tx, { id: newId('team'), ...names, ...made, updated_at: 0 });
    const about = { title: 't', description: '', status: 'open', conversation_id: newId('conv') } as const;
    const task_num = insertTask(tx, {
      ...{ id: newId('task'), team_num, ...about, assignee_member_id: null, version: 1 },
      ...{ ...made, updated_at: 0 },
    });
    const run_num = insertRun(tx, {
      ...{ id: run_id, team_num, number: 1, task_num, status: 'pending', spec: JSON.stringify(spec) },
      ...{ input: JSON.stringify(asked.input ?? {}), attempt: 1, version: 1, ...made },
      ...{ mode: steps.length > 0 ? 'steps' : 'leader', leader: 'unasked', rounds: 0, steps_seen: 0 },
    });
    for (const step of steps) addStep(tx, run_num, members, step, 0);
    room.progress.apply(tx, run_num, { kind: 'begun' });
  });
  return run_id;
}

function insertUser(tx: Tx): void {
  const row = {
    id: ANA.user_id,
    username: ANA.username,
    role: ANA.role,
    password_hash: '',
    created_at: 0,
    updated_at: 0,
  };
  tx.run(
    tx.sql
      .insertInto('users')
      .values(row as never)
      .onConflict((conflict) => conflict.doNothing()),
  );
}

/** Adds a step as a leader does. */
export async function addToRun(
  room: LivesRoom,
  run_id: string,
  step: { step_key: string; member_id: string; depends_on?: string[]; prompt?: string },
): Promise<void> {
  await room.store.write((tx) => {
    const run = findRun(tx, run_id)!;
    const { members } = JSON.parse(run.spec) as TeamSpec;
    const none = { when: 'on_success', prompt: '', input: null } as const;
    const bounds = { depends_on: [], timeout_seconds: null, max_attempts: 1 };
    const whole: StepSpec = { ...none, ...bounds, ...step };
    addStep(tx, run.num, members, whole, 1);
    const kind = memberKind(members.find(({ member_id }) => member_id === step.member_id)!);
    room.progress.apply(tx, run.num, { kind: 'step_added', step: { ...whole, kind } });
  });
}

function addStep(tx: Tx, run_num: number, members: readonly Member[], step: StepSpec, added: 0 | 1): void {
  const { step_key, member_id, when, prompt, input, timeout_seconds, max_attempts, depends_on } = step;
  const row = {
    ...{ step_key, member_id, when, prompt, timeout_seconds, max_attempts, added },
    kind: memberKind(members.find((one) => one.member_id === member_id)!),
    depends_on: JSON.stringify(depends_on),
    input: input === null ? null : JSON.stringify(input),
    ...{ waits_for: depends_on.length, spoiled: 0, attempt: 0, tries: 0, launched: 0 },
  } as const;
  insertSteps(tx, run_num, [{ ...row, status: 'pending' }]);
}

export async function say(room: LivesRoom, run_id: string, happened: Happened): Promise<void> {
  await room.store.write((tx) => room.progress.apply(tx, findRun(tx, run_id)!.num, happened));
}

export function runOf(room: LivesRoom, run_id: string): Promise<RunRow> {
  return room.store.read((reader) => findRun(reader, run_id)!);
}

export function stepsOfRun(room: LivesRoom, run_id: string): Promise<Record<string, Step>> {
  return room.store.read((reader) => {
    const run = findRun(reader, run_id)!;
    const agents = agentsOfSteps(reader, run);
    const steps = stepsOf(reader, run.num).map((row) =>
      toStep(row, run_id, agents.get(row.step_key) ?? null),
    );
    return Object.fromEntries(steps.map((step) => [step.step_key, step]));
  });
}

export async function untilRun(room: LivesRoom, run_id: string, status: RunRow['status']): Promise<RunRow> {
  await vi.waitFor(async () => expect((await runOf(room, run_id)).status).toBe(status), SOON);
  return runOf(room, run_id);
}
