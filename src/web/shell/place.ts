/** Which entry of the navigation a page belongs to (pure). */

/** Runs have the paths of their teams, and an entry apart from them. */
const RUN = /^\/teams\/[^/]+\/runs\/./;

/** `to`: the path of an entry. */
export function isInPlace(pathname: string, to: string): boolean {
  if (RUN.test(pathname)) return to === '/runs';
  return pathname === to || pathname.startsWith(`${to}/`);
}
