/** The timeline of a run: a row per step, grouped by member. Long idle periods are folded. */
import { memo, useMemo, useState } from 'react';
import { isRunOver } from '../../../features/runs/rules/run.ts';
import type { RunRecord } from '../../api/queries.ts';
import { Button } from '../../ui/button.tsx';
import { cx } from '../../ui/cx.ts';
import { useNarrow } from '../../ui/media.ts';
import { StatusIcon, sentenceCase, statusText } from '../../ui/status.tsx';
import { spanText, useNow } from '../../ui/time.tsx';
import type { ShownStepRecord } from './facts.ts';
import type { Selection } from './run.tsx';
import {
  buildRows,
  createScale,
  type Fold,
  type Row,
  type Scale,
  type Span,
  type TimedWait,
} from './timeline.ts';

interface TimelineProps {
  run: RunRecord;
  steps: readonly ShownStepRecord[];
  /** The requests of members in the run. */
  waits: readonly TimedWait[];
  selected: Selection;
  onSelect: (selection: Selection) => void;
}

/** On a phone the bars have about 160 px. */
const PHONE_SCALE = { tick_distance: 0.3, fold_width: 0.38 };

/** The timeline of a larger run is rendered less often. */
const MANY_STEPS = 200;
const FIRST = 100;

export function Timeline(props: TimelineProps) {
  const { run } = props;
  if (run.started_at === null) return null;
  if (isRunOver(run)) return <Rows {...props} now_ms={Date.parse(run.ended_at ?? run.started_at)} />;
  return <Ticking {...props} />;
}

function Ticking(props: TimelineProps) {
  const every_ms = props.steps.length > MANY_STEPS ? 15_000 : 1000;
  const now_ms = Math.floor(useNow() / every_ms) * every_ms;
  return <Rows {...props} now_ms={Math.max(now_ms, Date.parse(props.run.started_at!))} />;
}

const Rows = memo(function Rows({
  run,
  steps,
  waits,
  selected,
  onSelect,
  now_ms,
}: TimelineProps & { now_ms: number }) {
  const [shown, setShown] = useState(FIRST);
  const scale_options = useNarrow() ? PHONE_SCALE : undefined;
  const start_ms = Date.parse(run.started_at!);
  const { rows, scale, first_ms } = useMemo(() => {
    const members = run.spec.members.map(({ member_id }) => member_id);
    const rows = buildRows(members, steps, waits, { start_ms, now_ms });
    const spans = rows.flatMap((row) => row.spans);
    const end = spans.reduce((last, { to_ms }) => Math.max(last, to_ms), now_ms);
    const first_ms = spans.reduce((first, { from_ms }) => Math.min(first, from_ms), start_ms);
    const busy = spans.filter(({ kind }) => kind === 'working' || kind === 'waiting');
    return { rows, scale: createScale(busy, first_ms, end, scale_options), first_ms };
  }, [run, steps, waits, now_ms, start_ms, scale_options]);
  if (rows.length === 0) return null;
  const groups = Map.groupBy(rows.slice(0, shown), ({ member_id }) => member_id);
  return (
    <section aria-label="Timeline" className="min-w-0 rounded-lg border border-line">
      <header className="flex flex-wrap items-center gap-x-4 border-line border-b px-3 py-1.5">
        <h2 className="font-medium">Timeline</h2>
        <Key />
      </header>
      <div className="relative px-3 py-2">
        <Grid scale={scale} first_ms={first_ms} />
        {[...groups].map(([member_id, own]) => (
          <section key={member_id} aria-label={member_id} className="relative">
            <h3>
              <button
                type="button"
                aria-pressed={selected.member === member_id}
                onClick={() => onSelect({ member: member_id })}
                className={cx(
                  'tap max-w-full truncate text-left text-xs hover:underline',
                  selected.member === member_id ? 'font-medium' : 'text-muted',
                )}
              >
                {member_id}
              </button>
            </h3>
            {own.map((row) => (
              <StepRow
                key={row.step_key ?? ''}
                row={row}
                scale={scale}
                is_selected={row.step_key !== null && selected.step === row.step_key}
                onSelect={onSelect}
              />
            ))}
          </section>
        ))}
      </div>
      {rows.length > shown && (
        <div className="flex justify-center p-2">
          <Button onClick={() => setShown(shown + FIRST)}>Show {rows.length - shown} more</Button>
        </div>
      )}
    </section>
  );
});

const barClasses: Record<Span['kind'], string> = {
  queued: 'queued-bar border-line-strong/40',
  earlier: 'bg-needs/12 border-needs border-dashed',
  working: 'bg-running/16 border-running',
  waiting: 'bg-needs/24 border-needs',
};

