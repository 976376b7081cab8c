/**
 * Renders what each page shows before its data and its scripts have arrived. The build puts it into the HTML of the page, so
 * that the first paint does not wait for the scripts. It is the app itself without data, for each kind of user and screen.
 * `early.ts` shows it, and `main.tsx` removes it as soon as the app shows its first screen.
 */
// First, because the other modules use what it defines.
import './browser.ts';
import { QueryClientProvider } from '@tanstack/react-query';
import { createMemoryHistory, RouterProvider } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { renderToPipeableStream, renderToStaticMarkup } from 'react-dom/server';
import { queries } from '../api/queries.ts';
import { session } from '../api/session.ts';
import { router } from '../router.tsx';
import type { Viewer } from '../shell/first-screen.ts';
import { setPhone } from './browser.ts';

/** Pages for users who are not signed in. */
const guest_pages = ['login', 'join'];
const screens = ['desk', 'phone'] as const;

/**
 * The templates of a page, by its name in `pages.json`: one for each different look, with the screens and viewers that it is
 * for in `data-for`.
 */
export async function prerender(page: string): Promise<string> {
  /** The viewers and screens of each look. */
  const looks = new Map<string, string[]>();
  for (const viewer of guest_pages.includes(page) ? (['guest'] as const) : (['user', 'root'] as const)) {
    for (const screen of screens) {
      setPhone(screen === 'phone');
      const html = await render(page === 'home' ? '/agents' : `/${page.replaceAll('.', '/')}`, viewer);
      looks.set(html, [...(looks.get(html) ?? []), `${screen}-${viewer}`]);
    }
  }
  return [...looks]
    .map(([html, names]) => `<template data-for="${names.join(' ')}">${html}</template>`)
    .join('');
}

async function render(path: string, viewer: Viewer): Promise<string> {
  if (viewer === 'guest') session.end();
  else {
    const user = { id: 'usr_0', username: '\u00a0', role: viewer, created_at: '' };
    session.begin({ token: 'token', expires_in: 1, user } as Parameters<typeof session.begin>[0]);
  }
  router.update({
    ...router.options,
    history: createMemoryHistory({ initialEntries: [path] }),
    // It would add a script.
    scrollRestoration: false,
  } as Parameters<typeof router.update>[0]);
  await router.load();
  const app = (
    <QueryClientProvider client={queries}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  );
  await check(app);
  const html = renderToStaticMarkup(app);
  // Its timers would keep the build running.
  queries.clear();
  // The policy forbids styles in the HTML, and fields without function must not take the focus.
  return html.replaceAll(/ (style|autofocus)="[^"]*"/g, '');
}

/** Throws if a component fails: `renderToStaticMarkup` would silently leave out all of the screen around it. */
function check(app: ReactNode): Promise<void> {
  return new Promise((resolve, reject) => {
    renderToPipeableStream(app, { onError: reject, onAllReady: resolve });
  });
}
