/** Functions on the records of a run. Pure. */

import { runMode } from '../../../features/runs/rules/run.ts';
import type { Answered } from '../../api/client.ts';
import type { AgentRecord, RunRecord } from '../../api/queries.ts';
import { table } from '../../table.ts';
import { costText } from '../../ui/usage.ts';
import type { WaitingItem } from '../../waiting/queue.ts';
import type { TimedWait } from './timeline.ts';

export type StepRecord = Answered<'listSteps'>[number];
/** A step as the views of all steps show it. */
export type ShownStepRecord = Omit<StepRecord, 'status'> & {
  status: StepRecord['status'] | 'needs_you';
  /** What a ready step waits for that no agent does: `press (external)`; else null. */
  waits_for: string | null;
};
export type MembersRecord = Answered<'listRunMembers'>;
export type MemberRecord = MembersRecord['members'][number];

export type RunCommand = 'cancel' | 'resume' | 'restart' | 'complete' | 'fail';

/** The commands that a run accepts now, the most likely one first. A run whose steps ask continues with their answers. */
export function runCommands(
  run: Pick<RunRecord, 'status' | 'spec'>,
  { questions }: { questions: number },
): RunCommand[] {
  switch (run.status) {
    case 'completed':
      return ['restart'];
    case 'failed':
    case 'cancelled':
      return ['resume', 'restart'];
    case 'input_required':
      return [
        ...(questions === 0 ? (['resume'] as const) : []),
        ...(isLedExternally(run) ? (['complete', 'fail'] as const) : []),
        'cancel',
      ];
    default:
      return [...(isLedExternally(run) ? (['complete', 'fail'] as const) : []), 'cancel'];
  }
}

/** People complete or fail such a run, also after they have added steps. */
function isLedExternally({ spec }: Pick<RunRecord, 'spec'>): boolean {
  return runMode(spec) === 'outside';
}

/** How many steps wait for an answer. */
export function countQuestions(steps: readonly Pick<StepRecord, 'status'>[]): number {
  return steps.filter(({ status }) => status === 'input_required').length;
}

/** Whether a restart of the run repeats a step. */
export function hasStarted(steps: readonly Pick<StepRecord, 'attempt'>[]): boolean {
  return steps.some(({ attempt }) => attempt > 0);
}

export type StepCommand = 'start' | 'complete' | 'fail';

/** The commands that a step accepts now. `main`: those that its member cannot give itself. */
export function stepCommands(
  step: Pick<StepRecord, 'status' | 'member_id'>,
  spec: RunRecord['spec'],
): { main: StepCommand[]; more: StepCommand[] } {
  const is_external = !spec.members.find(({ member_id }) => member_id === step.member_id)?.agent;
  switch (step.status) {
    case 'ready':
      return is_external
        ? { main: ['start', 'complete', 'fail'], more: [] }
        : { main: [], more: ['complete', 'fail'] };
    case 'running':
      return is_external
        ? { main: ['complete', 'fail'], more: [] }
        : { main: [], more: ['complete', 'fail'] };
    // The answer is given in the card of its question.
    case 'input_required':
      return { main: [], more: ['complete', 'fail'] };
    default:
      return { main: [], more: [] };
  }
}

const rank = table({
  needs_you: 0,
  input_required: 0,
  failed: 1,
  running: 2,
  ready: 3,
  pending: 4,
  completed: 5,
  skipped: 6,
  cancelled: 7,
});

/** The step to show if none is selected: one that needs input, then a failed one, then a running one. */
export function likelyStep<T extends Pick<ShownStepRecord, 'status'>>(steps: readonly T[]): T | undefined {
  return steps.reduce<T | undefined>(
    (best, step) => (best === undefined || (rank[step.status] ?? 9) < (rank[best.status] ?? 9) ? step : best),
    undefined,
  );
}

