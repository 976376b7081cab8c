/** The diff layout: unified, or split on screens that are wide enough. */
import { useState, useSyncExternalStore } from 'react';

export type View = 'unified' | 'split';

const KEY = 'svc.diff';
const wide = globalThis.matchMedia?.('(min-width: 1100px)');

export function useDiffView(): [{ view: View; is_wide: boolean }, (view: View) => void] {
  const is_wide = useSyncExternalStore(subscribe, () => wide.matches);
  const [preferred, setPreferred] = useState<View>(
    localStorage.getItem(KEY) === 'split' ? 'split' : 'unified',
  );
  const set = (view: View) => {
    localStorage.setItem(KEY, view);
    setPreferred(view);
  };
  return [{ view: is_wide ? preferred : 'unified', is_wide }, set];
}

function subscribe(listener: () => void): () => void {
  wide.addEventListener('change', listener);
  return () => wide.removeEventListener('change', listener);
}
