/** A form field that is bound to a path in the document. It shows the service's error about that path. */
import { type ReactNode, useRef } from 'react';
import { type ControlProps, Field, inputClass } from '../../ui/field.tsx';
import { at, type Doc, getText, type Json, type Path, put } from './document.ts';
import { type Fault, pathKey } from './faults.ts';

export interface FormProps {
  doc: Doc;
  /** The service's last error. */
  fault: Fault | null;
  onChange: (doc: Doc) => void;
}

export type PlacedControl = ControlProps & { 'data-path': string };

export function DocField({
  form,
  path,
  label,
  hint,
  lines,
  number,
  list,
  empty,
  change,
  children,
}: {
  form: FormProps;
  path: Path;
  label: string;
  hint?: string;
  /** The number of lines, for a multi-line text. */
  lines?: number;
  number?: boolean;
  /** A comma-separated list. */
  list?: boolean;
  /** Keeps an empty text; otherwise an empty field is removed from the document. */
  empty?: 'keep';
  /** For changes of more than this field. Gets the document as it was before the user typed into the field. */
  change?: (doc: Doc, text: string) => Doc;
  children?: (control: PlacedControl) => ReactNode;
}) {
  const { doc, fault, onChange } = form;
  const key = pathKey(path);
  const isThisField = fault !== null && pathKey(fault.path) === key;
  const value = at(doc, path);
  const text = list && Array.isArray(value) ? value.join(', ') : getText(doc, path);
  // While the user types a name, it may equal another one for a moment.
  const typed = useRef<{ before: Doc; after: Doc } | null>(null);
  const set = (next: string) => {
    if (change) {
      // The document may have been replaced since then, for example by what someone else has saved.
      const before = typed.current && isSame(typed.current.after, doc) ? typed.current.before : doc;
      const after = change(before, next);
      typed.current = { before, after };
      return onChange(after);
    }
    onChange(
      put(doc, path, read(next, { number: Boolean(number), list: Boolean(list), keep: empty === 'keep' })),
    );
  };
  return (
    <Field label={label} hint={hint} error={isThisField ? fault.message : null}>
      {(control) => {
        const control_props: PlacedControl = { ...control, 'data-path': key };
        if (children) return children(control_props);
        const common = { ...control_props, className: inputClass };
        if (lines !== undefined) {
          return (
            <textarea {...common} rows={lines} value={text} onChange={(event) => set(event.target.value)} />
          );
        }
        if (list) return <ListInput {...common} text={text} onText={set} />;
        return (
          <input
            {...common}
            inputMode={number ? 'numeric' : undefined}
            autoComplete="off"
            value={text}
            onBlur={() => {
              typed.current = null;
            }}
            onChange={(event) => set(event.target.value)}
          />
        );
      }}
    </Field>
  );
}

function isSame(a: Doc, b: Doc): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** Applied on blur, because a text that ends with a comma is not complete yet. */
function ListInput({
  text,
  onText,
  ...rest
}: PlacedControl & { className: string; text: string; onText: (text: string) => void }) {
  return (
    <input
      {...rest}
      key={text}
      autoComplete="off"
      autoCapitalize="none"
      defaultValue={text}
      onBlur={(event) => event.target.value !== text && onText(event.target.value)}
    />
  );
}

function read(
  text: string,
  { number, list, keep }: { number: boolean; list: boolean; keep: boolean },
): Json | undefined {
  if (list) {
    return text
      .split(',')
      .map((word) => word.trim())
      .filter(Boolean);
  }
  if (text === '' && !keep) return undefined;
  // Other text is kept as it is, for the service to reject.
  return number && /^-?\d+$/.test(text) ? Number(text) : text;
}

/** The known ids, none, and the current value if it is unknown. */
export function buildChoices(known: readonly string[], value: string, none: string) {
  const undefined_value =
    value !== '' && !known.includes(value) ? [{ value, label: `${value} (not defined)` }] : [];
  return [
    { value: '', label: none },
    ...[...new Set(known)].map((id) => ({ value: id, label: id })),
    ...undefined_value,
  ];
}
