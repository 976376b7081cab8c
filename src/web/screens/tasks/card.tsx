/** A task on the board, and its parts that lists and threads share. */
import { Link, useNavigate } from '@tanstack/react-router';
import { Ellipsis, TriangleAlert, UserRound } from 'lucide-react';
import type { KeyboardEvent } from 'react';
import { Button, IconButton } from '../../ui/button.tsx';
import { cx } from '../../ui/cx.ts';
import { Menu } from '../../ui/menu.tsx';
import { StatusIcon, sentenceCase, statusText } from '../../ui/status.tsx';
import { Duration } from '../../ui/time.tsx';
import { columnLabel, columns, neighbor, type TaskStatus } from './columns.ts';
import type { TaskRecord, TaskRunRecord } from './data.ts';
import type { Refusal, ShownTask } from './shown.ts';

/** The type of dragged cards, so that nothing else can be dropped. */
export const DRAGGED = 'application/x-svc-task';

export interface CardProps {
  shown: ShownTask;
  open_id: string | undefined;
  refusal: Refusal | null;
  onMove: (task: TaskRecord, status: TaskStatus) => void;
  onEdit: (task: TaskRecord) => void;
}

export function Card({ shown, open_id, refusal, onMove, onEdit }: CardProps) {
  const { task, team_name } = shown;
  const refused = refusal?.task_id === task.id ? refusal : null;
  return (
    <li
      data-row
      data-task={task.id}
      draggable
      onDragStart={(event) => {
        event.dataTransfer.setData(DRAGGED, task.id);
        event.dataTransfer.effectAllowed = 'move';
      }}
      className={cx(
        'group/task relative min-w-0 rounded-md border bg-raised p-2',
        open_id === task.id ? 'border-accent' : 'border-line',
        needsAnswer(shown) && 'border-l-3 border-l-needs',
      )}
    >
      <TaskLink task={task} onMove={onMove} is_open={open_id === task.id} is_card />
      <span className="absolute top-0.5 right-0.5 z-1 rounded-md bg-raised opacity-0 transition-opacity focus-within:opacity-100 group-hover/task:opacity-100 pointer-coarse:opacity-100">
        <TaskMenu task={task} onMove={onMove} onEdit={onEdit} />
      </span>
      {team_name !== null && <p className="truncate text-muted text-xs">{team_name}</p>}
      <p className="mt-0.5 flex min-w-0 flex-wrap items-center gap-x-1.5 text-muted text-sm">
        <TaskFacts shown={shown} />
      </p>
      {refused && (
        <div role="alert" className="mt-1 flex flex-col items-start gap-1 text-sm">
          <p className="break-words text-failed">{refused.message}</p>
          {task.status !== refused.status && (
            <Button className="relative z-1" onClick={() => onMove(task, refused.status)}>
              Move to {columnLabel(refused.status)} anyway
            </Button>
          )}
        </div>
      )}
    </li>
  );
}

