/** One run: its steps, timeline and members, which share one selection, and panels of other features. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { TriangleAlert } from 'lucide-react';
import { type ReactNode, useEffect, useMemo, useRef, useState } from 'react';
import { isRunOver, runTitle } from '../../../features/runs/rules/run.ts';
import { keys } from '../../api/keys.ts';
import { type RunRecord, runMembersQuery, runQuery, stepsQuery, teamQuery } from '../../api/queries.ts';
import { features } from '../../features.ts';
import { Deleted } from '../../ui/deleted.tsx';
import { useHandheld, useNarrow, useReducedMotion } from '../../ui/media.ts';
import { Page } from '../../ui/page.tsx';
import { Screen } from '../../ui/screen.tsx';
import { QueryState, Skeleton } from '../../ui/states.tsx';
import { Truncated } from '../../ui/truncated.tsx';
import type { WaitingItem } from '../../waiting/queue.ts';
import { useWaiting } from '../../waiting/use-waiting.ts';
import { useAddStepDialog } from './add-step.tsx';
import { RunChanges } from './changes.tsx';
import {
  likelyStep,
  type MembersRecord,
  type ShownStepRecord,
  type StepRecord,
  toShownSteps,
  toTimedWaits,
  waitedFor,
} from './facts.ts';
import { MemberPanel } from './member-panel.tsx';
import { Members } from './members.tsx';
import { RunProgress } from './progress.tsx';
import { Questions } from './questions.tsx';
import { RunButtons } from './run-buttons.tsx';
import { RunStatus } from './status.tsx';
import { StepPanel } from './step-panel.tsx';
import { StepsView } from './steps-view.tsx';
import type { TimedWait } from './timeline.ts';
import { Timeline } from './timeline-view.tsx';
import { Json } from './value.tsx';

const run_panels = features.flatMap(({ run_panel = [] }) => run_panel);

const runs_page = { to: '/runs', label: 'runs' };

const NO_STEPS: readonly StepRecord[] = [];

export interface Selection {
  step?: string | undefined;
  member?: string | undefined;
}

export function Run() {
  const { run_id } = useParams({ from: '/app/teams/$team_id/runs/$run_id' });
  const run = useQuery(runQuery(run_id));
  if (run.data) return <RunScreen key={run_id} run={run.data} error={run.error} />;
  return (
    <Screen title="Run" back={runs_page}>
      <QueryState read={run} back={runs_page}>
        {() => null}
      </QueryState>
    </Screen>
  );
}

/** What waits for the user in the run. `waits`: what its members wait and waited for. */
function useWaitingIn(run_id: string): { waiting: readonly WaitingItem[]; waits: readonly TimedWait[] } {
  const { items } = useWaiting();
  return useMemo(() => {
    const own = items.filter((item) => item.run_id === run_id);
    return { waiting: own.filter(({ open }) => open), waits: toTimedWaits(own) };
  }, [items, run_id]);
}

/**
 * The selection and the view, which are part of the URL. `chosen`: what the user selected last, a new object each time. `pin`
 * selects what is shown already, so that it stays while the user works with it.
 */
function useSelection() {
  const search = useSearch({ from: '/app/teams/$team_id/runs/$run_id' });
  const navigate = useNavigate({ from: '/teams/$team_id/runs/$run_id' });
  const [chosen, setChosen] = useState<Selection>({});
  const pin = (next: Selection) =>
    void navigate({
      search: (now) => ({ ...now, step: undefined, member: undefined, ...next }),
      replace: true,
    });
  const select = (next: Selection) => {
    setChosen(next);
    pin(next);
  };
  const setView = (view: 'graph' | 'table') =>
    void navigate({ search: (now) => ({ ...now, view }), replace: true });
  return { search, chosen, select, pin, setView };
}

