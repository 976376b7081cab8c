/** One more step for a run that goes on: whose it is, what it waits for, what is asked. What was written stays until it is added. */
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call, wordsOf } from '../../api/client.ts';
import type { RunRecord } from '../../api/queries.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { useDraft } from '../../ui/drafts.ts';
import { Field, inputClass, TextField } from '../../ui/field.tsx';
import { useOnline } from '../../ui/online.ts';
import { needWords, Picks } from '../../ui/picks.tsx';
import { Select } from '../../ui/select.tsx';
import { Refused } from '../../ui/states.tsx';
import { useAct } from './act.ts';
import type { StepRecord } from './facts.ts';

interface AddedStep {
  step_key: string;
  member_id: string;
  depends_on: string[];
  prompt: string;
}

export function AddStep({
  run,
  steps,
  onAdded,
}: {
  run: RunRecord;
  steps: readonly StepRecord[];
  onAdded: (step_key: string) => void;
}) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button onClick={() => setOpen(true)}>Add step…</Button>
      <Dialog open={open} onClose={() => setOpen(false)} title={`Add a step to run ${run.number}`}>
        <StepFields
          run={run}
          steps={steps}
          onAdded={(step_key) => {
            setOpen(false);
            onAdded(step_key);
          }}
        />
      </Dialog>
    </>
  );
}

function StepFields({
  run: { id: run_id, team_id, spec },
  steps,
  onAdded,
}: {
  run: RunRecord;
  steps: readonly StepRecord[];
  onAdded: (step_key: string) => void;
}) {
  const [prompt, setPrompt] = useDraft(`step.${run_id}`);
  const [step_key, setKey] = useState('');
  const [member_id, setMember] = useState(spec.members[0]!.member_id);
  const [depends_on, setNeeds] = useState<string[]>([]);
  const queries = useQueryClient();
  const online = useOnline();
  const add = useAct(
    (body: AddedStep, idempotency_key) =>
      call('addStep', { params: { team_id, run_id }, body, idempotency_key }),
    (step) => {
      setPrompt('');
      void queries.invalidateQueries({ queryKey: ['steps', run_id] });
      onAdded(step.step_key);
    },
  );
  const refusal = add.error ? wordsOf(add.error) : null;
  const isOfKey = refusal !== null && /^step(_key| already)/.test(refusal);
  const others = steps.map((step) => step.step_key).filter((key) => !depends_on.includes(key));
  return (
    <form
      className="flex flex-col gap-3"
      onSubmit={(event) => {
        event.preventDefault();
        if (!add.isPending && online) add.mutate({ step_key, member_id, depends_on, prompt });
      }}
    >
      <div className="grid gap-3 sm:grid-cols-2">
        <TextField label="Step" error={isOfKey && refusal} value={step_key} onText={setKey} />
        <Field label="Member">
          {(control) => (
            <Select
              {...control}
              value={member_id}
              onChange={setMember}
              choices={spec.members.map((member) => ({ value: member.member_id, label: member.member_id }))}
            />
          )}
        </Field>
      </div>
      <Field label="Waits for">
        {(control) => (
          <Picks {...control} picked={depends_on} others={others} onChange={setNeeds} words={needWords} />
        )}
      </Field>
      <Field label="What is asked">
        {(control) => (
          <textarea
            {...control}
            rows={4}
            value={prompt}
            onChange={(event) => setPrompt(event.target.value)}
            className={`${inputClass} text-prose`}
          />
        )}
      </Field>
      {!isOfKey && <Refused error={add.error} />}
      <div className="flex justify-end">
        <Button
          type="submit"
          look="primary"
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