/** A step needs the user if it asks them, or if it runs and its agent waits for them. `waiting`: what waits in the run. */
export function toShownSteps(
  steps: readonly StepRecord[],
  waiting: readonly WaitingItem[],
  spec: RunRecord['spec'],
): readonly ShownStepRecord[] {
  const agents = new Set(waiting.map(({ agent_id }) => agent_id));
  const questioned = new Set(waiting.map((item) => (item.kind === 'question' ? item.step.step_key : null)));
  const external = new Set(
    spec.members.filter(({ agent }) => agent === null).map(({ member_id }) => member_id),
  );
  return steps.map((step) => {
    const { status, step_key, agent_id, member_id } = step;
    const needs_you =
      status === 'running'
        ? agent_id !== null && agents.has(agent_id)
        : status === 'input_required' && questioned.has(step_key);
    const waits = status === 'ready' && external.has(member_id);
    return {
      ...step,
      ...(needs_you && { status: 'needs_you' }),
      waits_for: waits ? `${member_id} (external)` : null,
    };
  });
}

/** How many members without an agent are named, at most. */
const WAITED_NAMED = 3;

/** Whom the run waits for besides agents: `press, proof (external)`, or `a, b, c (external) and 2 more`; null if nobody. */
export function waitedFor(steps: readonly Pick<ShownStepRecord, 'member_id' | 'waits_for'>[]): string | null {
  const members = [
    ...new Set(steps.filter(({ waits_for }) => waits_for !== null).map(({ member_id }) => member_id)),
  ];
  if (members.length === 0) return null;
  const more = members.length - WAITED_NAMED;
  return `${members.slice(0, WAITED_NAMED).join(', ')} (external)${more > 0 ? ` and ${more} more` : ''}`;
}

/** The requests of members, for the timeline. The questions of steps are in the records of the steps. */
export function toTimedWaits(items: readonly WaitingItem[]): TimedWait[] {
  return items.flatMap((item) => {
    const member_id = memberOfItem(item);
    return member_id === null ? [] : [{ member_id, ...item }];
  });
}

function memberOfItem(item: WaitingItem): string | null {
  switch (item.kind) {
    case 'permission':
      return memberOfActor(item.review.origin_actor_id);
    case 'elicitation':
      return memberOfActor(item.elicitation.origin_actor_id);
    case 'sign_in':
      return item.agent.member_id;
    case 'question':
    case 'run':
      return null;
  }
}

function memberOfActor(actor_id: string | null): string | null {
  return actor_id?.replace(/@[^@]*$/, '') ?? null;
}

export type RunFilter = 'needs_you' | RunRecord['status'];

/** What the list of runs shows and counts for a run. `waiting`: ids of the runs in which something waits for the user. */
export function shownStatus(
  { id, status }: Pick<RunRecord, 'id' | 'status'>,
  waiting: ReadonlySet<string>,
): RunFilter {
  return waiting.has(id) ? 'needs_you' : status;
}

/** Whether the list of runs shows the run with this filter; undefined: all. Links may name any status of the API. */
export function matchesFilter(
  run: Pick<RunRecord, 'id' | 'status'>,
  filter: string | undefined,
  waiting: ReadonlySet<string>,
): boolean {
  if (filter === undefined || shownStatus(run, waiting) === filter) return true;
  // Such a run usually needs the user, and has no other filter of its own.
  return filter === 'input_required' && run.status === filter;
}

/** The number of steps by status, in order of attention. */
export function countStatuses(steps: readonly Pick<ShownStepRecord, 'status'>[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const { status } of steps) counts.set(status, (counts.get(status) ?? 0) + 1);
  return [...counts].sort(([a], [b]) => (rank[a] ?? 9) - (rank[b] ?? 9));
}

/** What agents have cost, as they report it: `$0.42`, one text per currency; empty if none reports any. */
export function sumCosts(agents: readonly Pick<AgentRecord, 'summary'>[]): string[] {
  const sums = new Map<string, number>();
  for (const { summary } of agents) {
    const cost = summary.usage?.cost;
    if (cost) sums.set(cost.currency, (sums.get(cost.currency) ?? 0) + cost.amount);
  }
  return [...sums].flatMap(([currency, amount]) => costText({ currency, amount }) ?? []);
}

/** Formats JSON; text stays as it is. */
export function pretty(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}
