/** A menu behind a button. */
import { Menu as Base } from '@base-ui/react/menu';
import type { ReactElement, ReactNode } from 'react';
import { cx } from './cx.ts';

export interface MenuItem {
  label: ReactNode;
  icon?: ReactNode;
  onSelect: () => void;
  danger?: boolean;
  disabled?: boolean;
  /** Why it is disabled, or what it does. */
  hint?: string;
}

export function Menu({ trigger, items }: { trigger: ReactElement; items: (MenuItem | null | false)[] }) {
  return (
    <Base.Root>
      <Base.Trigger render={trigger} />
      <Base.Portal>
        <Base.Positioner sideOffset={4} align="end" className="z-50">
          <Base.Popup className="min-w-44 rounded-lg border border-line bg-raised p-1 shadow-overlay outline-none">
            {items.filter(Boolean).map((item) => {
              const { label, icon, onSelect, danger, disabled, hint } = item as MenuItem;
              return (
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
              );
            })}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}
