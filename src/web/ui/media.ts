import { useSyncExternalStore } from 'react';

/** A hook that returns whether the screen matches a media query. */
export function mediaHook(query: string): () => boolean {
  const media = globalThis.matchMedia?.(query);
  const subscribe = (listener: () => void) => {
    media.addEventListener('change', listener);
    return () => media.removeEventListener('change', listener);
  };
  const matches = () => media?.matches ?? false;
  return () => useSyncExternalStore(subscribe, matches, matches);
}

export const useTouch = mediaHook('(pointer: coarse)');

/** A phone, upright or on its side. */
export const useHandheld = mediaHook('(pointer: coarse) and ((width < 640px) or (height < 500px))');

/** A phone on its side. An upright phone and a tablet stay as they are while their keyboard takes half of the height. */
export const useSidewaysPhone = mediaHook(
  '(pointer: coarse) and (568px <= width < 1000px) and (height < 500px)',
);

/** As wide as an upright phone, on which a graph is too small to read. */
export const useNarrow = mediaHook('(max-width: 639.98px)');

/** CSS shortens its own animations; those of scripts must not run. */
export const useReducedMotion = mediaHook('(prefers-reduced-motion: reduce)');
