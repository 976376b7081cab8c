/** A menu behind a button. */
import { Menu as Base } from '@base-ui/react/menu';
import {
  cloneElement,
  type HTMLAttributes,
  type KeyboardEvent,
  type ReactElement,
  type ReactNode,
  use,
  useState,
} from 'react';
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

/** An item that opens a page elsewhere in a new tab. */
export interface MenuLink {
  label: string;
  icon?: ReactNode;
  href: string;
  /** What to know before following it. */
  hint?: string | undefined;
}

type Item = MenuItem | MenuLink;

interface MenuProps {
  /** Whether it is open when it is shown first. */
  starts_open?: boolean;
  /** A button. */
  trigger: ReactElement<HTMLAttributes<HTMLElement>>;
  items: (Item | null | false)[];
}

/** Within the sheet of a phone's screen, its items are part of the sheet. */
export function Menu({ trigger, items: given, starts_open = false }: MenuProps) {
  const items = given.filter((item): item is Item => Boolean(item));
  return use(InSheet) ? <SheetItems items={items} /> : <DropDown {...{ trigger, items, starts_open }} />;
}

function SheetItems({ items }: { items: readonly Item[] }) {
  return items.map((item) => {
    const { label, icon, hint } = item;
    if ('href' in item) {
      return (
        <a key={item.label} href={item.href} {...new_tab} title={hint} className={sheetItemClass}>
          {icon}
          {label}
        </a>
      );
    }
    return (
      <button
        key={String(label)}
        type="button"
        onClick={item.onSelect}
        disabled={item.disabled}
        title={hint}
        className={cx(sheetItemClass, item.danger && 'text-failed')}
      >
        {icon}
        {label}
      </button>
    );
  });
}

const new_tab = { target: '_blank', rel: 'noopener noreferrer' };

const itemClass =
  'tap flex cursor-pointer items-center gap-2 rounded px-2 outline-none data-disabled:opacity-50 data-highlighted:bg-surface [&_svg]:size-4 [&_svg]:shrink-0';

function DropDown({
  trigger,
  items,
  starts_open,
}: {
  trigger: ReactElement<HTMLAttributes<HTMLElement>>;
  items: readonly Item[];
  starts_open: boolean;
}) {
  const [used, setUsed] = useState(starts_open);
  if (!used) return asUnused(trigger, () => setUsed(true));
  return (
    <Base.Root defaultOpen>
      <Base.Trigger render={trigger} />
      <Base.Portal>
        <Base.Positioner sideOffset={4} align="end" className="z-50">
          <Base.Popup className="scroll-y max-h-(--available-height) min-w-44 rounded-lg border border-line bg-raised p-1 shadow-overlay outline-none data-open:animate-enter">
            {items.map((item) => (
              <DropDownItem key={String(item.label)} item={item} />
            ))}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}

/** Only the button, until it is used: a menu has two dozen components, and most menus are never opened. */
function asUnused(trigger: ReactElement<HTMLAttributes<HTMLElement>>, onUse: () => void) {
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return;
    event.preventDefault();
    onUse();
  };
  return cloneElement(trigger, {
    'aria-haspopup': 'menu',
    'aria-expanded': false,
    onClick: onUse,
    onKeyDown,
  });
}

function DropDownItem({ item }: { item: Item }) {
  const { label, icon, hint } = item;
  if ('href' in item) {
    // A host name wraps rather than lose its end, which says whose host it is.
    const className = cx(itemClass, 'max-w-80 wrap-anywhere');
    return (
      <Base.LinkItem href={item.href} {...new_tab} closeOnClick title={hint} className={className}>
        {icon}
        {label}
      </Base.LinkItem>
    );
  }
  return (
    <Base.Item
      onClick={item.onSelect}
      disabled={item.disabled ?? false}
      title={hint}
      className={cx(itemClass, item.danger && 'text-failed')}
    >
      {icon}
      {label}
    </Base.Item>
  );
}
