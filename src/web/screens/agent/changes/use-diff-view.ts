/** The diff layout: unified, or split on screens that are wide enough. */
import { useState } from 'react';
import { readStored, store } from '../../../storage.ts';
import { mediaHook } from '../../../ui/media.ts';

export type View = 'unified' | 'split';

const KEY = 'svc.diff';
const useWide = mediaHook('(min-width: 1100px)');

export function useDiffView(): [{ view: View; is_wide: boolean }, (view: View) => void] {
  const is_wide = useWide();
  const [preferred, setPreferred] = useState<View>(readStored(KEY) === 'split' ? 'split' : 'unified');
  const set = (view: View) => {
    store(KEY, view);
    setPreferred(view);
  };
  return [{ view: is_wide ? preferred : 'unified', is_wide }, set];
}
