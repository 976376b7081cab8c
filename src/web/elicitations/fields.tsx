/** The controls of an agent's form, each with its label, description and error. */
import { useId } from 'react';
import { escapeHidden } from '../../core/visible.ts';
import { Field, inputClass } from '../ui/field.tsx';
import { Select } from '../ui/select.tsx';
import { describeRules, type FieldValue, type FormField } from './form.ts';

export interface ControlledField {
  field: FormField;
  /** Of the control, if it has one value. */
  name: string;
  value: FieldValue;
  /** The error for it. */
  error: string | null;
  onChange: (value: FieldValue) => void;
}

export function FormControl({ error, ...field }: ControlledField) {
  const props = { ...field, error: error && `${fieldName(field.field)} ${error}` };
  switch (props.field.type) {
    case 'boolean':
      return <BooleanField {...props} />;
    case 'choices':
      return <ChoicesField {...props} />;
    default:
      return <OneValueField {...props} />;
  }
}

const inputTypes = { email: 'email', uri: 'url', date: 'date', 'date-time': 'datetime-local' } as const;

/** Text, a number, or one choice. */
function OneValueField({ field, name, value, error, onChange }: ControlledField) {
  const { type, format, required, min, max, choices } = field;
  const is_number = type === 'number' || type === 'integer';
  return (
    <Field label={fieldLabel(field)} hint={fieldHint(field)} error={error}>
      {(control) =>
        type === 'choice' ? (
          <Select
            {...control}
            required={required}
            value={String(value)}
            onChange={onChange}
            choices={[
              { value: '', label: required ? 'Choose…' : 'None' },
              ...choices.map((choice, at) => ({ value: String(at), label: choiceLabel(choice) })),
            ]}
          />
        ) : (
          <input
            {...control}
            name={name}
            className={inputClass}
            type={is_number ? 'number' : format === null ? 'text' : inputTypes[format]}
            {...(is_number && {
              step: type === 'integer' ? 1 : 'any',
              min: min ?? undefined,
              max: max ?? undefined,
            })}
            {...(format === 'date-time' && { step: 1 })}
            required={required}
            autoComplete="off"
            value={String(value)}
            onChange={(event) => onChange(event.target.value)}
          />
        )
      }
    </Field>
  );
}

function BooleanField({ field, value, error, onChange }: ControlledField) {
  const id = useId();
  return (
    <div className="flex min-w-0 flex-col gap-1">
      <label className="tap flex items-center gap-2 font-medium text-sm">
        <input
          type="checkbox"
          className="size-6 shrink-0"
          checked={value === true}
          aria-describedby={id}
          aria-invalid={error ? true : undefined}
          onChange={(event) => onChange(event.target.checked)}
        />
        <span className="min-w-0 break-words">{fieldName(field)}</span>
      </label>
      <Described id={id} field={field} error={error} />
    </div>
  );
}

function ChoicesField({ field, value, error, onChange }: ControlledField) {
  const id = useId();
  const chosen = Array.isArray(value) ? (value as readonly number[]) : [];
  return (
    <fieldset aria-describedby={id} className="flex min-w-0 flex-col gap-1">
      <legend className="font-medium text-sm">{fieldLabel(field)}</legend>
      {field.choices.map((choice, at) => (
        <label key={choice.value} className="tap flex items-center gap-2">
          <input
            type="checkbox"
            className="size-6 shrink-0"
            checked={chosen.includes(at)}
            aria-invalid={error ? true : undefined}
            onChange={(event) =>
              onChange(
                event.target.checked
                  ? [...chosen, at].sort((a, b) => a - b)
                  : chosen.filter((item) => item !== at),
              )
            }
          />
          <span className="min-w-0 break-words">{choiceLabel(choice)}</span>
        </label>
      ))}
      <Described id={id} field={field} error={error} />
    </fieldset>
  );
}

function Described({ id, field, error }: { id: string; field: FormField; error: string | null }) {
  return (
    <div id={id} className="text-sm">
      {error && (
        <p role="alert" className="text-failed">
          {error}
        </p>
      )}
      <p className="text-muted">{fieldHint(field)}</p>
    </div>
  );
}

function fieldName({ title, name }: FormField): string {
  return escapeHidden(title || name);
}

function fieldLabel(field: FormField): string {
  return field.required ? fieldName(field) : `${fieldName(field)} (optional)`;
}

function fieldHint(field: FormField): string {
  return [field.description, describeRules(field)]
    .filter(Boolean)
    .map((text) => escapeHidden(text!))
    .join(' · ');
}

function choiceLabel({ title, description }: FormField['choices'][number]): string {
  return escapeHidden(description ? `${title} · ${description}` : title);
}
