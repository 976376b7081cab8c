/** The column of a page, from the left: as wide as a form, as prose with its evidence, or as the screen. */
import type { ReactNode } from 'react';
import { cx } from './cx.ts';

const widths = { form: 'max-w-form', page: 'max-w-page', full: '' };

export function Page({
  width = 'page',
  className,
  children,
}: {
  width?: keyof typeof widths;
  className?: string;
  children: ReactNode;
}) {
  return (
    <div className={cx('flex w-full min-w-0 flex-col gap-6 p-3 md:p-4', widths[width], className)}>
      {children}
    </div>
  );
}
