/**
 * The actions of a screen: in its header, or on phones behind ⋯ in a sheet at the bottom, with the search and the state of the
 * connection. The sheet is a native popover around the same elements, so actions keep their state and their dialogs.
 */
import { Ellipsis, Search } from 'lucide-react';
import { type MouseEvent, type ReactNode, use, useId, useRef } from 'react';
import { Badge } from '../shell/badge.tsx';
import { OpenPalette } from '../shell/open-palette.ts';
import { IconButton } from './button.tsx';
import { mediaHook } from './media.ts';
import { InSheet, sheetItemClass } from './sheet.ts';

const usePhone = mediaHook('(width < 768px)');

/** `primary`: the action that is not in the sheet. */
export function ScreenActions({ primary, children }: { primary: ReactNode; children: ReactNode }) {
  const is_phone = usePhone();
  if (!is_phone) {
    if (!children && !primary) return null;
    return (
      <div className="flex flex-wrap items-center gap-2">
        {children}
        {primary}
      </div>
    );
  }
  return (
    <>
      <Badge compact />
      {primary}
      <ActionSheet>{children}</ActionSheet>
    </>
  );
}

function ActionSheet({ children }: { children: ReactNode }) {
  const id = useId();
  const sheet = useRef<HTMLDivElement>(null);
  const openPalette = use(OpenPalette);
  const onClick = ({ target }: MouseEvent) => {
    if (target instanceof Element && target.closest('button, a')) sheet.current?.hidePopover();
  };
  return (
    <>
      <IconButton label="Actions" className="-mr-2" icon={<Ellipsis aria-hidden />} popoverTarget={id} />
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: keys press the buttons in it */}
      <div
        ref={sheet}
        id={id}
        popover="auto"
        role="dialog"
        aria-label="Actions"
        onClick={onClick}
        className="inset-x-0 top-auto bottom-0 m-0 max-h-[88dvh] w-full max-w-full overscroll-contain rounded-t-lg border border-line bg-raised p-2 pb-[calc(env(safe-area-inset-bottom)+8px)] text-text shadow-overlay backdrop:bg-[#000]/40 open:animate-enter"
      >
        <div className="flex flex-col gap-1 [&>:is(a,button)]:w-full [&>:is(a,button)]:justify-start [&>:is(a,button)]:border-transparent">
          <InSheet value={true}>{children}</InSheet>
          <button type="button" onClick={openPalette} className={sheetItemClass}>
            <Search aria-hidden /> Search and commands
          </button>
        </div>
        <div className="flex h-11 items-center px-3">
          <Badge />
        </div>
      </div>
    </>
  );
}
