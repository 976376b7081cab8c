/** The entry point of the web UI. */
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import {
  agentsQuery,
  elicitationsQuery,
  queries,
  reviewsQuery,
  waitingRunsQuery,
  waitingStepsQuery,
} from './api/queries.ts';
import { session } from './api/session.ts';
import { isAgentsPage } from './early.ts';
import { markMissing, reloadIfPossible } from './missing-scripts.ts';
import { isOnlyPreloading, router } from './router.tsx';
import { applyAppearance } from './shell/appearance.ts';
import { removeFirstScreen } from './shell/first-screen.ts';
import './style.css';

applyAppearance();

// When the user changes or signs out, data that was read before must not be shown.
let user_id = session.get()?.user.id;
session.subscribe(() => {
  const now = session.get()?.user.id;
  if (now === user_id) return;
  const before = user_id;
  user_id = now;
  queries.clear();
  // Another user has signed in while this tab was suspended. Its screens are still open, with the data of the user before.
  if (before && now) location.reload();
  else void router.invalidate();
});

// After an upgrade of the service, scripts of the old build that were not loaded yet are gone: reload the page, but not because a
// pointer is above a link.
const RELOADED = 'svc.reloaded-at';
addEventListener('vite:preloadError', ({ payload }) => {
  markMissing(payload);
  if (isOnlyPreloading()) return;
  if (Date.now() - Number(sessionStorage.getItem(RELOADED) ?? 0) < 30_000) return;
  void reloadIfPossible(() => sessionStorage.setItem(RELOADED, String(Date.now())));
});

if (import.meta.env.PROD) navigator.serviceWorker?.register('/sw.js').catch(() => {});

// Read what the first screen needs before the first render. `early.ts` has sent these requests already.
if (session.get()) {
  import('./live/streams.ts').then(({ streams }) => streams()).catch(() => {});
  void queries.prefetchQuery(reviewsQuery);
  void queries.prefetchQuery(elicitationsQuery);
  void queries.prefetchQuery(waitingStepsQuery);
  void queries.prefetchQuery(waitingRunsQuery);
  if (isAgentsPage(location.pathname)) void queries.prefetchQuery(agentsQuery);
}

// Called when the app has rendered its first screen, before the browser paints it.
router.subscribe('onResolved', removeFirstScreen);

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
