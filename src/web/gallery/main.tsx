/**
 * Every component in every state, for development: `npm run dev:web` serves it at /gallery/, and the visual tests compare
 * pictures of it. The build of the product does not contain it. `?theme=dark` selects the dark theme.
 */
import { CSPProvider } from '@base-ui/react/csp-provider';
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { Gallery } from './gallery.tsx';
import '../style.css';

document.documentElement.dataset.theme = new URLSearchParams(location.search).get('theme') ?? 'light';

/** Links in components need a router, but lead nowhere. */
const router = createRouter({
  routeTree: createRootRoute({ component: Gallery }),
  history: createMemoryHistory(),
});

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <CSPProvider disableStyleElements>
      <RouterProvider router={router as never} />
    </CSPProvider>
  </StrictMode>,
);
