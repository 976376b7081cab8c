/** What somebody says with a word to a run or a step: an output, an answer, or why it failed. Kept until it was said. */
import { useState } from 'react';
import { wordsOf } from '../../api/client.ts';
import { Button } from '../../ui/button.tsx';
import { useDraft } from '../../ui/drafts.ts';
import { Field, inputClass } from '../../ui/field.tsx';
import { MOD } from '../../ui/keys.ts';
import { useOnline } from '../../ui/online.ts';
import { readValue } from './values.ts';

export interface Worded {
  output?: unknown;
  error_text?: string;
  input?: unknown;
}

const texts = {
  complete: { label: 'Output', button: 'Complete', busy: 'Completing…', look: 'primary' },
  fail: { label: 'Why it failed', button: 'Fail', busy: 'Failing…', look: 'danger' },
  resume: { label: 'Answer', button: 'Give it this', busy: 'Giving…', look: 'primary' },
} as const;

export function Wording({
  kind,
  draft,
  busy,
  error,
  onSay,
}: {
  kind: keyof typeof texts;
  draft: string;
  busy: boolean;
  error: unknown;
  /** Settles when it was said, or was not: then what was written stays. */
  onSay: (worded: Worded) => Promise<unknown>;
}) {
  const [text, setText] = useDraft(draft);
  const online = useOnline();
  const [isJson, setJson] = useState(false);
  const [fault, setFault] = useState<string | null>(null);
  const { label, button, busy: doing, look } = texts[kind];
  const say = () => {
    if (busy || !online) return;
    const read = kind === 'fail' ? { value: null, fault: null } : readValue(text, isJson);
    setFault(read.fault);
    if (read.fault !== null) return;
    const worded = {
      complete: { output: read.value },
      fail: { error_text: text },
      resume: { input: read.value },
    };
    onSay(worded[kind]).then(
      () => setText(''),
      () => {},
    );
  };
  return (
    <form
      className="flex flex-col gap-2"
      onSubmit={(event) => {
        event.preventDefault();
        say();
      }}
    >
      <Field label={label} error={fault ?? (error ? wordsOf(error) : null)}>
        {(control) => (
          <textarea
            {...control}
            value={text}
            onChange={(event) => setText(event.target.value)}
            onKeyDown={(event) => {
              if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) say();
            }}
            rows={3}
            className={`${inputClass} ${isJson ? 'font-mono' : ''}`}
          />
        )}
      </Field>
      <div className="flex flex-wrap items-center justify-between gap-2">
        {kind === 'fail' ? (
          <span />
        ) : (
          <label className="tap inline-flex items-center gap-1.5 text-muted">
            <input
              type="checkbox"
              checked={isJson}
              onChange={(event) => setJson(event.target.checked)}
              className="size-4"
            />
            this is JSON
          </label>
        )}
        <Button
          type="submit"
          look={look}
          busy={busy}
          disabled={!online}
          title={online ? `${MOD}⏎` : 'You are offline'}
        >
          {busy ? doing : button}
        </Button>
      </div>
    </form>
  );
}
