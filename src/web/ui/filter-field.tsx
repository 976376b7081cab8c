/** The filter of a screen. The shortcut `/` focuses it. */
import { cx } from './cx.ts';
import { inputClass } from './field.tsx';

export function FilterField({
  label,
  placeholder = label,
  value,
  onText,
  className,
}: {
  label: string;
  placeholder?: string;
  value: string;
  onText: (text: string) => void;
  className?: string;
}) {
  return (
    <input
      type="search"
      data-filter
      aria-label={label}
      placeholder={placeholder}
      value={value}
      onChange={(event) => onText(event.target.value)}
      className={cx(inputClass, className)}
    />
  );
}
