/** The width of the side panel: changed by dragging or with the keyboard, and stored in the browser. */
import { type KeyboardEvent, type PointerEvent, type ReactNode, useState } from 'react';
import { readStored, store } from '../../../storage.ts';

const KEY = 'svc.side';
const [LEAST, MOST, STEP, FIRST] = [200, 560, 16, 288];

export function useWidth(): { width: number; handle: ReactNode } {
  const [width, setWidth] = useState(() => fitting(Number(readStored(KEY) ?? FIRST)));
  const set = (next: number) => {
    setWidth(fitting(next));
    store(KEY, String(fitting(next)));
  };
  const onPointerDown = (event: PointerEvent<HTMLElement>) => {
    event.currentTarget.setPointerCapture(event.pointerId);
  };
  const onPointerMove = (event: PointerEvent<HTMLElement>) => {
    if (event.currentTarget.hasPointerCapture(event.pointerId)) set(width - event.movementX);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowLeft: STEP, ArrowRight: -STEP }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    set(width + step);
  };
  const handle = (
    // biome-ignore lint/a11y/useSemanticElements: an hr is not interactive
    <div
      role="separator"
      aria-label="Side panel width"
      aria-orientation="vertical"
      aria-valuenow={width}
      aria-valuemin={LEAST}
      aria-valuemax={MOST}
      tabIndex={0}
      onPointerDown={onPointerDown}
      onPointerMove={onPointerMove}
      onKeyDown={onKeyDown}
      className="-mr-1 z-10 hidden w-1 shrink-0 cursor-col-resize touch-none hover:bg-accent lg:block"
    />
  );
  return { width, handle };
}

function fitting(width: number): number {
  return Number.isFinite(width) ? Math.min(MOST, Math.max(LEAST, width)) : FIRST;
}
