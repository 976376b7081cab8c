/** The filter of a screen. The shortcut `/` focuses it. */
import { cx } from './cx.ts';
import { inputClass } from './field.tsx';
import { useTouch } from './media.ts';

export function FilterField({
  label,
  placeholder = label,
  shows_key = false,
  value,
  onText,
  className,
}: {
  label: string;
  placeholder?: string;
  /** Shows the shortcut after the placeholder, except on touch screens. */
  shows_key?: boolean;
  value: string;
  onText: (text: string) => void;
  className?: string;
}) {
  const is_touch = useTouch();
  return (
    <input
      type="search"
      data-filter
      dir="auto"
      aria-label={label}
      placeholder={shows_key && !is_touch ? `${placeholder}  /` : placeholder}
      value={value}
      onChange={(event) => onText(event.target.value)}
      className={cx(inputClass, className)}
    />
  );
}
