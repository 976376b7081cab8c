/** Opens the command palette, for screens on phones. */
import { createContext } from 'react';

export const OpenPalette = createContext<() => void>(() => {});
