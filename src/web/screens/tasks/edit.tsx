/** The dialogs that create and edit a task. The fields are kept as a draft until they are saved. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type KeyboardEvent, type ReactNode, useState } from 'react';
import { useAct } from '../../api/act.ts';
import { call, errorMessage } from '../../api/client.ts';
import type { TeamRecord } from '../../api/queries.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { useFields } from '../../ui/drafts.ts';
import { Field, inputClass, TextField } from '../../ui/field.tsx';
import { useIsShown } from '../../ui/here.ts';
import { hasModifier, isComposing } from '../../ui/keys.ts';
import { Select } from '../../ui/select.tsx';
import type { TaskRecord } from './data.ts';
import { putTask, refetchAfterConflict } from './data.ts';
import {
  assigneeChoices,
  type EditedFields,
  type Fields,
  isBegun,
  type NewFields,
  toBody,
  toChanges,
} from './fields.ts';
import { taskFieldFor } from './thread.ts';

export function NewTask({
  teams,
  team_id,
  onClose,
  onCreated,
}: {
  teams: readonly TeamRecord[];
  team_id: string | undefined;
  onClose: () => void;
  onCreated: (task: TaskRecord) => void;
}) {
  const queries = useQueryClient();
  const preset = team_id ?? teams[0]!.id;
  const [fields, setFields, last] = useFields<NewFields>('task.new', {
    team_id: preset,
    ...{ title: '', description: '', assignee: '' },
  });
  const [chosen, setChosen] = useState(isBegun(fields) ? fields.team_id : preset);
  // Without any other field, the team of the draft is the one of another page.
  const current = isBegun(fields) ? fields.team_id : chosen;
  const team = teams.find(({ id }) => id === current) ?? teams[0]!;
  const create = useAct(
    ({ team_id, ...body }: ReturnType<typeof toBody> & { team_id: string }, idempotency_key) =>
      call('createTask', { params: { team_id }, body, idempotency_key }),
    (task) => {
      putTask(queries, task);
      setFields(null);
      onCreated(task);
    },
    last,
  );
  return (
    <Dialog open onClose={onClose} title="New task">
      <TaskForm
        team={team}
        fields={fields}
        onChange={(next) => setFields({ team_id: team.id, ...next })}
        error={create.error}
        busy={create.isPending}
        label={create.isPending ? 'Creating…' : 'Create task'}
        onSubmit={() => create.mutate({ team_id: team.id, ...toBody(fields) })}
      >
        {teams.length > 1 && (
          <Field label="Team">
            {(control) => (
              <Select
                {...control}
                value={team.id}
                onChange={(id) => {
                  setChosen(id);
                  setFields({ team_id: id, assignee: '' });
                }}
                choices={teams.map(({ id, name }) => ({ value: id, label: name }))}
              />
            )}
          </Field>
        )}
      </TaskForm>
    </Dialog>
  );
}

export function EditTask({
  task,
  team,
  onClose,
}: {
  task: TaskRecord;
  team: TeamRecord;
  onClose: () => void;
}) {
  const queries = useQueryClient();
  const [base, setBase] = useState(task);
  const [theirs, setTheirs] = useState<TaskRecord | null>(null);
  const unchanged: EditedFields = {
    title: base.title,
    description: base.description,
    assignee: base.assignee_member_id ?? '',
    version: String(base.version),
  };
  const [fields, setFields] = useFields(`task.edit.${task.id}`, unchanged);
  const isShown = useIsShown();
  const save = useMutation({
    mutationFn: (sent: EditedFields) => {
      const params = { team_id: task.team_id, task_id: task.id };
      // The draft keeps its version: other tabs have it too, and do not show the other change.
      const version = theirs ? String(theirs.version) : sent.version;
      return call('updateTask', { params, body: toChanges(base, { ...sent, version }) });
    },
    onSuccess: (saved, sent) => {
      putTask(queries, saved);
      // Keep what was typed in the meantime, also in a dialog that was opened again, because it has not been saved.
      let is_saved = true;
      setFields((now) => {
        is_saved = [sent, unchanged].some((fields) => JSON.stringify(fields) === JSON.stringify(now));
        return is_saved ? null : { version: String(saved.version) };
      });
      if (!isShown()) return;
      if (is_saved) return onClose();
      setBase(saved);
      setTheirs(null);
    },
    onError: async (error) => {
      const now = await refetchAfterConflict(queries, task, error).catch(() => null);
      if (!now || !isShown()) return;
      // Keep the user's fields, including those that were equal to the old version.
      setFields((typed) => typed);
      setTheirs(now);
      setBase(now);
    },
  });
  return (
    <Dialog open onClose={onClose} title={`Edit ${task.key}`}>
      <TaskForm
        team={team}
        fields={fields}
        onChange={setFields}
        error={save.error}
        busy={save.isPending}
        label={save.isPending ? 'Saving…' : theirs ? 'Overwrite with mine' : 'Save'}
        onSubmit={() => save.mutate(fields)}
      >
        {theirs && (
          <Theirs
            task={theirs}
            onUse={() => {
              setFields(null);
              setTheirs(null);
              save.reset();
            }}
          />
        )}
      </TaskForm>
    </Dialog>
  );
}

/** What someone else has saved in the meantime. */
function Theirs({ task, onUse }: { task: TaskRecord; onUse: () => void }) {
  return (
    <div className="rounded-md border border-line bg-surface p-2">
      <p className="text-sm">Someone else changed this task:</p>
      <p className="break-words font-medium">{task.title}</p>
      <p className="max-h-40 overflow-y-auto whitespace-pre-wrap break-words">{task.description}</p>
      <p className="text-muted text-sm">
        {task.assignee_member_id === null ? 'Unassigned' : `Assigned to ${task.assignee_member_id}`}
      </p>
      <Button className="mt-2" onClick={onUse}>
        Use theirs
      </Button>
    </div>
  );
}

function TaskForm({
  team,
  fields,
  onChange,
  error,
  busy,
  label,
  onSubmit,
  children,
}: {
  team: TeamRecord;
  fields: Fields;
  onChange: (next: Partial<Fields>) => void;
  error: unknown;
  busy: boolean;
  label: string;
  onSubmit: () => void;
  children: ReactNode;
}) {
  const message = error ? errorMessage(error) : '';
  const place = message && taskFieldFor(message);
  const submit = (event?: FormEvent) => {
    event?.preventDefault();
    if (!busy) onSubmit();
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || !hasModifier(event.nativeEvent) || isComposing(event.nativeEvent)) return;
    event.preventDefault();
    submit();
  };
  return (
    <form onSubmit={submit} onKeyDown={onKey} className="flex flex-col gap-3">
      {children}
      <TextField
        label="Title"
        error={place === 'title' && message}
        value={fields.title}
        onText={(text) => onChange({ title: text })}
        autoComplete="off"
      />
      <Field label="Description" error={place === 'description' && message}>
        {(control) => (
          <textarea
            {...control}
            rows={5}
            value={fields.description}
            onChange={(event) => onChange({ description: event.target.value })}
            className={inputClass}
          />
        )}
      </Field>
      <Field label="Assignee" error={place === 'assignee' && message}>
        {(control) => (
          <Select
            {...control}
            value={fields.assignee}
            onChange={(assignee) => onChange({ assignee })}
            choices={assigneeChoices(team, fields.assignee)}
          />
        )}
      </Field>
      {place === 'form' && (
        <p role="alert" className="text-failed">
          {message}
        </p>
      )}
      <Button type="submit" variant="primary" busy={busy} className="self-start">
        {label}
      </Button>
    </form>
  );
}
