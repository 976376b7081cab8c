/** The error of an action of a screen. */
import { use, useEffect } from 'react';
import { errorMessage } from '../api/client.ts';
import { InSheet } from './sheet.ts';
import { showToast } from './toast.tsx';

/** Errors that were shown, so that a change of the screen's size does not show them again as toasts. */
const seen = new WeakSet<object>();

/** Shown next to the button, or as a toast if the button is in the sheet of a phone's screen, which the press has closed. */
export function ScreenActionError({ title, error }: { title: string; error: Error | null }) {
  const in_sheet = use(InSheet);
  useEffect(() => {
    if (!error || seen.has(error)) return;
    seen.add(error);
    if (in_sheet) showToast(title, errorMessage(error));
  }, [in_sheet, title, error]);
  if (in_sheet || !error) return null;
  return (
    <span role="alert" className="text-failed text-sm">
      {errorMessage(error)}
    </span>
  );
}
