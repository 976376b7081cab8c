/** A text field with a list of suggestions below it, which filter as the user types. Any text is allowed. */
import { type KeyboardEvent, type ReactNode, useId, useState } from 'react';
import { cx } from './cx.ts';
import { type ControlProps, inputClass } from './field.tsx';
import { hasModifier, isComposing } from './keys.ts';

const popupClass =
  'scroll-y absolute top-full left-0 z-20 mt-1 max-h-72 w-full min-w-64 rounded-lg border border-line bg-raised p-1 shadow-overlay';

export interface ComboboxOption {
  value: string;
  label: ReactNode;
  /** What typed text is looked for in; default: the value. */
  words?: string;
}

interface ComboboxProps {
  control: ControlProps;
  /** The name of the list. */
  label: string;
  value: string;
  options: readonly ComboboxOption[];
  /** Shown instead of the list if there are no options. */
  note?: string | undefined;
  placeholder?: string | undefined;
  disabled?: boolean;
  onValue: (value: string) => void;
  /** Called with the value when the focus leaves the field. */
  onLeave?: (value: string) => void;
}

export function Combobox(props: ComboboxProps) {
  const { control, label, value, options, note, placeholder, disabled = false, onLeave } = props;
  const id = useId();
  const list = useList(props);
  const { shown, active } = list;
  const is_open = list.open && !disabled && shown.length > 0;
  return (
    <div className="relative">
      <input
        {...control}
        role="combobox"
        aria-autocomplete="list"
        aria-expanded={is_open}
        aria-controls={is_open ? id : undefined}
        aria-activedescendant={is_open && shown[active] ? `${id}-${active}` : undefined}
        value={value}
        placeholder={placeholder}
        disabled={disabled}
        spellCheck={false}
        autoComplete="off"
        autoCapitalize="off"
        onClick={list.show}
        onChange={(event) => list.type(event.target.value)}
        onKeyDown={(event) => list.onKey(event, is_open)}
        onBlur={() => {
          list.hide();
          onLeave?.(value);
        }}
        className={cx(inputClass, 'text-ellipsis pr-7')}
      />
      <span
        aria-hidden
        className="select-chevron pointer-events-none absolute top-1/2 right-[11px] -mt-[1.5px] -translate-y-1/2"
      />
      {list.open && !disabled && note !== undefined && options.length === 0 && (
        <p className={cx(popupClass, 'text-muted')}>{note}</p>
      )}
      {is_open && <OptionList {...{ id, label, shown, active }} onChoose={list.choose} />}
    </div>
  );
}

/** Whether the list is open, what it shows, and which option the keys have reached. */
function useList({ value, options, onValue }: Pick<ComboboxProps, 'value' | 'options' | 'onValue'>) {
  const [open, setOpen] = useState(false);
  // Until the user types, the list is complete, because the field usually has a value already.
  const [typed, setTyped] = useState(false);
  /** Null until a key moves it. */
  const [cursor, setCursor] = useState<number | null>(null);
  const sought = value.trim().toLowerCase();
  const shown = typed
    ? options.filter(({ words, value: own }) => (words ?? own).toLowerCase().includes(sought))
    : options;
  const active = cursor ?? (typed ? -1 : options.findIndex((option) => option.value === value));
  const hide = () => setOpen(false);
  const show = () => {
    if (open) return;
    setOpen(true);
    setTyped(false);
    setCursor(null);
  };
  const type = (text: string) => {
    onValue(text);
    setOpen(true);
    setTyped(true);
    setCursor(null);
  };
  const choose = (option: ComboboxOption) => {
    onValue(option.value);
    hide();
  };
  const onKey = (event: KeyboardEvent, is_open: boolean) => {
    if (isComposing(event.nativeEvent)) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      if (is_open) setCursor(Math.min(Math.max(active + step, 0), shown.length - 1));
      else show();
    } else if (event.key === 'Enter' && is_open && shown[active] && !hasModifier(event.nativeEvent)) {
      event.preventDefault();
      choose(shown[active]);
    } else if (event.key === 'Escape' && is_open) {
      event.stopPropagation();
      hide();
    }
  };
  return { open, shown, active, show, hide, type, choose, onKey };
}

function OptionList({
  id,
  label,
  shown,
  active,
  onChoose,
}: {
  id: string;
  label: string;
  shown: readonly ComboboxOption[];
  active: number;
  onChoose: (option: ComboboxOption) => void;
}) {
  return (
    <div id={id} role="listbox" aria-label={label} className={popupClass}>
      {shown.map((option, at) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the field handles the keys
        // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the field
        <div
          key={option.value}
          id={`${id}-${at}`}
          role="option"
          aria-selected={at === active}
          ref={(element) => {
            if (at === active) element?.scrollIntoView({ block: 'nearest' });
          }}
          // The field keeps the focus.
          onPointerDown={(event) => event.preventDefault()}
          onClick={() => onChoose(option)}
          className={cx('tap cursor-pointer rounded px-2 py-1', at === active && 'bg-surface')}
        >
          {option.label}
        </div>
      ))}
    </div>
  );
}
