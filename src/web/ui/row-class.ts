/** How a row of a list looks that opens something: a bar at its left marks the one in use. */
export const rowMarkClass =
  'relative border-line border-b focus-within:bg-surface hover:bg-surface ' +
  // In the first cell: a row that is no grid would get a cell for it.
  '*:first:before:absolute *:first:before:inset-y-0 *:first:before:left-0 *:first:before:w-0.5 *:first:before:bg-accent ' +
  '*:first:before:opacity-0 focus-within:*:first:before:opacity-100';

/** Such a row with the height that two lines need, on phones and on wide screens. */
export const rowClass = `${rowMarkClass} h-16 md:h-11`;
