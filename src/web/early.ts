/**
 * What must not wait for the other scripts: the theme, whether the page may show the screen in its HTML, and the requests of the
 * first screen. The page runs this small script as soon as it is there (`vite.config.ts`). It imports only modules that import
 * nothing, so that it stays small.
 */
import { SESSION_KEY } from './api/session-key.ts';
import { PHONE, showFirstScreen, templateOf } from './shell/first-screen.ts';
import { APPEARANCE_KEY, applyTheme, parseTheme } from './shell/theme.ts';

interface EarlyAnswer {
  authorization: string;
  answer: Promise<Response>;
}

/** By URL. Each is used once. */
export type EarlyAnswers = Map<string, EarlyAnswer>;

/** What `main.tsx` reads first, as the API client requests it. */
export function earlyPaths(page: string): string[] {
  const of_teams = ['/api/teams/waiting-steps', '/api/teams/waiting-runs'];
  const lists = ['/api/permission-reviews', '/api/elicitations', ...of_teams];
  return isAgentsPage(page) ? ['/api/agents?limit=200', ...lists] : lists;
}

export function isAgentsPage(page: string): boolean {
  return /^\/(agents\/?)?$/.test(page);
}

/** Sends the requests. Without a token it sends none. */
export function sendEarly(
  send: typeof fetch,
  { origin, pathname }: { origin: string; pathname: string },
  token: string | null,
): EarlyAnswers {
  const answers: EarlyAnswers = new Map();
  if (token === null) return answers;
  const authorization = `Bearer ${token}`;
  for (const path of earlyPaths(pathname)) {
    const answer = send(origin + path, { headers: { authorization }, redirect: 'error' });
    // Whoever takes the answer handles its error.
    answer.catch(() => {});
    answers.set(origin + path, { authorization, answer });
  }
  return answers;
}

/** A `fetch` that returns the early answer to the same request, once. It sends every other request. */
export function withEarly(answers: EarlyAnswers, send: typeof fetch): typeof fetch {
  return (input, init) => {
    const early = init?.method === 'GET' ? answers.get(String(input)) : undefined;
    if (early === undefined) return send(input, init);
    answers.delete(String(input));
    // The user may have signed in again meanwhile.
    const is_same = new Headers(init?.headers).get('authorization') === early.authorization;
    return is_same ? early.answer : send(input, init);
  };
}

// biome-ignore lint/suspicious/noExplicitAny: an older version may have stored something else
function stored(key: string): any {
  try {
    return JSON.parse(localStorage.getItem(key) ?? 'null');
  } catch {
    return null;
  }
}

/** Not as late as `DOMContentLoaded`, which waits for the other scripts. */
function whenParsed(fn: () => void): void {
  if (document.readyState === 'loading') document.addEventListener('readystatechange', fn, { once: true });
  else fn();
}

function begin(): EarlyAnswers {
  const session = stored(SESSION_KEY);
  const token = typeof session?.token === 'string' ? session.token : null;
  const { theme, sidebar } = stored(APPEARANCE_KEY) ?? {};
  applyTheme(parseTheme(theme));
  const { pathname, search, hash } = location;
  const template = templateOf({
    page: document.documentElement.dataset.page,
    ...{ pathname, search, hash },
    role: token && String(session.user?.role),
    is_phone: matchMedia(PHONE).matches,
    is_collapsed: sidebar === 'icons',
  });
  if (template) whenParsed(() => showFirstScreen(template));
  return sendEarly(fetch, location, token);
}

// Not in tests, which have no page.
const answers: EarlyAnswers = 'document' in globalThis ? begin() : new Map();

export const earlyFetch = withEarly(answers, (...args) => fetch(...args));
