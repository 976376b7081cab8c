/** Tasks in columns by status; a single column next to an open task of the list. */
import { ChevronsLeft, ChevronsRight } from 'lucide-react';
import { type DragEvent, type ReactNode, useState } from 'react';
import { IconButton } from '../../ui/button.tsx';
import { cx } from '../../ui/cx.ts';
import { Card, type CardProps, DRAGGED } from './card.tsx';
import { boardColumns, type TaskStatus } from './columns.ts';
import type { ShownTask } from './shown.ts';

export interface BoardProps extends Omit<CardProps, 'shown'> {
  tasks: readonly ShownTask[];
  narrow: boolean;
}

export function Board({ tasks, narrow, ...rest }: BoardProps) {
  const shown = new Map(tasks.map((task) => [task.task.id, task]));
  const [shows_cancelled, setShowsCancelled] = useState(false);
  const board = boardColumns(tasks.map(({ task }) => task));
  // On phones, the button for a new task must not cover the last card.
  return (
    <div
      className={cx(
        'flex flex-col gap-3 p-3 max-md:pb-20',
        !narrow && 'md:h-full md:w-max md:min-w-full md:flex-row',
      )}
    >
      {board.map(({ status, label, tasks }) => {
        const is_rail = status === 'cancelled' && !shows_cancelled && !narrow;
        return (
          <Column
            key={status}
            label={label}
            count={tasks.length}
            is_rail={is_rail}
            className={cx(!narrow && (is_rail ? 'md:w-10 md:shrink-0' : 'md:w-44 md:flex-1'))}
            fold={
              status === 'cancelled' &&
              !narrow && (
                <IconButton
                  label={shows_cancelled ? 'Collapse Cancelled' : 'Expand Cancelled'}
                  icon={shows_cancelled ? <ChevronsRight aria-hidden /> : <ChevronsLeft aria-hidden />}
                  onClick={() => setShowsCancelled(!shows_cancelled)}
                />
              )
            }
            onDrop={(task_id) => {
              const dropped = shown.get(task_id);
              if (dropped) rest.onMove(dropped.task, status as TaskStatus);
            }}
          >
            {tasks.map((task) => (
              <Card key={task.id} shown={shown.get(task.id)!} {...rest} />
            ))}
          </Column>
        );
      })}
    </div>
  );
}

/**
 * A column that accepts dropped tasks anywhere in its height. Tasks can also be moved with their menu and the keyboard. As a rail
 * it shows only its name and count on wide screens.
 */
function Column({
  label,
  count,
  is_rail,
  fold,
  onDrop,
  className,
  children,
}: {
  label: string;
  count: number;
  is_rail: boolean;
  fold: ReactNode;
  onDrop: (task_id: string) => void;
  className: string;
  children: ReactNode;
}) {
  const [over, setOver] = useState(false);
  const bears = (event: DragEvent) => event.dataTransfer.types.includes(DRAGGED);
  return (
    <section
      aria-label={`${label}, ${count}`}
      onDragOver={(event) => {
        if (!bears(event)) return;
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        setOver(false);
        if (!bears(event)) return;
        event.preventDefault();
        onDrop(event.dataTransfer.getData(DRAGGED));
      }}
      className={cx(
        'min-w-0 rounded-lg bg-surface p-2',
        is_rail && 'md:px-1',
        over && 'outline-2 outline-accent',
        className,
      )}
    >
      <div className={cx('flex min-h-7 items-center gap-2 px-1', is_rail && 'md:flex-col md:px-0')}>
        <h2
          className={cx(
            'flex items-center gap-2 font-medium text-sm',
            is_rail && 'md:order-last md:[writing-mode:vertical-rl]',
          )}
        >
          {label}
          <span className="font-normal text-muted">{count}</span>
        </h2>
        {fold && (
          <span
            data-fold={is_rail ? '' : undefined}
            className={cx('ml-auto max-md:hidden', is_rail && 'md:ml-0')}
          >
            {fold}
          </span>
        )}
      </div>
      {count > 0 && <ul className={cx('mt-2 flex flex-col gap-2', is_rail && 'md:hidden')}>{children}</ul>}
    </section>
  );
}
