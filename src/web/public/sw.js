/**
 * Makes the page an app that can be installed, and shows what the service tells of while no page is open. It keeps nothing:
 * every load asks the service, so that no shell is ever older than the service behind it. Without a network it says so, in
 * one page of its own.
 */
const OFFLINE = `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"><title>svc: offline</title>
<h1>The service does not answer</h1>
<p>Agents go on without you: nothing is lost. Load this page again when the network is back.</p>
<p><a href="">Try again</a></p></html>`;

addEventListener('install', () => self.skipWaiting());
addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));
addEventListener('fetch', (event) => {
  if (event.request.mode !== 'navigate') return;
  const said = () =>
    new Response(OFFLINE, {
      status: 503,
      headers: {
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': "default-src 'none'",
      },
    });
  event.respondWith(fetch(event.request).catch(said));
});

/**
 * One notification for each thing: a later message of its tag takes its place. Browsers want something shown for each
 * message, so what is over is shown in silence in the place of what asked, and goes where somebody looks at a page anyway.
 */
addEventListener('push', (event) => event.waitUntil(tell(event.data)));
addEventListener('notificationclick', (event) => {
  event.notification.close();
  event.waitUntil(go(event.notification.data?.path));
});

async function tell(data) {
  const { kind, tag, title, body, path, waiting } = data.json();
  const over = kind === 'closed';
  const icons = { icon: '/icon-192.png', badge: '/icon-192.png' };
  const options = { ...icons, body, tag, data: { path }, renotify: !over, silent: over };
  await self.registration.showNotification(title, options);
  if (over && (await pages()).some(({ visibilityState }) => visibilityState === 'visible')) {
    for (const shown of await self.registration.getNotifications({ tag })) shown.close();
  }
  // Only an installed app has one.
  await (waiting > 0 ? navigator.setAppBadge?.(waiting) : navigator.clearAppBadge?.())?.catch(() => {});
}

/** To a path of the page: in one that is open, where there is one. */
async function go(path) {
  const asked = new URL(typeof path === 'string' ? path : '/', location.origin);
  const { href } = asked.origin === location.origin ? asked : new URL('/', location.origin);
  const open = await pages();
  const page = open.find(({ url }) => url === href) ?? open.find(({ focused }) => focused) ?? open[0];
  if (!page) return self.clients.openWindow(href);
  await page.focus().catch(() => {});
  // Drafts are kept; a page that another version of the service gave out understands this too.
  if (page.url !== href) await page.navigate(href).catch(() => self.clients.openWindow(href));
}

function pages() {
  return self.clients.matchAll({ type: 'window', includeUncontrolled: true });
}
