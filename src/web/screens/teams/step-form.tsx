/** The form for one step: its member, dependencies and prompt. */
import { X } from 'lucide-react';
import { IconButton } from '../../ui/button.tsx';
import { Disclosure } from '../../ui/disclosure.tsx';
import { Needs } from '../../ui/needs.tsx';
import { Select } from '../../ui/select.tsx';
import { at, type Doc, getText, put, removeStep, renameStep } from './document.ts';
import { buildChoices, DocField, type FormProps } from './form-field.tsx';

export function StepForm({
  form,
  index,
  members,
  steps,
}: {
  form: FormProps;
  index: number;
  members: readonly string[];
  steps: readonly Doc[];
}) {
  const { doc, onChange } = form;
  const path = ['spec', 'steps', index] as const;
  const key = getText(doc, [...path, 'step_key']);
  const label = key || `step ${index + 1}`;
  const listed = at(doc, [...path, 'depends_on']);
  const needs = Array.isArray(listed) ? listed.filter((need) => typeof need === 'string') : [];
  const setNeeds = (next: string[]) =>
    onChange(put(doc, [...path, 'depends_on'], next.length > 0 ? next : undefined));
  const others = steps
    .map(({ step_key }) => step_key)
    .filter((item): item is string => typeof item === 'string' && item !== '' && item !== key);
  return (
    <fieldset className="flex min-w-0 flex-col gap-2 rounded-md border border-line p-3">
      <legend className="sr-only">{label}</legend>
      <div className="flex items-start gap-2">
        <div className="grid min-w-0 flex-1 gap-2 sm:grid-cols-2">
          <DocField
            form={form}
            path={[...path, 'step_key']}
            label="Step"
            change={(before, text) => renameStep(before, index, text)}
          />
          <DocField form={form} path={[...path, 'member_id']} label="Member">
            {(control) => (
              <Select
                {...control}
                value={getText(doc, [...path, 'member_id'])}
                onChange={(value) =>
                  onChange(put(doc, [...path, 'member_id'], value === '' ? undefined : value))
                }
                choices={buildChoices(
                  members,
                  getText(doc, [...path, 'member_id']),
                  'The leader, or the first member',
                )}
              />
            )}
          </DocField>
        </div>
        <IconButton
          label={`Remove ${label}`}
          icon={<X aria-hidden />}
          onClick={() => onChange(removeStep(doc, index))}
        />
      </div>
      <DocField form={form} path={[...path, 'depends_on']} label="Waits for">
        {(control) => <Needs {...control} needs={needs} steps={others} onChange={setNeeds} />}
      </DocField>
      <DocField form={form} path={[...path, 'prompt']} label="Prompt" lines={2} />
      <Disclosure summary="More">
        <div className="grid gap-2 pt-1 sm:grid-cols-3">
          <DocField form={form} path={[...path, 'when']} label="When to run">
            {(control) => (
              <Select
                {...control}
                value={getText(doc, [...path, 'when']) || 'on_success'}
                onChange={(value) =>
                  onChange(put(doc, [...path, 'when'], value === 'always' ? value : undefined))
                }
                choices={[
                  { value: 'on_success', label: 'If its dependencies complete' },
                  { value: 'always', label: 'Always' },
                ]}
              />
            )}
          </DocField>
          <DocField form={form} path={[...path, 'max_attempts']} label="Maximum attempts" number />
          <DocField form={form} path={[...path, 'timeout_seconds']} label="Timeout (seconds)" number />
        </div>
      </Disclosure>
    </fieldset>
  );
}
