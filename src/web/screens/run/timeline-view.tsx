/** The timeline of a run: one lane per member, with its steps and waits. Long idle periods are folded. */
import { memo, useMemo } from 'react';
import { isRunOver } from '../../../features/runs/rules/run.ts';
import type { ReviewRecord, RunRecord } from '../../api/queries.ts';
import { cx } from '../../ui/cx.ts';
import { Clock, spanText, useNow } from '../../ui/time.tsx';
import type { StepRecord } from './facts.ts';
import type { Selection } from './run.tsx';
import { assignRows, buildSpans, createScale, type Scale, type Span } from './timeline.ts';

const colors: Record<string, string> = {
  running: 'bg-running',
  completed: 'bg-completed',
  failed: 'bg-failed',
  input_required: 'bg-needs',
};

interface TimelineProps {
  run: RunRecord;
  steps: readonly StepRecord[];
  reviews: readonly ReviewRecord[];
  selected: Selection;
  onSelect: (selection: Selection) => void;
}

/** The timeline of a larger run is rendered less often. */
const MANY_STEPS = 200;

export function Timeline(props: TimelineProps) {
  const { run } = props;
  if (run.started_at === null) return null;
  if (isRunOver(run)) return <Lanes {...props} now_ms={Date.parse(run.ended_at ?? run.started_at)} />;
  return <Ticking {...props} />;
}

function Ticking(props: TimelineProps) {
  const every_ms = props.steps.length > MANY_STEPS ? 15_000 : 1000;
  const now_ms = Math.floor(useNow() / every_ms) * every_ms;
  return <Lanes {...props} now_ms={Math.max(now_ms, Date.parse(props.run.started_at!))} />;
}

const Lanes = memo(function Lanes({
  run,
  steps,
  reviews,
  selected,
  onSelect,
  now_ms,
}: TimelineProps & { now_ms: number }) {
  const start_ms = Date.parse(run.started_at!);
  const { lanes, scale, end_ms } = useMemo(() => {
    const spans = buildSpans(steps, reviews, now_ms);
    const end = spans.reduce((last, { to_ms }) => Math.max(last, to_ms), now_ms);
    const first = spans.reduce((first, { from_ms }) => Math.min(first, from_ms), start_ms);
    return {
      lanes: run.spec.members.map(({ member_id }) => ({
        member_id,
        steps: assignRows(spans.filter(({ lane, kind }) => lane === member_id && kind === 'step')),
        waits: spans.filter(({ lane, kind }) => lane === member_id && kind === 'wait'),
      })),
      scale: createScale(spans, first, end),
      end_ms: end,
    };
  }, [run, steps, reviews, now_ms, start_ms]);
  const busy = lanes.filter((lane) => lane.steps.length + lane.waits.length > 0);
  if (busy.length === 0) return null;
  return (
    <section aria-label="Timeline" className="min-w-0 rounded-md border border-line">
      <h2 className="border-line border-b px-3 py-1.5 font-medium">Timeline</h2>
      <div className="grid grid-cols-[minmax(4rem,8rem)_minmax(0,1fr)] gap-x-2 gap-y-1 px-3 py-2">
        {busy.map((lane) => (
          <Lane
            key={lane.member_id}
            member_id={lane.member_id}
            rows={lane.steps}
            waits={lane.waits}
            scale={scale}
            selected={selected}
            onSelect={onSelect}
          />
        ))}
        <span />
        <div className="relative h-5 text-muted text-xs">
          {scale.ticks.map(({ at, ms }) => (
            <span
              key={ms}
              className="absolute whitespace-nowrap max-sm:hidden"
              style={{ left: `${at * 100}%` }}
            >
              <Clock at={ms} />
            </span>
          ))}
          <span className="absolute right-0">{isRunOver(run) ? <Clock at={end_ms} /> : 'now'}</span>
        </div>
      </div>
    </section>
  );
});

function Lane({
  member_id,
  rows,
  waits,
  scale,
  selected,
  onSelect,
}: {
  member_id: string;
  rows: Span[][];
  waits: Span[];
  scale: Scale;
  selected: Selection;
  onSelect: (selection: Selection) => void;
}) {
  return (
    <>
      <button
        type="button"
        aria-pressed={selected.member === member_id}
        onClick={() => onSelect({ member: member_id })}
        title={member_id}
        className={cx(
          'tap truncate text-left hover:underline',
          selected.member === member_id ? 'font-medium' : 'text-muted',
        )}
      >
        {member_id}
      </button>
      <div className="relative flex min-w-0 flex-col justify-center gap-0.5 overflow-hidden">
        {rows.map((row) => (
          <div key={row[0]!.key} className="relative h-6">
            {row.map((span) => (
              <button
                key={span.key}
                type="button"
                aria-label={`${span.key}, ${span.status.replace('_', ' ')}, ${spanText(span.to_ms - span.from_ms)}`}
                aria-pressed={selected.step === span.key}
                title={`${span.key} · ${span.status.replace('_', ' ')} · ${spanText(span.to_ms - span.from_ms)}`}
                onClick={() => onSelect({ step: span.key })}
                style={place(span, scale)}
                className={cx(
                  'absolute inset-y-0 min-w-1.5 overflow-hidden rounded-sm px-1 text-left text-ground text-xs leading-6',
                  colors[span.status] ?? 'bg-muted',
                  selected.step === span.key && 'outline-2 outline-text -outline-offset-2',
                )}
              >
                {span.key}
              </button>
            ))}
          </div>
        ))}
        {waits.length > 0 && (
          <div className="relative h-1.5">
            {waits.map((span) => (
              <span
                key={span.key}
                role="img"
                aria-label={`waited ${spanText(span.to_ms - span.from_ms)} for an answer`}
                title={`waited ${spanText(span.to_ms - span.from_ms)} for an answer`}
                style={place(span, scale)}
                className="absolute inset-y-0 min-w-1 rounded-sm bg-needs"
              />
            ))}
          </div>
        )}
        {scale.folds.map(({ at, from_ms, to_ms }) => (
          <span
            key={from_ms}
            role="img"
            aria-label={`${spanText(to_ms - from_ms)} idle`}
            title={`${spanText(to_ms - from_ms)} idle`}
            style={{ left: `${at * 100}%` }}
            className="absolute inset-y-0 border-line-strong border-l border-dashed"
          />
        ))}
      </div>
    </>
  );
}

function place({ from_ms, to_ms }: Span, { x }: Scale) {
  const left = x(from_ms);
  return { left: `${left * 100}%`, width: `${Math.max(0, x(to_ms) - left) * 100}%` };
}
