/** An agent's name and labels. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call, wordsOf } from '../../api/client.ts';
import type { AgentRecord } from '../../api/queries.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Field, inputClass } from '../../ui/field.tsx';
import { labelsIn, labelsText } from './labels.ts';

export function ChangeAgent({ agent, onClose }: { agent: AgentRecord; onClose: () => void }) {
  const queries = useQueryClient();
  const [name, setName] = useState(agent.name);
  const [labels, setLabels] = useState(labelsText(agent.labels));
  const save = useMutation({
    mutationFn: () =>
      call('updateAgent', { params: { agent_id: agent.id }, body: { name, labels: labelsIn(labels) } }),
    onSuccess: (record) => {
      queries.setQueryData(['agent', record.id], record);
      queries.setQueryData<AgentRecord[]>(['agents'], (rows) =>
        rows?.map((row) => (row.id === record.id ? record : row)),
      );
      onClose();
    },
  });
  const words = save.isError ? wordsOf(save.error) : null;
  const is_about_name = words?.startsWith('name') ?? false;
  return (
    <Dialog open onClose={onClose} title="Name and labels">
      <form
        className="flex flex-col gap-3"
        onSubmit={(event) => {
          event.preventDefault();
          save.mutate();
        }}
      >
        <Field label="Name" error={is_about_name && words}>
          {(field) => (
            <input
              {...field}
              value={name}
              onChange={(event) => setName(event.target.value)}
              className={inputClass}
            />
          )}
        </Field>
        <Field label="Labels" hint="One a line: key=value" error={!is_about_name && words}>
          {(field) => (
            <textarea
              {...field}
              rows={4}
              value={labels}
              onChange={(event) => setLabels(event.target.value)}
              className={inputClass}
            />
          )}
        </Field>
        <div className="flex justify-end">
          <Button type="submit" look="primary" busy={save.isPending}>
            Save
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
