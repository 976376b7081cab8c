/** A part of a page that opens and closes. A native element, so that the browser's search opens it. */
import { ChevronRight } from 'lucide-react';
import { type ReactNode, type Ref, useState } from 'react';
import { cx } from './cx.ts';

interface DisclosureProps {
  summary: ReactNode;
  /** Whether it is open at first, and again whenever this changes. */
  open?: boolean;
  onToggle?: (open: boolean) => void;
  /** The content is rendered only while it is open. */
  lazy?: boolean;
  className?: string;
  summaryClass?: string;
  ref?: Ref<HTMLDetailsElement>;
  children: ReactNode;
}

export function Disclosure(props: DisclosureProps) {
  const {
    summary,
    open: begins = false,
    onToggle,
    lazy = false,
    className,
    summaryClass,
    ref,
    children,
  } = props;
  const [open, setOpen] = useState(begins);
  const [last, setLast] = useState(begins);
  if (begins !== last) {
    setLast(begins);
    setOpen(begins);
  }
  return (
    <details
      ref={ref}
      open={open}
      onToggle={(event) => {
        setOpen(event.currentTarget.open);
        onToggle?.(event.currentTarget.open);
      }}
      className={cx('group/disclosure min-w-0', className)}
    >
      <summary
        className={cx(
          'tap flex w-fit max-w-full cursor-pointer list-none items-center gap-1 rounded-md [&::-webkit-details-marker]:hidden',
          summaryClass ?? 'text-muted text-sm hover:text-text',
        )}
      >
        <ChevronRight
          aria-hidden
          className={cx('size-3.5 shrink-0 transition-transform', open && 'rotate-90')}
        />
        {summary}
      </summary>
      {(open || !lazy) && children}
    </details>
  );
}
