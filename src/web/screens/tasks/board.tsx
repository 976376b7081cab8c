/** Tasks in columns by status; a single column if a task is open next to it. */
import { type DragEvent, type ReactNode, useState } from 'react';
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
  const board = boardColumns(tasks.map(({ task }) => task));
  return (
    <div
      className={cx(
        'flex flex-col gap-3 p-3',
        !narrow && 'md:grid md:auto-cols-[minmax(11rem,1fr)] md:grid-flow-col md:items-start',
      )}
    >
      {board.map(({ status, label, tasks }) => (
        <Column
          key={status}
          label={label}
          count={tasks.length}
          onDrop={(task_id) => {
            const dropped = shown.get(task_id);
            if (dropped) rest.onMove(dropped.task, status as TaskStatus);
          }}
        >
          {tasks.map((task) => (
            <Card key={task.id} shown={shown.get(task.id)!} {...rest} />
          ))}
        </Column>
      ))}
    </div>
  );
}

/** A column that accepts dropped tasks. Tasks can also be moved with their menu and the keyboard. */
function Column({
  label,
  count,
  onDrop,
  children,
}: {
  label: string;
  count: number;
  onDrop: (task_id: string) => void;
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
      className={cx('min-w-0 rounded-lg bg-surface p-2', over && 'outline-2 outline-accent')}
    >
      <h2 className="flex items-center justify-between px-1 font-medium text-sm">
        {label}
        <span className="text-muted">{count}</span>
      </h2>
      {count > 0 && <ul className="mt-2 flex flex-col gap-2">{children}</ul>}
    </section>
  );
}