const failedBar = 'bg-failed/16 border-failed';

const words: Record<Span['kind'], string> = {
  queued: 'queued',
  earlier: 'earlier work and waits',
  working: 'working',
  waiting: 'waiting for a person',
};

function Key() {
  return (
    <ul className="flex flex-wrap gap-x-3 text-muted text-xs">
      {(['queued', 'working', 'waiting', 'earlier'] as const).map((kind) => (
        <li key={kind} className="inline-flex items-center gap-1">
          <span aria-hidden className={cx('h-2 w-4 rounded-xs border', barClasses[kind])} />
          {sentenceCase(words[kind])}
        </li>
      ))}
    </ul>
  );
}

/** The columns of every row: its label, its bars, and room for the duration after the last bar. */
const columns =
  'grid grid-cols-[minmax(0,9rem)_minmax(0,1fr)_3.75rem] gap-x-2 max-sm:grid-cols-[6rem_minmax(0,1fr)_3.75rem]';

/** The ticks with their lines, behind all rows. */
function Grid({ scale, first_ms }: { scale: Scale; first_ms: number }) {
  return (
    <div aria-hidden className={cx('pointer-events-none absolute inset-x-3 inset-y-0', columns)}>
      <span />
      <div className="relative">
        {scale.ticks.map(({ at, ms }) => (
          <span
            key={ms}
            title={new Date(ms).toLocaleString()}
            style={{ left: `${at * 100}%` }}
            className="absolute inset-y-0 whitespace-nowrap border-line border-l pt-1.5 pl-1 text-muted text-xs"
          >
            {spanText(ms - first_ms)}
          </span>
        ))}
        {scale.folds.map((fold) => (
          <FoldedTime key={fold.from_ms} fold={fold} />
        ))}
      </div>
    </div>
  );
}

function FoldedTime({ fold: { from_ms, to_ms, at, width, is_labeled } }: { fold: Fold }) {
  return (
    <span
      style={{ left: `${at * 100}%`, width: `${width * 100}%` }}
      className="absolute inset-y-0 border-line-strong/50 border-x border-dashed"
    >
      <span className="block overflow-hidden whitespace-nowrap bg-surface pt-1.5 text-center text-muted text-xs">
        {is_labeled ? `⋯ ${spanText(to_ms - from_ms)}` : '⋯'}
      </span>
    </span>
  );
}

function StepRow({
  row: { member_id, step_key, status, spans },
  scale,
  is_selected,
  onSelect,
}: {
  row: Row;
  scale: Scale;
  is_selected: boolean;
  onSelect: (selection: Selection) => void;
}) {
  const from = Math.min(...spans.filter(({ kind }) => kind !== 'queued').map(({ from_ms }) => from_ms));
  const end = Math.max(...spans.map(({ to_ms }) => to_ms));
  const duration = Number.isFinite(from) ? spanText(end - from) : null;
  const label = step_key ?? 'Other requests';
  const summary = spans
    .map(({ kind, from_ms, to_ms }) => `${words[kind]} ${spanText(to_ms - from_ms)}`)
    .join(', ');
  return (
    <button
      type="button"
      aria-pressed={is_selected}
      title={`${label} · ${statusText(status)} · ${summary}`}
      onClick={() => onSelect(step_key === null ? { member: member_id } : { step: step_key })}
      className={cx(
        'h-6 w-full items-center rounded-sm text-left hover:bg-surface/60 pointer-coarse:h-11',
        columns,
        is_selected && 'bg-selected/60',
      )}
    >
      <span className="flex min-w-0 items-center gap-1.5">
        <StatusIcon status={status} />
        <span className={cx('truncate', is_selected && 'font-medium')}>{label}</span>
        <span className="sr-only">{`${statusText(status)}, ${summary}`}</span>
      </span>
      <span aria-hidden className="relative h-4">
        {spans.map((span) => (
          <span
            key={`${span.kind} ${span.from_ms}`}
            style={place(span, scale)}
            className={cx(
              'absolute inset-y-0 min-w-1 rounded-xs border',
              status === 'failed' && span.kind === 'working' ? failedBar : barClasses[span.kind],
            )}
          />
        ))}
        {duration !== null && (
          <span
            style={{ left: `${scale.x(end) * 100}%` }}
            className="absolute inset-y-0 whitespace-nowrap pl-1.5 text-muted text-xs tabular-nums leading-4"
          >
            {duration}
          </span>
        )}
      </span>
    </button>
  );
}

function place({ from_ms, to_ms }: Span, { x }: Scale) {
  const left = x(from_ms);
  return { left: `${left * 100}%`, width: `${Math.max(0, x(to_ms) - left) * 100}%` };
}
