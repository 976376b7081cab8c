/** The sheet with the actions of a phone's screen. */
import { createContext } from 'react';

/** Whether a component is in the sheet, where menus are lists. */
export const InSheet = createContext(false);

export const sheetItemClass =
  'tap flex w-full items-center gap-2 rounded-md px-2.5 text-left hover:bg-surface disabled:opacity-50 [&_svg]:size-4';
