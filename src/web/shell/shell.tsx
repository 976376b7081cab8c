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
  Search,
  Settings,
  ShieldCheck,
  Users,
  UsersRound,
} from 'lucide-react';
import { useCallback, useEffect, useState } from 'react';
import { type Session, useSession } from '../api/session.ts';
import type { Place } from '../feature.ts';
import { features } from '../features.ts';
import { useClosedNotifications, useSyncedSubscription } from '../push/use-subscription.ts';
import { cx } from '../ui/cx.ts';
import { Kbd } from '../ui/kbd.tsx';
import { MOD } from '../ui/keys.ts';
import { LazyDialog } from '../ui/lazy-dialog.tsx';
import { Wordmark } from '../ui/mark.tsx';
import { Toasts } from '../ui/toast.tsx';
import { useWaiting } from '../waiting/use-waiting.ts';
import { Badge } from './badge.tsx';
import { OpenPalette } from './open-palette.ts';
import { Palette } from './palette.tsx';
import { Renewal } from './renewal.tsx';
import { Shortcuts } from './shortcuts.tsx';
import { useTitle } from './title.ts';

const places: readonly Place[] = [
  { to: '/approvals', label: 'Approvals', icon: ShieldCheck },
  { to: '/agents', label: 'Agents', icon: Bot },
  { to: '/teams', label: 'Teams', icon: UsersRound },
  { to: '/runs', label: 'Runs', icon: Play },
  ...features.flatMap(({ places = [] }) => places),
  { to: '/nodes', label: 'Nodes', icon: Network, root: true },
  { to: '/users', label: 'Users', icon: Users, root: true },
  { to: '/audit', label: 'Audit', icon: ScrollText, root: true },
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
  if (session === null) return null;

  const { user } = session;
  const allowed = places.filter((place) => !place.root || user.role === 'root');
  return (
    <div className="flex h-full flex-col md:flex-row">
      <a
        href="#main"
        className="absolute -top-20 left-2 z-50 rounded bg-accent px-3 py-1 text-on-accent focus:top-2"
      >
        Skip to content
      </a>
      <Sidebar user={user} places={allowed} waiting={waiting} onPalette={openPalette} />
      <main id="main" tabIndex={-1} className="flex min-h-0 min-w-0 flex-1 flex-col outline-none">
        <OpenPalette value={openPalette}>
          <Outlet />
        </OpenPalette>
      </main>
      {!in_agent && <BottomBar places={allowed} waiting={waiting} />}
      <Palette open={palette} onOpen={setPalette} places={allowed} />
      <Renewal />
      <Shortcuts onPalette={openPalette} />
      <div aria-live="assertive" className="sr-only">
        {waiting > 0 && `${waiting} ${waiting === 1 ? 'request needs' : 'requests need'} you`}
      </div>
    </div>
  );
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

function Sidebar({
  user,
  places: shown,
  waiting,
  onPalette,
}: {
  user: Session['user'];
  places: readonly Place[];
  waiting: number;
  onPalette: () => void;
}) {
  return (
    <nav
      aria-label="Main"
      className="scroll-y hidden w-48 shrink-0 flex-col gap-0.5 border-line border-r bg-sidebar p-2 md:flex"
    >
      <div className="flex items-center justify-between px-2 pt-1 pb-2">
        <Wordmark waiting={waiting > 0} />
        <button
          type="button"
          onClick={onPalette}
          className="tap flex items-center gap-1 rounded-md px-1.5 text-muted hover:bg-surface hover:text-text"
        >
          <Search aria-hidden className="size-3.5" /> <Kbd>{MOD} K</Kbd>
          <span className="sr-only">Search and commands</span>
        </button>
      </div>
      {shown.map((place) => (
        <NavLink key={place.to} place={place} count={place.to === '/approvals' ? waiting : 0} />
      ))}
      <div className="mt-auto flex flex-col gap-1 px-2 pt-3 text-muted text-sm">
        <span className="truncate" title={`${user.username} (${user.role})`}>
          {user.username}
          {user.role === 'root' && ' · root'}
        </span>
        <Badge />
      </div>
    </nav>
  );
}

function BottomBar({ places: shown, waiting }: { places: readonly Place[]; waiting: number }) {
  const [more, setMore] = useState(false);
  return (
    <>
      <nav
        aria-label="Main"
        className="flex shrink-0 border-line border-t bg-sidebar pb-[env(safe-area-inset-bottom)] md:hidden"
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

function NavLink({ place, count, onClick }: { place: Place; count: number; onClick?: () => void }) {
  const { icon: Icon, to, label } = place;
  return (
    <Link
      to={to}
      {...(onClick && { onClick })}
      className="tap flex items-center gap-2 rounded-md px-2 text-muted transition-colors hover:bg-surface hover:text-text [&.active]:bg-selected [&.active]:font-medium [&.active]:text-text"
    >
      <Icon aria-hidden className="size-4" />
      {label}
      {count > 0 && <Count count={count} className="ml-auto" />}
    </Link>
  );
}

function ThumbLink({ place, count }: { place: Place; count: number }) {
  const { icon: Icon, to, label } = place;
  return (
    <Link
      to={to}
      className="relative flex min-h-12 flex-1 flex-col items-center justify-center text-muted text-xs [&.active]:text-accent"
    >
      <Icon aria-hidden className="size-5" />
      {label}
      {count > 0 && <Count count={count} className="absolute top-1 left-1/2 ml-2" />}
    </Link>
  );
}

function Count({ count, className }: { count: number; className?: string }) {
  return (
    <span
      className={cx(
        'min-w-5 rounded-full bg-needs px-1 text-center font-medium text-ground text-xs',
        className,
      )}
    >
      {count}
      <span className="sr-only"> waiting</span>
    </span>
  );
}
