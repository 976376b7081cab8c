/**
 * Details beside a list. It fills small screens, where the list is hidden. Whether it is open is part of the URL, so that Back
 * closes it too.
 */
import { ArrowLeft, X } from 'lucide-react';
import { type ReactNode, useEffect, useRef } from 'react';
import { IconButton } from './button.tsx';
import { cx } from './cx.ts';
import { isComposing, isOverlayOpen } from './keys.ts';

/** The list beside the panel. */
export function BesidePanel({ is_open, children }: { is_open: boolean; children: ReactNode }) {
  return (
    <div className={cx('relative min-w-0 flex-1 overflow-auto', is_open && 'max-lg:hidden')}>{children}</div>
  );
}

export function SidePanel({
  title,
  about,
  actions,
  back,
  is_thread = false,
  onClose,
  children,
}: {
  title: string;
  /** Below the title. */
  about?: ReactNode;
  actions?: ReactNode;
  /** The list, for screen readers: `Back to nodes`. */
  back: string;
  /** The children fill the panel, which is wider, and scroll on their own, except where there is no height for that. */
  is_thread?: boolean;
  onClose: () => void;
  children: ReactNode;
}) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  useEscape(onClose);
  return (
    <section
      aria-label={title}
      data-panel
      className={cx(
        'flex min-h-0 min-w-0 flex-1 flex-col border-line lg:flex-none lg:border-l lg:transition-transform lg:starting:translate-x-8',
        is_thread ? 'lg:w-140' : 'lg:w-120',
      )}
    >
      <header className="flex min-h-12 shrink-0 items-center gap-1 border-line border-b px-3 py-1">
        <IconButton
          label={`Back to ${back}`}
          icon={<ArrowLeft aria-hidden />}
          onClick={onClose}
          className="-ml-2 lg:hidden"
        />
        <div className="min-w-0 flex-1 px-1">
          <h2
            ref={heading}
            tabIndex={-1}
            className="line-clamp-2 break-words font-semibold text-lg outline-none"
            title={title}
          >
            {title}
          </h2>
          {about}
        </div>
        {actions}
        <IconButton label="Close" icon={<X aria-hidden />} onClick={onClose} className="max-lg:hidden" />
      </header>
      <div
        className={cx(
          'flex min-h-0 flex-1 flex-col',
          is_thread ? 'short:scroll-y' : 'scroll-y gap-5 px-4 py-3',
        )}
      >
        {children}
      </div>
    </section>
  );
}

/** Escape closes the panel wherever the focus is, but what is open above the page first. */
function useEscape(onClose: () => void): void {
  const latest = useRef(onClose);
  latest.current = onClose;
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      // While a text is composed, Escape cancels that.
      if (event.key !== 'Escape' || event.defaultPrevented || isComposing(event)) return;
      if (isOverlayOpen()) return;
      event.preventDefault();
      latest.current();
    };
    // Before the list, in which Escape would only move the focus.
    document.addEventListener('keydown', press, { capture: true });
    return () => document.removeEventListener('keydown', press, { capture: true });
  }, []);
}
