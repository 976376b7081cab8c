/** Keeps the draft and the last choices of the form. The environment is never stored, because it may hold secrets. */
import { useState } from 'react';
import { useDraft } from '../../ui/drafts.ts';
import { type Draft, EMPTY } from './form.ts';

const SAVED_FIELDS = ['preset', 'where', 'repo', 'node_id'] as const;

/** `initial`: defaults for what was never chosen. */
export function useFormDraft(initial: Partial<Draft>): [Draft, (draft: Draft) => void, () => void] {
  const [written, setWritten] = useDraft('new-agent');
  const [chosen, setChosen] = useDraft('new-agent.choices');
  const [env, setEnv] = useState('');
  const draft: Draft = { ...EMPTY, ...initial, ...parsed(chosen), ...parsed(written), env };
  // The default repository may arrive after an empty one was stored.
  if (draft.repo === '') draft.repo = initial.repo ?? '';
  const keep = (next: Draft) => {
    setEnv(next.env);
    const { env: _, ...rest } = next;
    setWritten(JSON.stringify(rest));
  };
  const forget = () => {
    setChosen(JSON.stringify(Object.fromEntries(SAVED_FIELDS.map((key) => [key, draft[key]]))));
    setWritten('');
    setEnv('');
  };
  return [draft, keep, forget];
}

function parsed(text: string): Partial<Draft> {
  try {
    return text === '' ? {} : (JSON.parse(text) as Partial<Draft>);
  } catch {
    return {};
  }
}
