/** The routes that every screen is below. */
import { createRootRoute, createRoute, lazyRouteComponent, Outlet, redirect } from '@tanstack/react-router';
import { session } from './api/session.ts';

export const root = createRootRoute({ component: Outlet });

/** Screens inside the frame, which need a session. */
export const app = createRoute({
  getParentRoute: () => root,
  id: 'app',
  beforeLoad: ({ location }) => {
    if (session.get()) return;
    throw redirect({ to: '/login', search: location.href === '/' ? {} : { to: location.href } });
  },
  component: lazyRouteComponent(() => import('./shell/shell.tsx'), 'Shell'),
});