/** Opens the task. Shift and an arrow key move it to the next column. */
export function TaskLink({
  task,
  onMove,
  is_open,
  is_card = false,
}: {
  task: TaskRecord;
  onMove: (task: TaskRecord, status: TaskStatus) => void;
  is_open: boolean;
  /** Shows the key above the title. */
  is_card?: boolean;
}) {
  const onKey = (event: KeyboardEvent) => {
    if (!event.shiftKey || (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight')) return;
    event.preventDefault();
    const status = neighbor(task.status, event.key === 'ArrowLeft' ? -1 : 1);
    if (status) onMove(task, status);
  };
  return (
    <Link
      from="/tasks"
      to="/tasks"
      search={(old) => ({ ...old, task: task.id, q: undefined, thread: undefined })}
      aria-current={is_open ? 'true' : undefined}
      aria-keyshortcuts="Shift+ArrowLeft Shift+ArrowRight"
      onKeyDown={onKey}
      draggable={false}
      className="tap block min-w-0 flex-1 break-words font-medium after:absolute after:inset-0 hover:underline"
    >
      {/* On touch screens, the title flows around the menu of the card. */}
      {is_card && <span aria-hidden className="float-right hidden size-9 pointer-coarse:block" />}
      <span className={cx('mr-1 font-mono font-normal text-muted text-xs', is_card && 'block')}>
        {task.key}
      </span>{' '}
      {task.title}
    </Link>
  );
}

export function TaskMenu({
  task,
  onMove,
  onEdit,
}: {
  task: TaskRecord;
  onMove: (task: TaskRecord, status: TaskStatus) => void;
  onEdit: (task: TaskRecord) => void;
}) {
  const navigate = useNavigate();
  const { team_id, run_id } = task;
  return (
    <Menu
      trigger={<IconButton label={`Actions for ${task.key}`} icon={<Ellipsis aria-hidden />} />}
      items={[
        ...columns.map(({ status, label }) => ({
          label: `Move to ${label}`,
          disabled: status === task.status,
          onSelect: () => onMove(task, status),
        })),
        { label: 'Edit…', onSelect: () => onEdit(task) },
        run_id !== null && {
          label: 'Open run',
          onSelect: () =>
            void navigate({ to: '/teams/$team_id/runs/$run_id', params: { team_id, run_id }, search: {} }),
        },
      ]}
    />
  );
}

/** The progress of its run, the number of requests that wait in it, and the assignee. */
export function TaskFacts({ shown: { task, run, members, waiting } }: { shown: ShownTask }) {
  return (
    <>
      {run && <RunFacts run={run} members={members} steps={task.run_steps} needs_you={waiting.length > 0} />}
      {waiting.length > (run ? 1 : 0) && (
        <span className="inline-flex items-center gap-1 text-needs">
          <TriangleAlert aria-hidden className="size-3.5" />
          {waiting.length}
          <span className="sr-only"> waiting for you</span>
        </span>
      )}
      {task.assignee_member_id !== null && (
        <span className="ml-auto inline-flex min-w-0 items-center gap-1">
          <UserRound aria-label="assigned to" className="size-3.5 shrink-0" />
          <span className="truncate">{task.assignee_member_id}</span>
        </span>
      )}
    </>
  );
}

/** Its progress, the members at work, and its time. A failure and what waits for the user stand out in every column. */
function RunFacts({
  run,
  members,
  steps,
  needs_you,
}: {
  run: TaskRunRecord;
  members: string;
  steps: TaskRecord['run_steps'];
  /** Something in the run waits for the user. */
  needs_you: boolean;
}) {
  const { number, started_at, ended_at } = run;
  const status = needs_you ? 'needs_you' : run.status;
  const progress = steps.total > 0 ? `${steps.completed}/${steps.total} steps` : null;
  const waits = status === 'needs_you' || status === 'input_required';
  const stands_out = status === 'failed' || waits;
  return (
    <span className="inline-flex min-w-0 flex-wrap items-center gap-x-2" title={`Run ${number}`}>
      <span className="inline-flex min-w-0 items-center gap-x-2">
        <StatusIcon status={status} />
        {stands_out || progress === null ? (
          <span className={cx('min-w-0', status === 'failed' && 'text-failed', waits && 'text-needs')}>
            {sentenceCase(statusText(status))}
            {needs_you && <span className="sr-only"> ({statusText(run.status)})</span>}
            {progress !== null && ` · ${progress}`}
          </span>
        ) : (
          <span>
            <span className="sr-only">{statusText(status)}, </span>
            {progress}
          </span>
        )}
      </span>
      {members !== '' && <span className="min-w-0 truncate">{members}</span>}
      {started_at && (
        <span className="whitespace-nowrap tabular-nums">
          <Duration from={started_at} to={ended_at} />
        </span>
      )}
    </span>
  );
}

function needsAnswer({ run, waiting }: ShownTask): boolean {
  return waiting.length > 0 || run?.status === 'input_required';
}
