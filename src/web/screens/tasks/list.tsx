/** Tasks as a list, the most recently changed first: a table on wide screens, cards on phones. */
import { rowMarkClass } from '../../ui/row-class.ts';
import { TableHead } from '../../ui/table-head.tsx';
import { Ago } from '../../ui/time.tsx';
import { Card, type CardProps, TaskFacts, TaskLink, TaskMenu } from './card.tsx';
import { latestFirst } from './columns.ts';
import type { ShownTask } from './shown.ts';
import { TaskStatusLabel } from './status.tsx';

const columns = [
  { label: 'Status', className: 'w-32' },
  { label: 'Task' },
  { label: 'Team', className: 'w-40' },
  { label: 'Assignee and run', className: 'w-1/4' },
  { label: 'Updated', className: 'w-24' },
  { label: 'Actions', className: 'w-12', unseen: true },
];

export function TaskList({ tasks, ...rest }: Omit<CardProps, 'shown'> & { tasks: readonly ShownTask[] }) {
  const by_id = new Map(tasks.map((task) => [task.task.id, task]));
  const rows = latestFirst(tasks.map(({ task }) => task)).map(({ id }) => by_id.get(id)!);
  const has_teams = rows.some(({ team_name }) => team_name !== null);
  const { onMove, onEdit, open_id } = rest;
  return (
    <>
      <table className="hidden w-full table-fixed border-collapse md:table">
        <TableHead columns={has_teams ? columns : columns.filter(({ label }) => label !== 'Team')} />
        <tbody>
          {rows.map((shown) => {
            const { task, team_name } = shown;
            const message = rest.refusal?.task_id === task.id ? rest.refusal.message : null;
            return (
              <tr
                key={task.id}
                data-row
                data-task={task.id}
                className={`${rowMarkClass} [&>td]:px-2 [&>td]:py-1`}
              >
                <td className="pl-4!">
                  <TaskStatusLabel status={task.status} />
                </td>
                <th scope="row" className="px-2 text-left font-normal">
                  <TaskLink task={task} onMove={onMove} is_open={open_id === task.id} />
                  {message !== null && (
                    <p role="alert" className="text-failed text-sm">
                      {message}
                    </p>
                  )}
                </th>
                {has_teams && <td className="truncate text-muted">{team_name}</td>}
                <td>
                  <span className="flex min-w-0 flex-wrap items-center gap-x-2 text-muted text-sm">
                    <TaskFacts shown={shown} />
                  </span>
                </td>
                <td className="text-muted text-sm">
                  <Ago at={task.updated_at} />
                </td>
                <td className="relative z-1">
                  <TaskMenu task={task} onMove={onMove} onEdit={onEdit} />
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      <ul className="flex flex-col gap-2 p-3 pb-20 md:hidden">
        {rows.map((shown) => (
          <Card key={shown.task.id} shown={shown} {...rest} />
        ))}
      </ul>
    </>
  );
}
