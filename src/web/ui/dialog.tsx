/** A modal dialog; on phones, a bottom sheet. Its first field gets the focus. */
import { Dialog as Base } from '@base-ui/react/dialog';
import { X } from 'lucide-react';
import { type ReactNode, Suspense, useEffect, useRef } from 'react';
import { cx } from './cx.ts';
import { useTouch } from './media.ts';
import { InSheet } from './sheet.ts';
import { Skeleton } from './states.tsx';

const FIELD = ':is(textarea, input:not([type=checkbox], [type=radio], [type=hidden])):enabled';

/** Its fields have no `autoFocus`, which would come before the dialog notes where to return the focus. */
export function Dialog({
  open,
  onClose,
  title,
  description,
  wide,
  children,
}: {
  open: boolean;
  onClose: () => void;
  title: string;
  description?: ReactNode;
  wide?: boolean;
  children: ReactNode;
}) {
  const popup = useRef<HTMLDivElement>(null);
  const is_touch = useTouch();
  // On a phone, the keyboard would cover half of the dialog.
  const firstField = () => (is_touch ? null : popup.current?.querySelector<HTMLElement>(FIELD));
  return (
    <Base.Root open={open} onOpenChange={(next) => !next && onClose()}>
      <Base.Portal>
        <Base.Backdrop className="fixed inset-0 z-40 bg-[#000]/40 transition-opacity data-ending-style:opacity-0 data-starting-style:opacity-0" />
        <Base.Popup
          ref={popup}
          initialFocus={firstField}
          className={cx(
            'fixed z-50 flex max-h-[88dvh] flex-col rounded-t-xl border border-line bg-raised shadow-overlay outline-none data-open:animate-enter',
            'inset-x-0 bottom-0 sm:inset-auto sm:top-1/2 sm:left-1/2 sm:-translate-x-1/2 sm:-translate-y-1/2 sm:rounded-xl',
            wide ? 'sm:w-[min(720px,94vw)]' : 'sm:w-[min(460px,94vw)]',
          )}
        >
          <header className="flex items-center justify-between gap-3 px-4 pt-3">
            <Base.Title dir="auto" className="wrap-anywhere min-w-0 flex-1 text-left font-semibold text-lg">
              {title}
            </Base.Title>
            <Base.Close
              aria-label="Close"
              className="tap -mr-1 inline-flex min-w-7 shrink-0 items-center justify-center rounded text-muted hover:text-text"
            >
              <X className="size-4" />
            </Base.Close>
          </header>
          {description && (
            <Base.Description className="wrap-anywhere px-4 pt-1 text-muted">{description}</Base.Description>
          )}
          <div className="scroll-y px-4 pt-3 pb-4">
            {/* Also if it was opened in the sheet of a phone's screen. */}
            <InSheet value={false}>
              <Suspense fallback={<Loading onLoaded={() => firstField()?.focus()} />}>{children}</Suspense>
            </InSheet>
          </div>
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}

/** In place of a form whose code is loaded when it first opens. */
function Loading({ onLoaded }: { onLoaded: () => void }) {
  useEffect(() => onLoaded, [onLoaded]);
  return <Skeleton rows={4} />;
}
