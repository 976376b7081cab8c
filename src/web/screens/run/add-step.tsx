/** The dialog that adds a step to a live run. Its fields are kept as a draft until the step is added. */
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useAct } from '../../api/act.ts';
import type { LastAttempt } from '../../api/act-key.ts';
import { call, errorMessage } from '../../api/client.ts';
import { keys } from '../../api/keys.ts';
import type { RunRecord } from '../../api/queries.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { useFields } from '../../ui/drafts.ts';
import { Field, inputClass, TextField } from '../../ui/field.tsx';
import { Needs } from '../../ui/needs.tsx';
import { useOnline } from '../../ui/online.ts';
import { Select } from '../../ui/select.tsx';
import { ActionError } from '../../ui/states.tsx';
import type { StepRecord } from './facts.ts';

type Fields = { step_key: string; member_id: string; depends_on: string[]; prompt: string };

interface AddStepProps {
  run: RunRecord;
  steps: readonly StepRecord[];
  onAdded: (step_key: string) => void;
}

/** The button and its dialog. They are apart, because the button moves when the run gets its first step. */
export function useAddStepDialog(
  run: RunRecord,
  steps: readonly StepRecord[],
  onAdded: (step_key: string) => void,
) {
  const [open, setOpen] = useState(false);
  const done = (step_key: string) => {
    setOpen(false);
    onAdded(step_key);
  };
  return {
    button: <Button onClick={() => setOpen(true)}>Add step…</Button>,
    dialog: (
      <Dialog open={open} onClose={() => setOpen(false)} title={`Add a step to run ${run.number}`}>
        <StepFields run={run} steps={steps} onAdded={done} />
      </Dialog>
    ),
  };
}

function StepFields({ run: { id: run_id, team_id, spec }, steps, onAdded }: AddStepProps) {
  const [fields, setFields, last] = useFields<Fields>(`step.${run_id}`, {
    step_key: '',
    member_id: spec.members[0]!.member_id,
    depends_on: [],
    prompt: '',
  });
  const online = useOnline();
  const add = useAddStep({ run_id, team_id, last }, (step_key) => {
    setFields(null);
    onAdded(step_key);
  });
  const refusal = add.error ? errorMessage(add.error) : null;
  const is_about_key = refusal !== null && /^step(_key| already)/.test(refusal);
  return (
    <form
      className="flex flex-col gap-3"
      onSubmit={(event) => {
        event.preventDefault();
        if (!add.isPending && online) add.mutate(fields);
      }}
    >
      <div className="grid gap-3 sm:grid-cols-2">
        <TextField
          label="Step"
          error={is_about_key && refusal}
          value={fields.step_key}
          onText={(step_key) => setFields({ step_key })}
        />
        <Field label="Member">
          {(control) => (
            <Select
              {...control}
              value={fields.member_id}
              onChange={(member_id) => setFields({ member_id })}
              choices={spec.members.map((member) => ({ value: member.member_id, label: member.member_id }))}
            />
          )}
        </Field>
      </div>
      <Field label="Waits for">
        {(control) => (
          <Needs
            {...control}
            needs={fields.depends_on}
            steps={steps.map(({ step_key }) => step_key)}
            onChange={(depends_on) => setFields({ depends_on })}
          />
        )}
      </Field>
      <Field label="Prompt">
        {(control) => (
          <textarea
            {...control}
            rows={4}
            value={fields.prompt}
            onChange={(event) => setFields({ prompt: event.target.value })}
            className={`${inputClass} text-prose`}
          />
        )}
      </Field>
      {!is_about_key && <ActionError error={add.error} />}
      <div className="flex justify-end">
        <Button
          type="submit"
          variant="primary"
          busy={add.isPending}
          disabled={!online}
          title={online ? undefined : 'You are offline'}
        >
          {add.isPending ? 'Adding…' : 'Add step'}
        </Button>
      </div>
    </form>
  );
}

function useAddStep(
  { run_id, team_id, last }: { run_id: string; team_id: string; last: LastAttempt },
  onAdded: (step_key: string) => void,
) {
  const queries = useQueryClient();
  return useAct(
    (body: Fields, idempotency_key) =>
      call('addStep', { params: { team_id, run_id }, body, idempotency_key }),
    ({ step_key }) => {
      void queries.invalidateQueries({ queryKey: keys.steps(run_id) });
      onAdded(step_key);
    },
    last,
  );
}
