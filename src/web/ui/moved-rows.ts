/** Rows that move without the user: a press on a button in a row that has just moved was meant for what was there before. */

/** How long clicks are ignored: about as long as a person needs to see the change and stop. */
const MOVED_MS = 400;
/** A smaller move does not put another button under the pointer. */
const MOVED_PX = 4;

interface Seen {
  row: HTMLElement;
  /** On the screen. Null if the browser skips the row, which is out of view. */
  at: { left: number; top: number } | null;
}
type Place = Seen & { moved_at: number };

/**
 * A ref for a list whose rows have `data-row` with a key. Clicks on buttons and checkboxes in a row do nothing just after the
 * row has appeared or moved, unless the user has scrolled. Keys are never ignored.
 */
export function guardMovedRows(list: HTMLElement | null): (() => void) | undefined {
  if (!list) return undefined;
  let places = new Map<string, Place>();
  let next_look = 0;
  const look = () => {
    cancelAnimationFrame(next_look);
    next_look = 0;
    places = placesIn(list, places, differ);
  };
  // Rows may move by a different distance than the page scrolls, because some lists are sticky.
  const onScroll = ({ target }: Event) => {
    if ((target as Node).contains(list)) places = placesIn(list, places, () => false);
  };
  const ignore = (event: MouseEvent) => {
    const target = event.target as Element;
    // Keys cause clicks too. The button of a menu only opens it.
    if (event.detail === 0 || !target.closest('button:not([aria-haspopup]), input')) return;
    // Never without a change: the row would seem to have moved now, not when it did.
    if (changes.takeRecords().length > 0 || next_look !== 0) look();
    const row = target.closest<HTMLElement>('[data-row]');
    const place = row && places.get(row.dataset.row!);
    if (!place || event.timeStamp >= place.moved_at + MOVED_MS) return;
    event.preventDefault();
    event.stopPropagation();
  };
  const changes = new MutationObserver(() => {
    next_look ||= requestAnimationFrame(look);
  });
  // What is above the list moves it too.
  changes.observe(list.closest('main') ?? list, { childList: true, subtree: true });
  // Also called once at the beginning.
  const sizes = new ResizeObserver(look);
  sizes.observe(list);
  list.addEventListener('click', ignore, true);
  document.addEventListener('scroll', onScroll, { capture: true, passive: true });
  return () => {
    cancelAnimationFrame(next_look);
    changes.disconnect();
    sizes.disconnect();
    list.removeEventListener('click', ignore, true);
    document.removeEventListener('scroll', onScroll, true);
  };
}

/** Where the rows are now, and when they got there: now, if `hasMoved` says so. */
function placesIn(
  list: HTMLElement,
  before: ReadonlyMap<string, Place>,
  hasMoved: (known: Seen, place: Seen) => boolean,
): Map<string, Place> {
  const now = performance.now();
  const places = new Map<string, Place>();
  for (const row of list.querySelectorAll<HTMLElement>('[data-row]')) {
    const key = row.dataset.row!;
    // To measure a row that the browser skips, it would lay it out.
    const rect = row.checkVisibility({ contentVisibilityAuto: true }) ? row.getBoundingClientRect() : null;
    const place = { row, at: rect && { left: rect.left, top: rect.top } };
    const known = before.get(key);
    // In a list that was empty, a new row took the place of nothing.
    const has_moved = known ? hasMoved(known, place) : before.size > 0;
    places.set(key, { ...place, moved_at: has_moved ? now : (known?.moved_at ?? Number.NEGATIVE_INFINITY) });
  }
  return places;
}

function differ(a: Seen, b: Seen): boolean {
  // It came into view or left it, or it was mounted again, which may be anywhere.
  if (!a.at || !b.at) return a.row !== b.row;
  return Math.abs(b.at.left - a.at.left) > MOVED_PX || Math.abs(b.at.top - a.at.top) > MOVED_PX;
}
