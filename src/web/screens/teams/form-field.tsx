/** A field of the form that is a place in the document: it reads it, writes it, and shows what the service said of it. */
import { type ReactNode, useRef } from 'react';
import { type ControlProps, Field, inputClass } from '../../ui/field.tsx';
import { at, type Doc, type Json, type Path, put, textAt } from './document.ts';
import { type Fault, pathKey } from './faults.ts';

export interface FormProps {
  doc: Doc;
  /** What the service refused last. */
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
  /** A text of several lines. */
  lines?: number;
  number?: boolean;
  /** Words with commas between them. */
  list?: boolean;
  /** An empty text stays one; else the field is taken away with its last letter. */
  empty?: 'keep';
  /** Where a change means more than this field: of the document as it was when the cursor came here. */
  change?: (doc: Doc, text: string) => Doc;
  children?: (control: PlacedControl) => ReactNode;
}) {
  const { doc, fault, onChange } = form;
  const key = pathKey(path);
  const isMine = fault !== null && pathKey(fault.path) === key;
  const value = at(doc, path);
  const text = list && Array.isArray(value) ? value.join(', ') : textAt(doc, path);
  // A name that is being typed may be another one's for a moment.
  const before = useRef<Doc | null>(null);
  const set = (next: string) => {
    if (change) return onChange(change(before.current ?? doc, next));
    onChange(
      put(doc, path, read(next, { number: Boolean(number), list: Boolean(list), keep: empty === 'keep' })),
    );
  };
  return (
    <Field label={label} hint={hint} error={isMine ? fault.message : null}>
      {(control) => {
        const placed: PlacedControl = { ...control, 'data-path': key };
        if (children) return children(placed);
        const common = { ...placed, className: inputClass };
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
            onFocus={() => {
              before.current = doc;
            }}
            onBlur={() => {
              before.current = null;
            }}
            onChange={(event) => set(event.target.value)}
          />
        );
      }}
    </Field>
  );
}

/** Written when it is left: a comma that is being typed is no word yet. */
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
  // What is no number is left to the service to refuse, as it was typed.
  return number && /^-?\d+$/.test(text) ? Number(text) : text;
}

/** The known ones, none, and what is written although nobody knows it. */
export function choicesOf(known: readonly string[], value: string, none: string) {
  const strange = value !== '' && !known.includes(value) ? [{ value, label: `${value} (not defined)` }] : [];
  return [
    { value: '', label: none },
    ...[...new Set(known)].map((id) => ({ value: id, label: id })),
    ...strange,
  ];
}