function RunScreen({ run, error }: { run: RunRecord; error: unknown }) {
  const { id: run_id, team_id } = run;
  const { search, chosen, select, pin, setView } = useSelection();
  const live = !isRunOver(run);
  const team = useQuery(teamQuery(team_id));
  const team_name = team.data?.name ?? (team.error ? team_id : null);
  const members = useQuery(runMembersQuery(run_id, live));
  const { waiting, waits } = useWaitingIn(run_id);
  const { read, steps, shown } = useSteps(run, waiting);

  const shown_step = chosenStep(shown, search);
  const step = steps.find(({ step_key }) => step_key === shown_step?.step_key);
  const member_id =
    step?.member_id ?? search.member ?? run.spec.leader_member_id ?? run.spec.members[0]?.member_id;
  const selected = { step: step?.step_key, member: member_id };
  const onUse = () => pin(step ? { step: step.step_key } : { member: member_id });
  const needs_you = shown_step?.status === 'needs_you';
  const details = step && <StepDetails {...{ run, step, needs_you, chosen, onUse }} />;
  const is_narrow = useNarrow();
  const add_step = useAddStepDialog(run, steps, (step) => select({ step }));
  return (
    <Screen
      title={team_name === null ? `Run ${run.number}` : `Run ${run.number} · ${team_name}`}
      back={runs_page}
      heading={
        <Heading {...{ run, team_name }} needs_you={waiting.length > 0} waits_for={waitedFor(shown)} />
      }
      // Which commands apply depends on the steps.
      actions={read.data && <RunButtons run={run} steps={read.data} />}
    >
      <Deleted what="run" error={error} />
      <Page width="full" className="gap-3!">
        <RunProgress run={run} steps={steps} />
        <Questions items={waiting} team={team.data?.name} />
        <Notes run={run} />
        {!live && <Result run={run} />}
        <RunChanges run={run} />
        {read.data === undefined ? (
          <QueryState read={read}>{() => <Skeleton rows={4} />}</QueryState>
        ) : steps.length > 0 ? (
          <StepsView
            steps={shown}
            selected={selected.step}
            onSelect={(key) => select({ step: key })}
            view={search.view}
            onView={setView}
            adding={live && add_step.button}
          />
        ) : (
          <Members
            members={members}
            run={run}
            waiting={waiting}
            selected={member_id}
            onSelect={(item) => select({ member: item })}
            adding={live && add_step.button}
          />
        )}
        {is_narrow && details}
        <div className="grid min-w-0 grid-cols-1 gap-3 xl:grid-cols-[minmax(0,3fr)_minmax(0,2fr)]">
          <div className="flex min-w-0 flex-col gap-3">
            <Timeline run={run} steps={shown} waits={waits} selected={selected} onSelect={select} />
            <Input run={run} />
          </div>
          <Side
            {...{ run, step, member_id, onUse }}
            details={!is_narrow && details}
            members={members.data}
            onMember={(item) => select({ member: item })}
          />
        </div>
      </Page>
      {add_step.dialog}
    </Screen>
  );
}

