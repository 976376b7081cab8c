/**
 * The classes of buttons that lead from a list to what is out of view. They float above the end of the list, except on phones, where
 * they would cover its text: there they have a row below the list. The list and the row are in a column, which is positioned.
 */
export const belowClass =
  'flex shrink-0 justify-center gap-2 px-3 py-1 empty:hidden md:absolute md:bottom-3 md:p-0';
