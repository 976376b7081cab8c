/** How a row of a list looks that opens something, on phones and on wide screens: a bar at its left marks the one in use. */
export const rowClass =
  'relative h-16 border-line border-b before:absolute before:inset-y-0 before:left-0 before:w-0.5 before:bg-accent before:opacity-0 focus-within:bg-surface focus-within:before:opacity-100 hover:bg-surface md:h-11';
