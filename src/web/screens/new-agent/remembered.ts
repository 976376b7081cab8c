/** Keeps the draft and the last choices of the form. The environment is never stored, because it may hold secrets. */
import { useRef, useState } from 'react';
import { type LastAttempt, lastAttempt } from '../../api/act-key.ts';
import { useSession } from '../../api/session.ts';
import { readStored, store } from '../../storage.ts';
import { placeOf, useTabDraft } from '../../ui/drafts.ts';
import type { Draft, PresetShape } from './form.ts';

/** What the user has entered or chosen since the last start. */
export type Written = { [Field in keyof Draft]?: Draft[Field] | undefined };

/** The choices of the last start. */
export type Remembered = Pick<Written, 'preset' | 'where' | 'repo' | 'node_id'> & {
  /** The name and the shape of the preset. */
  preset_name?: string;
  shape?: PresetShape;
};

export interface StoredDraft {
  written: Written;
  remembered: Remembered;
  /** The agent's name and the idempotency key of the last attempt to send this draft. It is stored like the draft. */
  last_attempt: LastAttempt<{ name: string; key: string }>;
  write: (written: Written) => void;
  /** Deletes the stored draft and stores the choices, without rendering this form, which is about to close. */
  finish: (choices: Remembered) => void;
}

const DRAFT = 'new-agent';
const CHOICES = 'new-agent.choices';
const ATTEMPT = 'new-agent.attempt';

export function useStoredDraft(): StoredDraft {
  const current = useSession();
  const [written, setWritten] = useTabDraft(DRAFT);
  const [chosen] = useTabDraft(CHOICES);
  const [env, setEnv] = useState('');
  // Other tabs do not change this one.
  const attempt = useRef<string | null>(null);
  const keep = (text: string | null) => {
    attempt.current = text;
    // Without a draft, nothing would show later that the attempt has failed.
    store(placeOf(current, ATTEMPT), written !== '' && env === '' ? text : null);
  };
  return {
    written: { ...(parsed(written) as Written), env },
    remembered: parsed(chosen) as Remembered,
    last_attempt: lastAttempt(() => attempt.current ?? readStored(placeOf(current, ATTEMPT)), keep),
    write: (next) => {
      setEnv(next.env ?? '');
      const { env: _, ...rest } = next;
      setWritten(JSON.stringify(rest));
      keep(null);
    },
    finish: (choices) => {
      store(placeOf(current, CHOICES), JSON.stringify(choices));
      store(placeOf(current, DRAFT), null);
      keep(null);
    },
  };
}

function parsed(text: string): object {
  try {
    return text === '' ? {} : (JSON.parse(text) as object);
  } catch {
    return {};
  }
}
