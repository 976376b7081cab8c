/** Loads the command palette after the page, so that it opens without delay. */
import { lazy, Suspense, useEffect } from 'react';
import type { PaletteProps } from './palette-dialog.tsx';

const load = () => import('./palette-dialog.tsx');
const PaletteDialog = lazy(load);

const LOAD_AFTER_MS = 2000;

export function Palette(props: PaletteProps & { open: boolean }) {
  useEffect(() => {
    // If this fails, opening the palette tries again.
    const timer = setTimeout(() => load().catch(() => {}), LOAD_AFTER_MS);
    return () => clearTimeout(timer);
  }, []);
  if (!props.open) return null;
  return (
    <Suspense fallback={null}>
      <PaletteDialog {...props} />
    </Suspense>
  );
}
