/**
 * The service worker. It makes the web UI installable and shows push notifications while no page is open. It caches nothing:
 * every page is loaded from the service, so the UI is never older than the service. If a page cannot be loaded, the worker
 * shows a page that says so.
 */
const OFFLINE = `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"><title>svc: offline</title>
<h1>The service is not responding</h1>
<p>Your agents keep running and nothing is lost. Reload this page when you are back online.</p>
<p><a href="">Try again</a></p></html>`;

addEventListener('install', () => self.skipWaiting());
addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));
addEventListener('fetch', (event) => {
  if (event.request.mode !== 'navigate') return;
  const offlinePage = () =>
    new Response(OFFLINE, {
      status: 503,
      headers: {
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': "default-src 'none'",
      },
    });
  event.respondWith(fetch(event.request).catch(offlinePage));
});

addEventListener('push', (event) => event.waitUntil(notify(event.data)));
addEventListener('notificationclick', (event) => {
  event.notification.close();
  event.waitUntil(openPath(event.notification.data?.path));
});

/**
 * Shows one notification per tag: a later message replaces the earlier one. Browsers require a notification for every
 * message, so a `closed` message silently replaces the one that asked for something. It is removed at once if a page is
 * visible.
 */
async function notify(data) {
  const { kind, tag, title, body, path, waiting } = data.json();
  const closed = kind === 'closed';
  const icons = { icon: '/icon-192.png', badge: '/icon-192.png' };
  const options = { ...icons, body, tag, data: { path }, renotify: !closed, silent: closed };
  await self.registration.showNotification(title, options);
  if (closed && (await pages()).some(({ visibilityState }) => visibilityState === 'visible')) {
    for (const notification of await self.registration.getNotifications({ tag })) notification.close();
  }
  // Only an installed app has a badge.
  await (waiting > 0 ? navigator.setAppBadge?.(waiting) : navigator.clearAppBadge?.())?.catch(() => {});
}

/** Opens a path of the web UI, in an open page if there is one. */
async function openPath(path) {
  const requested = new URL(typeof path === 'string' ? path : '/', location.origin);
  const { href } = requested.origin === location.origin ? requested : new URL('/', location.origin);
  const open = await pages();
  const page = open.find(({ url }) => url === href) ?? open.find(({ focused }) => focused) ?? open[0];
  if (!page) return self.clients.openWindow(href);
  await page.focus().catch(() => {});
  // Navigating loses no drafts, and works with pages of other versions of the service too.
  if (page.url !== href) await page.navigate(href).catch(() => self.clients.openWindow(href));
}

function pages() {
  return self.clients.matchAll({ type: 'window', includeUncontrolled: true });
}
