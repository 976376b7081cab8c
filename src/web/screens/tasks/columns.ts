/** The columns of the board and the tasks in each (pure). */
import type { TaskRecord } from './data.ts';

export type TaskStatus = TaskRecord['status'];

export const columns = [
  { status: 'open', label: 'To do' },
  { status: 'in_progress', label: 'Doing' },
  { status: 'in_review', label: 'In review' },
  { status: 'completed', label: 'Done' },
  { status: 'cancelled', label: 'Cancelled' },
] as const satisfies readonly { status: TaskStatus; label: string }[];

export function columnLabel(status: TaskStatus): string {
  return columns.find((column) => column.status === status)?.label ?? status;
}

/** Each column with its tasks, the most recently changed first. */
export function boardColumns(
  tasks: readonly TaskRecord[],
): { status: TaskStatus; label: string; tasks: TaskRecord[] }[] {
  const newest = latestFirst(tasks);
  return columns.map((column) => ({
    ...column,
    tasks: newest.filter(({ status }) => status === column.status),
  }));
}

export function latestFirst(tasks: readonly TaskRecord[]): TaskRecord[] {
  return tasks.toSorted((a, b) => b.updated_at.localeCompare(a.updated_at) || b.number - a.number);
}

/** The next or previous column; null at the end. */
export function neighbor(status: TaskStatus, step: -1 | 1): TaskStatus | null {
  const at = columns.findIndex((column) => column.status === status);
  return at === -1 ? null : (columns[at + step]?.status ?? null);
}

/** Tasks whose key, number, title, description and assignee together contain every word of `q`; `DEM-17`, `#17` and `17` match the task. */
export function matching(tasks: readonly TaskRecord[], q: string): TaskRecord[] {
  const sought = q.toLowerCase().split(/\s+/).filter(Boolean);
  return tasks.filter(({ key, number, title, description, assignee_member_id }) => {
    const text = `${key} #${number} ${title} ${description} ${assignee_member_id ?? ''}`.toLowerCase();
    return sought.every((word) => text.includes(word));
  });
}
