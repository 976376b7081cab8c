/**
 * Short notifications about an action. Errors belong next to the action if it is still visible. Their code is loaded after the
 * page, because the first paint does not need it.
 */
import { lazy, Suspense, useEffect, useState } from 'react';

const load = () => import('./toast-list.tsx');
const ToastList = lazy(async () => ({ default: (await load()).ToastList }));

const LOAD_AFTER_MS = 2000;
const wanted = Promise.withResolvers<void>();

export function showToast(title: string, description?: string): void {
  wanted.resolve();
  load()
    .then(({ addToast }) => addToast(title, description))
    .catch(() => {});
}

/** Where toasts appear. It is loaded before the first toast, so that screen readers announce that one too. */
export function Toasts() {
  const [ready, setReady] = useState(false);
  useEffect(() => {
    const mount = () =>
      load()
        .then(() => setReady(true))
        .catch(() => {});
    const timer = setTimeout(mount, LOAD_AFTER_MS);
    void wanted.promise.then(mount);
    return () => clearTimeout(timer);
  }, []);
  return (
    ready && (
      <Suspense>
        <ToastList />
      </Suspense>
    )
  );
}
