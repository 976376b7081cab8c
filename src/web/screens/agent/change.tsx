/** The dialog for an agent's name and labels. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call, errorMessage } from '../../api/client.ts';
import type { AgentRecord } from '../../api/queries.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Field, inputClass } from '../../ui/field.tsx';
import { storeAgent } from '../agents/actions.ts';
import { formatLabels, parseLabels, withLabelChanges } from './labels.ts';

export function ChangeAgent({ agent, onClose }: { agent: AgentRecord; onClose: () => void }) {
  const queries = useQueryClient();
  // As the user saw them: what others change while the dialog is open stays.
  const [before] = useState({ name: agent.name, labels: agent.labels });
  const [name, setName] = useState(before.name);
  const [labels, setLabels] = useState(formatLabels(before.labels));
  const save = useMutation({
    mutationFn: () => {
      const changed = withLabelChanges(agent.labels, before.labels, parseLabels(labels));
      const body = { ...(name !== before.name && { name }), ...(changed && { labels: changed }) };
      return call('updateAgent', { params: { agent_id: agent.id }, body });
    },
    onSuccess: (record) => {
      storeAgent(queries, record);
      onClose();
    },
  });
  const message = save.isError ? errorMessage(save.error) : null;
  const is_about_name = message?.startsWith('name') ?? false;
  return (
    <Dialog open onClose={onClose} title="Edit name and labels">
      <form
        className="flex flex-col gap-3"
        onSubmit={(event) => {
          event.preventDefault();
          save.mutate();
        }}
      >
        <Field label="Name" error={is_about_name && message}>
          {(field) => (
            <input
              {...field}
              value={name}
              onChange={(event) => setName(event.target.value)}
              className={inputClass}
            />
          )}
        </Field>
        <Field label="Labels" hint="One key=value per line" error={!is_about_name && message}>
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
          <Button type="submit" variant="primary" busy={save.isPending}>
            Save
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
