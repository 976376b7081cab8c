/** A menu behind a button. */
import { Menu as Base } from '@base-ui/react/menu';
import { type ReactElement, type ReactNode, use } from 'react';
import { cx } from './cx.ts';
import { InSheet, sheetItemClass } from './sheet.ts';

export interface MenuItem {
  label: ReactNode;
  icon?: ReactNode;
  onSelect: () => void;
  danger?: boolean;
  disabled?: boolean;
  /** Why it is disabled, or what it does. */
  hint?: string;
}

interface MenuProps {
  trigger: ReactElement;
  items: (MenuItem | null | false)[];
}

/** Within the sheet of a phone's screen, its items are part of the sheet. */
export function Menu({ trigger, items: given }: MenuProps) {
  const items = given.filter((item): item is MenuItem => Boolean(item));
  return use(InSheet) ? <SheetItems items={items} /> : <DropDown trigger={trigger} items={items} />;
}

function SheetItems({ items }: { items: readonly MenuItem[] }) {
  return items.map(({ label, icon, onSelect, danger, disabled, hint }) => (
    <button
      key={String(label)}
      type="button"
      onClick={onSelect}
      disabled={disabled}
      title={hint}
      className={cx(sheetItemClass, danger && 'text-failed')}
    >
      {icon}
      {label}
    </button>
  ));
}

function DropDown({ trigger, items }: { trigger: ReactElement; items: readonly MenuItem[] }) {
  return (
    <Base.Root>
      <Base.Trigger render={trigger} />
      <Base.Portal>
        <Base.Positioner sideOffset={4} align="end" className="z-50">
          <Base.Popup className="min-w-44 rounded-lg border border-line bg-raised p-1 shadow-overlay outline-none data-open:animate-enter">
            {items.map(({ label, icon, onSelect, danger, disabled, hint }) => (
              <Base.Item
                key={String(label)}
                onClick={onSelect}
                disabled={disabled ?? false}
                title={hint}
                className={cx(
                  'tap flex cursor-pointer items-center gap-2 rounded px-2 outline-none data-disabled:opacity-50 data-highlighted:bg-surface [&_svg]:size-4',
                  danger && 'text-failed',
                )}
              >
                {icon}
                {label}
              </Base.Item>
            ))}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}
