/** Rows that move without the user: a press on a button in a row that has just moved was meant for what was there before. */

/** How long clicks are ignored: about as long as a person needs to see the change and stop. */
const MOVED_MS = 400;
/** A smaller move does not put another button under the pointer. */
const MOVED_PX = 4;
/** Delay after the last scroll event before the rows are measured; measuring them at each event drops frames. */
const SCROLLED_MS = 100;

interface Seen {
  row: HTMLElement;
  /** On the screen, and from the top of the list. Null if the browser skips the row, which is out of view. */
  at: { left: number; top: number; in_list: number } | null;
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
  /** Set during scrolling, and until the rows have been measured after it. */
  let scroll_end: ReturnType<typeof setTimeout> | undefined;
  const look = () => {
    cancelAnimationFrame(next_look);
    next_look = 0;
    if (scroll_end === undefined) places = placesIn(list, places, hasMoved);
  };
  // Rows may move by a different distance than the page scrolls, because some lists are sticky.
  const onScroll = ({ target }: Event) => {
    if (!(target as Node).contains(list)) return;
    clearTimeout(scroll_end);
    scroll_end = setTimeout(() => {
      scroll_end = undefined;
      places = placesIn(list, places, hasMovedInList);
    }, SCROLLED_MS);
  };
  const ignore = (event: MouseEvent) => {
    const target = event.target as Element;
    // Keys cause clicks too. The button of a menu only opens it.
    if (event.detail === 0 || !target.closest('button:not([aria-haspopup]), input')) return;
    // Never without a change: the row would seem to have moved now, not when it did.
    if (changes.takeRecords().length > 0 || next_look !== 0) look();
    const row = target.closest<HTMLElement>('[data-row]');
    if (!row || hasStayed(row, event.timeStamp)) return;
    event.preventDefault();
    event.stopPropagation();
  };
  const hasStayed = (row: HTMLElement, at: number) => {
    const place = places.get(row.dataset.row!);
    if (scroll_end !== undefined && (!place || hasMovedInList(place, seen(row, list)))) return false;
    return !place || at >= place.moved_at + MOVED_MS;
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
    clearTimeout(scroll_end);
    changes.disconnect();
    sizes.disconnect();
    list.removeEventListener('click', ignore, true);
    document.removeEventListener('scroll', onScroll, true);
  };
}

/** Where the rows are now, and when they got there: now, if `isMove` says so. */
function placesIn(
  list: HTMLElement,
  before: ReadonlyMap<string, Place>,
  isMove: (known: Seen, place: Seen) => boolean,
): Map<string, Place> {
  const now = performance.now();
  const places = new Map<string, Place>();
  for (const row of list.querySelectorAll<HTMLElement>('[data-row]')) {
    const key = row.dataset.row!;
    const place = seen(row, list);
    const known = before.get(key);
    // In a list that was empty, a new row took the place of nothing.
    const has_moved = known ? isMove(known, place) : before.size > 0;
    places.set(key, { ...place, moved_at: has_moved ? now : (known?.moved_at ?? Number.NEGATIVE_INFINITY) });
  }
  return places;
}

function seen(row: HTMLElement, list: HTMLElement): Seen {
  // To measure a row that the browser skips, it would lay it out.
  if (!row.checkVisibility({ contentVisibilityAuto: true })) return { row, at: null };
  const { left, top } = row.getBoundingClientRect();
  return { row, at: { left, top, in_list: top - list.getBoundingClientRect().top } };
}

function hasMoved(a: Seen, b: Seen): boolean {
  // It came into view or left it, or it was mounted again, which may be anywhere.
  if (!a.at || !b.at) return a.row !== b.row;
  return Math.abs(b.at.left - a.at.left) > MOVED_PX || Math.abs(b.at.top - a.at.top) > MOVED_PX;
}

/** Whether it has moved otherwise than by scrolling. */
function hasMovedInList(a: Seen, b: Seen): boolean {
  if (!a.at || !b.at) return a.row !== b.row;
  return Math.abs(b.at.in_list - a.at.in_list) > MOVED_PX;
}
