/** How a row of a list looks that opens something: a bar at its left marks the one in use. */
export const rowMarkClass =
  'relative border-line border-b before:absolute before:inset-y-0 before:left-0 before:w-0.5 before:bg-accent before:opacity-0 focus-within:bg-surface focus-within:before:opacity-100 hover:bg-surface';

/** Such a row with the height that two lines need, on phones and on wide screens. */
export const rowClass = `${rowMarkClass} h-16 md:h-11`;
