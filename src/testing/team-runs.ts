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
import { beginRun as startRun, taskOfRun } from '../services/teams/beginning.ts';
import { stepRow } from '../services/teams/words.ts';
import { agentsOfSteps, findRun, insertSteps, type RunRow, specOf, stepsOf, toStep } from '../store/runs.ts';
import type { Tx } from '../store/store.ts';
import { insertTeam, teamOfNum } from '../store/teams.ts';
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
  const id = asked.run_id ?? newId('run');
  await room.store.write((tx) => {
    insertUser(tx);
    const { user_id: created_by } = ANA;
    const names = { name: newId('team'), description: '', spec: JSON.stringify(spec), version: 1 };
    const num = insertTeam(tx, { id: newId('team'), ...names, created_by, created_at: 0, updated_at: 0 });
    const begun = { team: teamOfNum(tx, num)!, input: asked.input ?? {}, created_by, now: room.clock.now() };
    const { num: task_num } = taskOfRun(tx, begun);
    startRun(tx, room.progress, { ...begun, id, task_num });
  });
  return id;
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
    const none = { when: 'on_success', prompt: '', input: null } as const;
    const bounds = { depends_on: [], timeout_seconds: null, max_attempts: 1 };
    const whole: StepSpec = { ...none, ...bounds, ...step };
    const kind = memberKind(specOf(run).members.find(({ member_id }) => member_id === step.member_id)!);
    insertSteps(tx, run.num, [{ ...stepRow(whole, kind), added: 1 }]);
    room.progress.apply(tx, run.num, { kind: 'step_added', step: { ...whole, kind } });
  });
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
