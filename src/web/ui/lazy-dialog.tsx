/** A dialog whose code is loaded when it first opens. For the frame, because the first paint of every page waits for its code. */
import { type ComponentProps, lazy, Suspense, useState } from 'react';
import type { Dialog } from './dialog.tsx';

const Loaded = lazy(async () => ({ default: (await import('./dialog.tsx')).Dialog }));

export function LazyDialog(props: ComponentProps<typeof Dialog>) {
  const [opened, setOpened] = useState(props.open);
  if (props.open && !opened) setOpened(true);
  if (!opened) return null;
  return (
    <Suspense>
      <Loaded {...props} />
    </Suspense>
  );
}
