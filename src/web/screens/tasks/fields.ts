/** The fields of a task's dialogs, and the requests that they become (pure). */
import type { TeamRecord } from '../../api/queries.ts';
import type { Choice } from '../../ui/select.tsx';
import type { TaskRecord } from './data.ts';

export interface Fields extends Record<string, string> {
  title: string;
  description: string;
  /** The id of a member; empty: nobody. */
  assignee: string;
}

export interface NewFields extends Fields {
  /** The assignee is a member of this team. */
  team_id: string;
}

/** Whether the user has begun a new task. Otherwise its draft is only the team that they have looked at. */
export function isBegun({ title, description, assignee }: Fields): boolean {
  return title !== '' || description !== '' || assignee !== '';
}

export interface EditedFields extends Fields {
  /** The version that the user started to edit, not the latest one. */
  version: string;
}

export function toBody({ title, description, assignee }: Fields) {
  return { title, description, assignee_member_id: assignee === '' ? null : assignee };
}

/** Without the assignee if it is the same: the service refuses one who is no longer a member. */
export function toChanges(before: Pick<TaskRecord, 'assignee_member_id'>, fields: EditedFields) {
  const { assignee_member_id, ...rest } = toBody(fields);
  const is_same = assignee_member_id === before.assignee_member_id;
  return { ...rest, ...(!is_same && { assignee_member_id }), version: Number(fields.version) };
}

/** Nobody, the members of the team, and the current assignee if that is no longer one. */
export function assigneeChoices({ spec }: Pick<TeamRecord, 'spec'>, assignee: string): Choice[] {
  const ids = spec.members.map(({ member_id }) => member_id);
  return [
    { value: '', label: 'Unassigned' },
    ...ids.map((id) => ({ value: id, label: id })),
    ...(assignee === '' || ids.includes(assignee)
      ? []
      : [{ value: assignee, label: `${assignee} (no longer a member)` }]),
  ];
}
