/** What a run's records say about it, for people. Pure. */
import type { Answered } from '../../api/client.ts';
import type { RunRecord } from '../../api/queries.ts';

export type StepRecord = Answered<'listSteps'>[number];
export type MembersRecord = Answered<'listRunMembers'>;

/** What a run was asked for, in one line. */
export function titleOf({ input }: Pick<RunRecord, 'input'>): string | null {
  for (const value of [input.title, input.prompt, input.task]) {
    if (typeof value === 'string' && value.trim() !== '') return value.trim().split('\n')[0]!;
  }
  return null;
}

export type RunWord = 'cancel' | 'resume' | 'restart' | 'complete' | 'fail';

/** What can be said to a run now, the most likely first. */
export function wordsFor(run: Pick<RunRecord, 'status' | 'spec'>, steps: number): RunWord[] {
  switch (run.status) {
    case 'completed':
      return ['restart'];
    case 'failed':
    case 'cancelled':
      return ['resume', 'restart'];
    case 'input_required':
      return ['resume', ...(isLedFromOutside(run, steps) ? (['complete', 'fail'] as const) : []), 'cancel'];
    default:
      return [...(isLedFromOutside(run, steps) ? (['complete', 'fail'] as const) : []), 'cancel'];
  }
}

/** Without steps and without an agent that leads, somebody has to say what came of the run. */
export function isLedFromOutside({ spec }: Pick<RunRecord, 'spec'>, steps: number): boolean {
  if (steps > 0) return false;
  const leader = spec.members.find(({ member_id }) => member_id === spec.leader_member_id);
  return !leader?.agent;
}

export type StepWord = 'start' | 'complete' | 'fail' | 'resume';

/** What can be said to a step now; `often` are those that its member cannot say itself. */
export function stepWords(
  step: Pick<StepRecord, 'status' | 'member_id'>,
  spec: RunRecord['spec'],
): { often: StepWord[]; seldom: StepWord[] } {
  const outside = !spec.members.find(({ member_id }) => member_id === step.member_id)?.agent;
  switch (step.status) {
    case 'ready':
      return outside
        ? { often: ['start', 'complete', 'fail'], seldom: [] }
        : { often: [], seldom: ['complete', 'fail'] };
    case 'running':
      return outside
        ? { often: ['complete', 'fail'], seldom: [] }
        : { often: [], seldom: ['complete', 'fail'] };
    case 'input_required':
      return { often: ['resume'], seldom: ['complete', 'fail'] };
    default:
      return { often: [], seldom: [] };
  }
}

const rank: Record<string, number> = {
  input_required: 0,
  failed: 1,
  running: 2,
  ready: 3,
  pending: 4,
  completed: 5,
  skipped: 6,
  cancelled: 7,
};

/** Which step a person wants to see who chose none: what needs them, what failed, what goes on. */
export function likelyStep(steps: readonly StepRecord[]): StepRecord | undefined {
  return steps.reduce<StepRecord | undefined>(
    (best, step) => (best === undefined || (rank[step.status] ?? 9) < (rank[best.status] ?? 9) ? step : best),
    undefined,
  );
}

/** How many steps there are of each status, in the order of attention. */
export function countsOf(steps: readonly Pick<StepRecord, 'status'>[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const { status } of steps) counts.set(status, (counts.get(status) ?? 0) + 1);
  return [...counts].sort(([a], [b]) => (rank[a] ?? 9) - (rank[b] ?? 9));
}

/** `api@team_1` is `api`, `user:ana` is `ana`. */
export function actorName(actor_id: string): string {
  return actor_id.startsWith('user:') ? actor_id.slice(5) : actor_id.replace(/@[^@]*$/, '');
}

/** The actors that a person speaks for in a run: themselves first, then members that have no agent. */
export function voicesOf(
  { spec, team_id }: Pick<RunRecord, 'spec' | 'team_id'>,
  username?: string,
): string[] {
  if (username === undefined) return [];
  const outside = spec.members.filter(({ agent }) => !agent);
  return [`user:${username}`, ...outside.map(({ member_id }) => `${member_id}@${team_id}`)];
}

/** Whom mail of a run can go to: its members, the leader first, and the people who are known to take part. */
export function actorsOf(
  { spec, team_id }: Pick<RunRecord, 'spec' | 'team_id'>,
  known?: MembersRecord,
): string[] {
  const ids = spec.members.map(({ member_id }) => member_id);
  const ordered = [spec.leader_member_id, ...ids].filter((id) => id !== null);
  const people = known ? [known.leader, ...known.members].map(({ actor_id }) => actor_id) : [];
  return [...new Set([...ordered.map((id) => `${id}@${team_id}`), ...people])];
}

/** JSON for people to read; text as it is. */
export function pretty(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}
