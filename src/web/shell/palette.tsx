/** Search and commands. What it needs is loaded after the page, so that it is there when somebody types. */
import { lazy, Suspense, useEffect } from 'react';
import type { PaletteProps } from './palette-dialog.tsx';

const load = () => import('./palette-dialog.tsx');
const PaletteDialog = lazy(load);

const LOAD_AFTER_MS = 2000;

export function Palette(props: PaletteProps & { open: boolean }) {
  useEffect(() => {
    // Where it cannot be loaded now, it is tried again when it is opened.
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
