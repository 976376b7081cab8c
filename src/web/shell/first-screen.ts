/**
 * The screen that a page shows before its scripts have arrived. The build puts it into the page's HTML (`prerender/`), in a
 * template for each kind of user and screen. `early.ts` shows one of them before the first paint, so this module imports
 * nothing.
 */

/** Below it, screens are those of phones, without a sidebar. */
export const PHONE = '(width < 768px)';

/** Not signed in, or the role of the user. */
export type Viewer = 'guest' | 'user' | 'root';

interface Opened {
  /** The name of the HTML page in `pages.json`, which longer paths share. */
  page: string | undefined;
  pathname: string;
  search: string;
  hash: string;
  /** The role of the stored session; null without one. */
  role: string | null;
  is_phone: boolean;
  /** Whether the sidebar of wide screens is collapsed. */
  is_collapsed: boolean;
}

/** The name of the template for this URL and this user; null if the app may show another screen. */
export function templateOf(opened: Opened): string | null {
  const viewer = viewerOf(opened);
  return viewer && `${opened.is_phone ? 'phone' : 'desk'}-${viewer}`;
}

function viewerOf({ page, pathname, search, hash, role, is_phone, is_collapsed }: Opened): Viewer | null {
  const parts = pathname.split('/').filter(Boolean).length || 1;
  if (page === undefined || page.split('.').length !== parts) return null;
  // An incomplete link has no form.
  if (page === 'join' && !/^#(.*&)?t=./.test(hash)) return null;
  if (role === null) return 'guest';
  // Filters and opened panels are in the search.
  if (search !== '' || (is_collapsed && !is_phone)) return null;
  return role === 'root' ? 'root' : 'user';
}

/** Shows a template of the page, if it has it. Input devices and assistive technology wait for the app. */
export function showFirstScreen(name: string): void {
  const template = document.querySelector<HTMLTemplateElement>(`template[data-for~="${name}"]`);
  if (!template) return;
  const screen = document.createElement('div');
  screen.dataset.first = '';
  screen.inert = true;
  screen.ariaHidden = screen.ariaDisabled = 'true';
  screen.append(template.content);
  document.body.append(screen);
}

/** For the first time that the app shows a screen. */
export function removeFirstScreen(): void {
  document.querySelector('[data-first]')?.remove();
}