/** The selected step. On phones, it comes into view when the user chooses it, because it may be below the screen. */
function StepDetails({
  run,
  step,
  needs_you,
  chosen,
  onUse,
}: {
  run: RunRecord;
  step: StepRecord;
  /** The step or its agent waits for the user. */
  needs_you: boolean;
  /** See `useSelection`. */
  chosen: Selection;
  onUse: () => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const is_phone = [useHandheld(), useNarrow()].includes(true);
  const behavior = useReducedMotion() ? 'auto' : 'smooth';
  const { step_key } = step;
  // biome-ignore lint/correctness/useExhaustiveDependencies: only after a choice
  useEffect(() => {
    if (is_phone && chosen.step === step_key) box.current?.scrollIntoView({ block: 'nearest', behavior });
  }, [chosen, step_key]);
  return (
    <div ref={box} className="min-w-0 scroll-my-3">
      <StepPanel key={step_key} run={run} step={step} needs_you={needs_you} onUse={onUse} />
    </div>
  );
}

/** The selected step and member, and the panels of other features. */
function Side({
  run,
  step,
  details,
  member_id,
  members,
  onMember,
  onUse,
}: {
  run: RunRecord;
  step: StepRecord | undefined;
  /** Those of the step, unless they are elsewhere. */
  details: ReactNode;
  member_id: string | undefined;
  members: MembersRecord | undefined;
  onMember: (member_id: string) => void;
  onUse: () => void;
}) {
  return (
    <div className="flex min-w-0 flex-col gap-3">
      {details}
      {member_id !== undefined && <MemberPanel {...{ run, member_id, step, members, onMember, onUse }} />}
      {run_panels.map((part, at) => {
        const Panel = part.view();
        // biome-ignore lint/suspicious/noArrayIndexKey: the list never changes
        return Panel && <Panel key={at} {...{ run, members, member_id, onUse }} live={!isRunOver(run)} />;
      })}
    </div>
  );
}

/** `shown`: the steps as all views show them. */
function useSteps({ id: run_id, team_id, attempt, spec }: RunRecord, waiting: readonly WaitingItem[]) {
  const queries = useQueryClient();
  // A restart removes added steps, which no stream reports.
  // biome-ignore lint/correctness/useExhaustiveDependencies: when the attempt changes
  useEffect(() => {
    void queries.invalidateQueries({ queryKey: keys.steps(run_id) });
  }, [attempt, run_id, queries]);
  const read = useQuery(stepsQuery(team_id, run_id));
  const { data: steps = NO_STEPS } = read;
  const shown = useMemo(() => toShownSteps(steps, waiting, spec), [steps, waiting, spec]);
  return { read, steps, shown };
}

function Heading({
  run,
  team_name,
  needs_you,
  waits_for,
}: {
  run: RunRecord;
  /** Null while the team loads. */
  team_name: string | null;
  needs_you: boolean;
  /** See `waitedFor`. */
  waits_for: string | null;
}) {
  return (
    <span className="flex min-w-0 flex-wrap items-center gap-x-3">
      <span className="flex min-w-0">
        <span className="whitespace-nowrap">Run {run.number}</span>
        {team_name !== null && (
          <>
            <span className="whitespace-pre"> · </span>
            <Link
              to="/teams/$team_id"
              params={{ team_id: run.team_id }}
              dir="auto"
              className="truncate text-left hover:underline"
            >
              {team_name}
            </Link>
          </>
        )}
      </span>
      <span className="flex min-w-0 items-center gap-2 font-normal text-base">
        <RunStatus status={run.status} needs_you={needs_you} />
        {waits_for !== null && (
          <Truncated className="min-w-0 text-needs text-sm" title={`Waits for ${waits_for}`}>
            Waits for {waits_for}
          </Truncated>
        )}
      </span>
    </span>
  );
}

/** The title of the run, what needs attention, and its error. */
function Notes({ run }: { run: RunRecord }) {
  const title = runTitle(run.input);
  return (
    <>
      {title && (
        <p dir="auto" className="break-words text-prose">
          {title}
        </p>
      )}
      {run.attention && (
        <p role="status" className="flex items-start gap-2 rounded-md border border-line bg-marked px-3 py-2">
          <TriangleAlert aria-hidden className="mt-0.5 size-4 shrink-0 text-needs" />
          <span className="min-w-0 break-words">{run.attention}</span>
        </p>
      )}
      {run.error && (
        <p className="break-words rounded-md border border-line bg-removed px-3 py-2 text-failed">
          {run.error}
        </p>
      )}
    </>
  );
}

/** The step in the URL, else the likeliest one of the selected member, else the likeliest of all. */
function chosenStep(
  steps: readonly ShownStepRecord[],
  { step, member }: Selection,
): ShownStepRecord | undefined {
  if (step !== undefined) return steps.find(({ step_key }) => step_key === step);
  if (member !== undefined) return likelyStep(steps.filter(({ member_id }) => member_id === member));
  return likelyStep(steps);
}

function Result({ run }: { run: RunRecord }) {
  if (run.output === null || run.output === undefined) return null;
  return <Json label="Result" value={run.output} open />;
}

function Input({ run }: { run: RunRecord }) {
  return Object.keys(run.input).length > 0 && <Json label="Input" value={run.input} />;
}
