/** How lines are shown; stored in the browser. */
import { useState } from 'react';
import { readStored, store } from '../../../storage.ts';

const KEY = 'svc.output';

export interface Options {
  wrap: boolean;
  times: boolean;
}

export function useOptions(): [Options, (change: Partial<Options>) => void] {
  const [options, setOptions] = useState(read);
  const change = (fields: Partial<Options>) => {
    const next = { ...options, ...fields };
    setOptions(next);
    store(KEY, JSON.stringify(next));
  };
  return [options, change];
}

function read(): Options {
  let stored: Partial<Options> = {};
  try {
    stored = JSON.parse(readStored(KEY) ?? '{}') as Partial<Options>;
  } catch {}
  return { wrap: stored.wrap === true, times: stored.times === true };
}
