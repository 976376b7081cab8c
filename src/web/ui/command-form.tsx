/** The form for a command with a value: an output, an answer, or an error text. The text is a draft until it is sent. */
import { useRef, useState } from 'react';
import { errorMessage } from '../api/client.ts';
import { Button } from './button.tsx';
import { jsonDraft, unlessSent, useDraft } from './drafts.ts';
import { Field, inputClass } from './field.tsx';
import { isModEnter, MOD } from './keys.ts';
import { useOnline } from './online.ts';
import { type CommandInput, readCommandInput, type ValueCommand } from './values.ts';

const texts = {
  complete: { label: 'Output', button: 'Complete', busy: 'Completing…', variant: 'primary' },
  fail: { label: 'Error text', button: 'Fail', busy: 'Failing…', variant: 'danger' },
  resume: { label: 'Answer', button: 'Send answer', busy: 'Sending…', variant: 'primary' },
} as const satisfies Record<ValueCommand, object>;

interface CommandFormProps {
  command: ValueCommand;
  /** The key of the draft. */
  draft: string;
  busy: boolean;
  error: unknown;
  /** The draft is kept if this rejects. */
  onSend: (input: CommandInput) => Promise<unknown>;
}

export function CommandForm({ command, draft, busy, error, onSend }: CommandFormProps) {
  const online = useOnline();
  const field = useRef<HTMLTextAreaElement>(null);
  const { text, changeText, is_json, changeJson, fault, send } = useCommandText(command, draft, onSend);
  const { label, button, busy: busy_label, variant } = texts[command];
  const submit = () => {
    if (!busy && online && !send()) field.current?.focus();
  };
  return (
    <form
      className="flex flex-col gap-2"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <Field label={label} error={fault ?? (error ? errorMessage(error) : null)}>
        {(control) => (
          <textarea
            {...control}
            ref={field}
            value={text}
            onChange={(event) => changeText(event.target.value)}
            onKeyDown={(event) => {
              if (isModEnter(event.nativeEvent)) submit();
            }}
            rows={3}
            className={`${inputClass} ${is_json ? 'font-mono' : ''}`}
          />
        )}
      </Field>
      <div className="flex flex-wrap items-center justify-between gap-2">
        {command === 'fail' ? <span /> : <JsonSwitch checked={is_json} onChange={changeJson} />}
        <Button
          type="submit"
          variant={variant}
          busy={busy}
          disabled={!online}
          title={online ? `${MOD}⏎` : 'You are offline'}
        >
          {busy ? busy_label : button}
        </Button>
      </div>
    </form>
  );
}

/** The text of the form; `send` passes it to `onSend` as the command's input, or returns false if it has a fault. */
function useCommandText(
  command: ValueCommand,
  draft: string,
  onSend: (input: CommandInput) => Promise<unknown>,
) {
  const [text, setText] = useDraft(draft);
  const [json, setJson] = useDraft(jsonDraft(draft));
  const is_json = json !== '';
  const [fault, setFault] = useState<string | null>(null);
  const send = (): boolean => {
    const read = readCommandInput(command, text, is_json);
    setFault(read.fault);
    if (read.input === null) return false;
    onSend(read.input).then(
      () => {
        setText(unlessSent(text));
        setJson('');
      },
      () => {},
    );
    return true;
  };
  // The fault is about what the form contained before.
  const changeText = (next: string) => {
    setFault(null);
    setText(next);
  };
  const changeJson = (next: boolean) => {
    setFault(null);
    setJson(next ? 'true' : '');
  };
  return { text, changeText, is_json, changeJson, fault, send };
}

function JsonSwitch({ checked, onChange }: { checked: boolean; onChange: (checked: boolean) => void }) {
  return (
    <label className="tap inline-flex items-center gap-1.5 text-muted">
      <input
        type="checkbox"
        checked={checked}
        onChange={(event) => onChange(event.target.checked)}
        className="size-4"
      />
      Send as JSON
    </label>
  );
}
