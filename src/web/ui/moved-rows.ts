/** Rows that move without the user: a press on a button in a row that has just moved was meant for what was there before. */

/** For this long: a person needs about as much to see the change and to stop the finger. */
const MOVED_MS = 400;
/** Less does not put another button under the pointer. */
const MOVED_PX = 4;

interface Place {
  row: HTMLElement;
  /** Null if the browser skips the row, which is out of view. */
  at: { left: number; top: number; scrolled: number } | null;
  moved_at: number;
}

/**
 * A ref for a list whose rows have `data-row` with a key. Clicks on buttons and checkboxes in a row do nothing just after the
 * row has appeared or moved, unless the user has scrolled. Keys are never ignored.
 */
export function guardMovedRows(list: HTMLElement | null): (() => void) | undefined {
  if (!list) return undefined;
  let places = new Map<string, Place>();
  const look = () => {
    places = placesIn(list, places);
  };
  const ignore = (event: MouseEvent) => {
    const target = event.target as Element;
    // Keys click too. A menu only opens.
    if (event.detail === 0 || !target.closest('button:not([aria-haspopup]), input')) return;
    look();
    const row = target.closest<HTMLElement>('[data-row]');
    const place = row && places.get(row.dataset.row!);
    if (!place || event.timeStamp >= place.moved_at + MOVED_MS) return;
    event.preventDefault();
    event.stopPropagation();
  };
  let next_look = 0;
  const changes = new MutationObserver(() => {
    cancelAnimationFrame(next_look);
    next_look = requestAnimationFrame(look);
  });
  // What is above the list moves it too.
  changes.observe(list.closest('main') ?? list, { childList: true, subtree: true });
  // Also called once at the beginning.
  const sizes = new ResizeObserver(look);
  sizes.observe(list);
  list.addEventListener('click', ignore, true);
  return () => {
    cancelAnimationFrame(next_look);
    changes.disconnect();
    sizes.disconnect();
    list.removeEventListener('click', ignore, true);
  };
}

function placesIn(list: HTMLElement, before: ReadonlyMap<string, Place>): Map<string, Place> {
  const now = performance.now();
  let scrolled = 0;
  for (let box: Element | null = list; box; box = box.parentElement) scrolled += box.scrollTop;
  const places = new Map<string, Place>();
  for (const row of list.querySelectorAll<HTMLElement>('[data-row]')) {
    const key = row.dataset.row!;
    // To measure a row that the browser skips, it would lay it out.
    const rect = row.checkVisibility({ contentVisibilityAuto: true }) ? row.getBoundingClientRect() : null;
    const at = rect && { left: rect.left, top: rect.top, scrolled };
    const known = before.get(key);
    // A row of a list that was empty took the place of nothing.
    const has_moved = known ? known.row !== row || differ(known.at, at) : before.size > 0;
    places.set(key, { row, at, moved_at: has_moved ? now : (known?.moved_at ?? Number.NEGATIVE_INFINITY) });
  }
  return places;
}

/** Whether the row is at another place, both on the screen and in what scrolls. */
function differ(a: Place['at'], b: Place['at']): boolean {
  if (!a || !b) return false;
  const y = b.top - a.top;
  if (Math.abs(b.left - a.left) > MOVED_PX) return true;
  return Math.abs(y) > MOVED_PX && Math.abs(y + b.scrolled - a.scrolled) > MOVED_PX;
}
