/**
 * The text of a field whose value is kept elsewhere and follows late, such as in the URL. The field must not wait for it: the
 * browser would move the caret to the end, and lose letters that are typed meanwhile.
 */
import { useEffect, useRef, useState } from 'react';

/** `after_ms`: how long the user must pause before `onText` is called. */
export function useTyped(
  value: string,
  onText: (text: string) => void,
  after_ms = 0,
): [string, (text: string) => void] {
  const [text, setText] = useState(value);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const listener = useRef(onText);
  listener.current = onText;
  /** Values that follow from what was typed. The last one may still be on its way. */
  const own = useRef<string[]>([]);
  useEffect(() => {
    const at = own.current.indexOf(value);
    own.current = at < 0 ? [] : own.current.slice(at + 1);
    if (at >= 0) return;
    clearTimeout(timer.current);
    setText(value);
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const apply = (next: string) => {
    own.current.push(next);
    listener.current(next);
  };
  const type = (next: string) => {
    setText(next);
    clearTimeout(timer.current);
    if (after_ms === 0) apply(next);
    else timer.current = setTimeout(apply, after_ms, next);
  };
  return [text, type];
}
