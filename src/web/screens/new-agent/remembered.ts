/** Keeps the draft and the last choices of the form. The environment is never stored, because it may hold secrets. */
import { useState } from 'react';
import { useTabDraft } from '../../ui/drafts.ts';
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
  write: (written: Written) => void;
  /** Deletes the draft, and remembers the choices. */
  finish: (choices: Remembered) => void;
}

export function useStoredDraft(): StoredDraft {
  const [written, setWritten] = useTabDraft('new-agent');
  const [chosen, setChosen] = useTabDraft('new-agent.choices');
  const [env, setEnv] = useState('');
  return {
    written: { ...(parsed(written) as Written), env },
    remembered: parsed(chosen) as Remembered,
    write: (next) => {
      setEnv(next.env ?? '');
      const { env: _, ...rest } = next;
      setWritten(JSON.stringify(rest));
    },
    finish: (choices) => {
      setChosen(JSON.stringify(choices));
      setWritten('');
      setEnv('');
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
