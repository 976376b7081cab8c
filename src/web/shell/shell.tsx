/** The frame around every screen: navigation, live badge and the number of items that wait for the user. */
import { CSPProvider } from '@base-ui/react/csp-provider';
import { Link, Outlet, useMatch, useNavigate, useRouterState } from '@tanstack/react-router';
import {
  Bot,
  Braces,
  Ellipsis,
  Network,
  Play,
  ScrollText,
  Settings,
  ShieldCheck,
  Users,
  UsersRound,
} from 'lucide-react';
import { useCallback, useEffect, useMemo, useState } from 'react';
import { useSession } from '../api/session.ts';
import type { Place } from '../feature.ts';
import { features } from '../features.ts';
import { useClosedNotifications, useSyncedSubscription } from '../push/use-subscription.ts';
import { LazyDialog } from '../ui/lazy-dialog.tsx';
import { useHandheld } from '../ui/media.ts';
import { Toasts } from '../ui/toast.tsx';
import { linkedId } from '../waiting/queue.ts';
import { useWaiting } from '../waiting/use-waiting.ts';
import { Count, NavLink, usePlaceLink } from './nav-link.tsx';
import { OpenPalette } from './open-palette.ts';
import { OutOfDate } from './out-of-date.tsx';
import { Palette } from './palette.tsx';
import { Renewal } from './renewal.tsx';
import { Shortcuts } from './shortcuts.tsx';
import { Sidebar } from './sidebar.tsx';
import { useTitle } from './title.ts';

const places: readonly Place[] = [
  { to: '/approvals', label: 'Approvals', icon: ShieldCheck, group: 'Work' },
  { to: '/agents', label: 'Agents', icon: Bot, group: 'Work' },
  { to: '/teams', label: 'Teams', icon: UsersRound, group: 'Teams' },
  { to: '/runs', label: 'Runs', icon: Play, group: 'Teams' },
  ...features.flatMap(({ places = [] }) => places),
  { to: '/nodes', label: 'Nodes', icon: Network, root: true, group: 'Admin' },
  { to: '/users', label: 'Users', icon: Users, root: true, group: 'Admin' },
  { to: '/audit', label: 'Audit', icon: ScrollText, root: true, group: 'Admin' },
  { to: '/settings', label: 'Settings', icon: Settings },
  { to: '/docs', label: 'API', icon: Braces },
];
/** The pages in the bottom bar on phones; the rest is in the menu More. */
const bottom_bar = ['/approvals', '/agents', '/teams'];

/** The page's Content-Security-Policy forbids the style elements that Base UI would add. */
export function Shell() {
  return (
    <CSPProvider disableStyleElements>
      <Frame />
      <Toasts />
    </CSPProvider>
  );
}

function Frame() {
  const session = useSession();
  const [palette, setPalette] = useState(false);
  const waiting = usePending();
  useSignInRedirect();
  const openPalette = useCallback(() => setPalette(true), []);
  // An agent's page has its own bar at the bottom, and a way back.
  const in_agent = useMatch({ from: '/app/agents/$agent_id', shouldThrow: false }) !== undefined;
  const fills_screen = useFillsScreen();
  const role = session?.user.role;
  const allowed = useMemo(() => places.filter((place) => !place.root || role === 'root'), [role]);
  if (session === null) return null;

  const { user } = session;
  return (
    <div className="flex h-full flex-col md:flex-row">
      <a
        href="#main"
        className="absolute -top-20 left-2 z-50 rounded bg-accent px-3 py-1 text-on-accent focus:top-2"
      >
        Skip to content
      </a>
      {!fills_screen && <Sidebar user={user} places={allowed} waiting={waiting} onPalette={openPalette} />}
      <main
        id="main"
        tabIndex={-1}
        className="flex min-h-0 min-w-0 flex-1 flex-col outline-none has-[>[data-out-of-date]]:[--below-screen:3rem]"
      >
        <OpenPalette value={openPalette}>
          <Outlet />
        </OpenPalette>
        <OutOfDate />
      </main>
      {!in_agent && !fills_screen && <BottomBar places={allowed} waiting={waiting} />}
      <Palette open={palette} onOpen={setPalette} places={allowed} />
      <Renewal />
      <Shortcuts onPalette={openPalette} />
      <div aria-live="assertive" className="sr-only">
        {waiting > 0 && `${waiting} ${waiting === 1 ? 'request needs' : 'requests need'} you`}
      </div>
    </div>
  );
}

/** Whether a request has the whole screen of a phone. */
function useFillsScreen(): boolean {
  const is_handheld = useHandheld();
  const linked = useMatch({
    from: '/app/approvals',
    shouldThrow: false,
    select: ({ search }) => linkedId(search),
  });
  return is_handheld && linked !== undefined;
}

/** The number of items that wait for the user, which the tab's title and notifications follow. */
function usePending(): number {
  const session = useSession();
  const { items, open } = useWaiting();
  useTitle(open.length);
  useSyncedSubscription(session?.user.id);
  useClosedNotifications(items);
  return open.length;
}

/** Opens the sign-in page when the session ends. Unsent text is kept as drafts. */
function useSignInRedirect(): void {
  const signed_in = useSession() !== null;
  const navigate = useNavigate();
  const path = useRouterState({ select: ({ location }) => location.href });
  // The URL may already be that of the sign-in page while this page is still shown.
  const leaving = path.startsWith('/login');
  useEffect(() => {
    if (!signed_in && !leaving) void navigate({ to: '/login', search: { to: path } });
  }, [signed_in, navigate, path, leaving]);
}

function BottomBar({ places: shown, waiting }: { places: readonly Place[]; waiting: number }) {
  const [more, setMore] = useState(false);
  return (
    <>
      <nav
        aria-label="Main"
        // A panel that fills a window without much height has a way back.
        className="flex shrink-0 border-line border-t bg-sidebar pb-[env(safe-area-inset-bottom)] md:hidden short:[main:has([data-panel])~&]:hidden"
      >
        {shown
          .filter(({ to }) => bottom_bar.includes(to))
          .map((place) => (
            <ThumbLink key={place.to} place={place} count={place.to === '/approvals' ? waiting : 0} />
          ))}
        <button
          type="button"
          onClick={() => setMore(true)}
          className="flex min-h-12 flex-1 flex-col items-center justify-center text-muted text-xs"
        >
          <Ellipsis aria-hidden className="size-5" />
          More
        </button>
      </nav>
      <LazyDialog open={more} onClose={() => setMore(false)} title="More">
        {shown
          .filter(({ to }) => !bottom_bar.includes(to))
          .map((place) => (
            <NavLink key={place.to} place={place} count={0} onClick={() => setMore(false)} />
          ))}
      </LazyDialog>
    </>
  );
}

function ThumbLink({ place, count }: { place: Place; count: number }) {
  const { icon: Icon, to, label } = place;
  return (
    <Link
      {...usePlaceLink(to)}
      className="relative flex min-h-12 flex-1 flex-col items-center justify-center text-muted text-xs aria-[current=page]:text-accent"
    >
      <Icon aria-hidden className="size-5" />
      {label}
      {count > 0 && <Count count={count} className="absolute top-1 left-1/2 ml-2" />}
    </Link>
  );
}
