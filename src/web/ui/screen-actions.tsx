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
  const id = useId();
  const sheet = useRef<HTMLDivElement>(null);
  const openPalette = use(OpenPalette);
  const closeSheet = ({ target }: MouseEvent) => {
    if (target instanceof Element && target.closest('button, a')) sheet.current?.hidePopover();
  };
  if (!is_phone && !children && !primary) return null;
  // The same elements on every screen: a phone that is turned keeps the dialogs that its user has opened.
  return (
    <div className={is_phone ? 'contents' : 'flex flex-wrap items-center gap-2'}>
      {is_phone && <Badge compact />}
      <div
        ref={sheet}
        {...(is_phone && {
          id,
          popover: 'auto',
          role: 'dialog',
          'aria-label': 'Actions',
          onClick: closeSheet,
        })}
        className={is_phone ? sheetClass : 'contents'}
      >
        <div className={is_phone ? itemsClass : 'contents'}>
          <InSheet value={is_phone}>{children}</InSheet>
          {is_phone && (
            <button type="button" onClick={openPalette} className={sheetItemClass}>
              <Search aria-hidden /> Search and commands
            </button>
          )}
        </div>
        {is_phone && (
          <div className="flex h-11 items-center px-3">
            <Badge />
          </div>
        )}
      </div>
      {primary}
      {is_phone && (
        <IconButton label="Actions" className="-mr-2" icon={<Ellipsis aria-hidden />} popoverTarget={id} />
      )}
    </div>
  );
}

const sheetClass =
  'inset-x-0 top-auto bottom-0 m-0 max-h-[88dvh] w-full max-w-full overscroll-contain rounded-t-lg border border-line bg-raised p-2 pb-[calc(env(safe-area-inset-bottom)+8px)] text-text shadow-overlay backdrop:bg-[#000]/40 open:animate-enter';
const itemsClass =
  'flex flex-col gap-1 [&>:is(a,button)]:w-full [&>:is(a,button)]:justify-start [&>:is(a,button)]:border-transparent';
