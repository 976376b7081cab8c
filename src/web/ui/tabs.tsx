/** A row of underlined tabs. Too many for the screen, they scroll sideways and fade at the edge. */
import { Tabs as Base } from '@base-ui/react/tabs';
import type { ReactNode } from 'react';
import { cx } from './cx.ts';
import { barClass, tabClass } from './tab-class.ts';

export interface TabItem {
  value: string;
  label: ReactNode;
}

/** Tabs over a panel of the same page. The arrow keys move between them. */
export function Tabs({
  label,
  tabs,
  value,
  onValue,
  className,
  children,
}: {
  label: string;
  tabs: readonly TabItem[];
  value: string;
  onValue: (value: string) => void;
  /** Of the row of tabs. */
  className?: string;
  /** The panel of the selected tab. */
  children: ReactNode;
}) {
  return (
    <Base.Root value={value} onValueChange={onValue}>
      <Base.List aria-label={label} activateOnFocus className={cx(barClass, className)}>
        {tabs.map((tab) => (
          <Base.Tab key={tab.value} value={tab.value} className={tabClass}>
            {tab.label}
          </Base.Tab>
        ))}
      </Base.List>
      <Base.Panel value={value} tabIndex={-1}>
        {children}
      </Base.Panel>
    </Base.Root>
  );
}
