/** The filter of a screen. The shortcut `/` focuses it. */
import { cx } from './cx.ts';
import { inputClass } from './field.tsx';
import { useTouch } from './media.ts';
import { useTyped } from './use-typed.ts';

export function FilterField({
  label,
  placeholder = label,
  shows_key = false,
  value,
  onText,
  after_ms,
  className,
}: {
  label: string;
  placeholder?: string;
  /** Shows the shortcut after the placeholder, except on touch screens. */
  shows_key?: boolean;
  value: string;
  onText: (text: string) => void;
  /** How long the user must pause before `onText` is called. */
  after_ms?: number;
  className?: string;
}) {
  const is_touch = useTouch();
  const [text, setText] = useTyped(value, onText, after_ms);
  return (
    <input
      type="search"
      data-filter
      dir="auto"
      aria-label={label}
      placeholder={shows_key && !is_touch ? `${placeholder}  /` : placeholder}
      value={text}
      onChange={(event) => setText(event.target.value)}
      className={cx(inputClass, className)}
    />
  );
}
