/** The form for a definition, with the fields that most teams need. The JSON has all of them. */
import { Plus } from 'lucide-react';
import { Button } from '../../ui/button.tsx';
import { Select } from '../../ui/select.tsx';
import { type Doc, freeName, getList, getText, put } from './document.ts';
import type { Fault } from './faults.ts';
import { buildChoices, DocField, type FormProps } from './form-field.tsx';
import { MemberForm } from './member-form.tsx';
import { StepForm } from './step-form.tsx';

/** Further steps can be edited as JSON. */
const STEPS_SHOWN = 60;

export function TeamForm({
  doc,
  disabled,
  fault,
  onChange,
}: {
  doc: Doc;
  disabled: boolean;
  fault: Fault | null;
  onChange: (doc: Doc) => void;
}) {
  const form: FormProps = { doc, fault, onChange };
  const members = getList(doc, ['spec', 'members']);
  const steps = getList(doc, ['spec', 'steps']);
  const ids = members
    .map((_, index) => getText(doc, ['spec', 'members', index, 'member_id']))
    .filter(Boolean);
  return (
    <fieldset disabled={disabled} className="flex min-w-0 flex-col gap-4">
      <legend className="sr-only">Definition</legend>
      <DocField form={form} path={['name']} label="Name" />
      <DocField
        form={form}
        path={['key']}
        label="Task key"
        hint="2 to 5 uppercase letters that its tasks begin with, like DEM-1. Leave it empty to use the name."
      />
      <DocField form={form} path={['description']} label="Description" lines={2} empty="keep" />
      <DocField
        form={form}
        path={['human_members']}
        label="People"
        hint="Comma-separated usernames. These users can view and edit the team and work with its runs."
        list
      />
      <div className="grid gap-3 sm:grid-cols-2">
        <DocField form={form} path={['spec', 'leader_member_id']} label="Leader">
          {(control) => (
            <Select
              {...control}
              value={getText(doc, ['spec', 'leader_member_id'])}
              onChange={(value) =>
                onChange(put(doc, ['spec', 'leader_member_id'], value === '' ? null : value))
              }
              choices={buildChoices(ids, getText(doc, ['spec', 'leader_member_id']), 'No leader')}
            />
          )}
        </DocField>
        <DocField form={form} path={['spec', 'review_route']} label="Permission reviews go to">
          {(control) => (
            <Select
              {...control}
              value={getText(doc, ['spec', 'review_route']) || 'human'}
              onChange={(value) => onChange(put(doc, ['spec', 'review_route'], value))}
              choices={[
                { value: 'human', label: 'People' },
                { value: 'leader', label: 'The leader first' },
              ]}
            />
          )}
        </DocField>
      </div>

      <section aria-label="Members" className="flex min-w-0 flex-col gap-2">
        <h2 className="font-medium">Members</h2>
        {members.map((_, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the position is the only identity that stays while the name is edited
          <MemberForm key={index} form={form} index={index} alone={members.length === 1} />
        ))}
        <div>
          <Button
            icon={<Plus aria-hidden />}
            onClick={() =>
              onChange(
                put(doc, ['spec', 'members', members.length], {
                  member_id: freeName('member', ids),
                  agent: { preset: 'demo', worktree_mode: 'create_worktree' },
                }),
              )
            }
          >
            Add member
          </Button>
        </div>
      </section>

      <section aria-label="Steps" className="flex min-w-0 flex-col gap-2">
        <h2 className="font-medium">Steps</h2>
        {steps.slice(0, STEPS_SHOWN).map((_, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: as above
          <StepForm key={index} form={form} index={index} members={ids} steps={steps} />
        ))}
        {steps.length > STEPS_SHOWN && (
          <p className="text-muted">{steps.length - STEPS_SHOWN} more steps are in the JSON.</p>
        )}
        <div>
          <Button
            icon={<Plus aria-hidden />}
            onClick={() =>
              onChange(
                put(doc, ['spec', 'steps', steps.length], {
                  step_key: freeName(
                    'step',
                    steps.map(({ step_key }) => step_key ?? null),
                  ),
                  ...(ids[0] !== undefined && { member_id: ids[0] }),
                }),
              )
            }
          >
            Add step
          </Button>
        </div>
      </section>
    </fieldset>
  );
}
